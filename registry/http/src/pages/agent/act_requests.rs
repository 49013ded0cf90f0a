//! What the forms of actions on an agent ask for, each the same as an operation of the API.

use std::collections::BTreeMap;

use a2a_registry_api::{Act, Agent, AgentPatch, Deprecate, Recrawl};
use a2a_registry_core::agents::lifecycle_actions::{
    agent_deprecate, agent_retire, agent_suspend, agent_undeprecate,
};
use a2a_registry_core::agents::owner_updates::agent_patch;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::domains::actions::domain_recrawl;
use a2a_registry_core::error::AppError;
use a2a_registry_core::precondition::IfMatch;
use a2a_registry_core::reviews::recertification::agent_recertify;
use a2a_registry_core::reviews::resume::agent_resume;
use a2a_registry_core::text;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::lifecycle::{Hold, Visibility};
use a2a_registry_domain::timestamp::Timestamp;
use serde::Deserialize;

use crate::pages::admin::nonempty_lines;
use crate::pages::confirm::Confirmation;
use crate::problems::problem::Problem;
use crate::requests::forms::FormFields;

/// Input of the forms of all actions.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct AgentActForm {
    pub reason: String,
    pub hold: String,
    pub visibility: String,
    /// Names, one in each line.
    pub groups: String,
    pub collections: String,
    /// `key=value`, one in each line.
    pub labels: String,
    pub sponsor: String,
    pub replacement: String,
    pub sunset: String,
    pub accept: String,
    /// Entity tag of the agent in the form.
    pub seen: String,
    pub confirm: Confirmation,
}

/// Size limits of the form: labels, groups and collections with a reason.
impl FormFields for AgentActForm {
    const MAX_BYTES: usize = 64 * 1024;
}

/// Takes an action, and returns the URL of the page to show then.
pub(super) async fn run_agent_act(
    context: &AppContext,
    caller: &Caller,
    agent: &Agent,
    act: &str,
    form: &AgentActForm,
) -> Result<String, Problem> {
    let summary = &agent.hit.summary;
    let id = summary.id.to_string();
    let request = Act {
        reason: form.reason.clone(),
        hold: None,
    };
    match act {
        "suspend" => drop(agent_suspend(context, caller, &id, &request).await?),
        "resume" => {
            let hold = form.hold.parse::<Hold>();
            let hold = hold.map_err(|error| AppError::invalid("/hold", error))?;
            let request = Act {
                hold: Some(hold),
                ..request
            };
            agent_resume(context, caller, &id, &request).await?;
        }
        "recertify" => {
            let review = agent_recertify(context, caller, &id, &request).await?;
            return Ok(format!("/reviews/{}", review.id));
        }
        "deprecate" => {
            drop(agent_deprecate(context, caller, &id, &parse_deprecation(form)?).await?)
        }
        "undeprecate" => drop(agent_undeprecate(context, caller, &id, &request).await?),
        "retire" => drop(agent_retire(context, caller, &id, &request).await?),
        "fetch" => {
            let request = Recrawl { full: false };
            domain_recrawl(context, caller, &summary.domain, &request).await?;
            let domain = text::path_segment(&summary.domain);
            return Ok(format!("/domains/{domain}"));
        }
        act => {
            let patch = build_agent_patch(act, form)?;
            let seen = IfMatch(Some(form.seen.clone()));
            drop(agent_patch(context, caller, &id, &patch, &seen).await?);
        }
    }
    Ok(format!("/agents/{id}/"))
}

fn parse_deprecation(form: &AgentActForm) -> Result<Deprecate, Problem> {
    let sunset = match form.sunset.as_str() {
        "" => None,
        day => {
            let time: Result<Timestamp, String> = format!("{day}T00:00:00Z").parse();
            Some(time.map_err(|error| AppError::invalid("/sunset", error))?)
        }
    };
    let replacement = form.replacement.trim();
    Ok(Deprecate {
        reason: form.reason.replace("\r\n", "\n"),
        replacement: (!replacement.is_empty()).then(|| replacement.to_owned()),
        sunset,
    })
}

fn build_agent_patch(act: &str, form: &AgentActForm) -> Result<AgentPatch, Problem> {
    let mut patch = AgentPatch {
        reason: Some(form.reason.clone()),
        ..AgentPatch::default()
    };
    match act {
        "visibility" => {
            let visibility = form.visibility.parse::<Visibility>();
            let visibility = visibility.map_err(|error| AppError::invalid("/visibility", error))?;
            patch.visibility = Some(visibility);
            // Only a restricted agent has groups and collections, and what the form shows of them is kept otherwise.
            if visibility == Visibility::Restricted {
                patch.groups = Some(nonempty_lines(&form.groups));
                patch.collections = Some(nonempty_lines(&form.collections));
            }
        }
        "labels" => patch.labels = Some(parse_labels(&form.labels)?),
        "sponsor" => patch.sponsor = Some(form.sponsor.trim().to_owned()),
        "queries" => patch.derived_queries = Some(!form.accept.is_empty()),
        _ => return Err(AppError::no_resource().into()),
    }
    Ok(patch)
}

fn parse_labels(text: &str) -> Result<BTreeMap<String, String>, Problem> {
    let pair = |line: String| match line.split_once('=') {
        Some((key, value)) => Ok((key.trim().to_owned(), value.trim().to_owned())),
        None => Err(Problem::invalid(
            "/labels",
            "Write each label as key=value in a line.",
        )),
    };
    nonempty_lines(text).into_iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn labels_stand_in_lines() {
        let found = parse_labels("team = blue\r\n\r\nstage=test\n").unwrap();
        let expected = [("stage", "test"), ("team", "blue")];
        let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(found.into_iter().collect::<Vec<_>>(), expected);
        assert!(parse_labels("team").is_err());
    }

    #[test]
    fn groups_are_sent_only_for_a_restricted_agent() {
        let mut form = AgentActForm {
            visibility: "internal".to_owned(),
            groups: "staff".to_owned(),
            ..AgentActForm::default()
        };
        assert_eq!(build_agent_patch("visibility", &form).unwrap().groups, None);
        form.visibility = "restricted".to_owned();
        let restricted = build_agent_patch("visibility", &form).unwrap();
        assert_eq!(restricted.groups, Some(vec!["staff".to_owned()]));
        assert_eq!(restricted.collections, Some(Vec::new()));
        assert!(build_agent_patch("nothing", &form).is_err());
    }
}
