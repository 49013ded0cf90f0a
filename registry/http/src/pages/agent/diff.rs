//! Diff page: the changes between two versions of an agent's card, with the importance of each.

use a2a_registry_api::{Diff, Version, VersionList};
use a2a_registry_core::agents::diff::{VersionDiffQuery, agent_diff};
use a2a_registry_core::agents::views::{agent_show, agent_versions};
use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::{AppError, Result};
use a2a_registry_core::paging::PageRequest;
use a2a_registry_core::text::{self, ADDRESS, LINE};
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::review::{ChangeClass, VersionState};
use a2a_registry_domain::timestamp::Timestamp;
use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;

use crate::pages::changes::{self, change_class_description};
use crate::pages::frame::Frame;
use crate::pages::moment;
use crate::requests::path_parameters::AgentRef;
use crate::requests::query;
use crate::requests::visitor::Visitor;

const VERSIONS: u32 = 50;

#[derive(Template)]
#[template(path = "diff.html")]
pub(crate) struct DiffPage {
    frame: Frame,
    now: Timestamp,
    name: String,
    agent: String,
    diff: Diff,
    importance: &'static str,
    versions: Vec<Version>,
}

pub(crate) struct DiffPageData {
    pub name: String,
    pub agent: String,
    pub diff: Diff,
    /// Newest versions that the caller may see.
    pub versions: VersionList,
}

/// Shows the changes between `?from=` and `?to=`, selected as in `GET /v1/agents/{agent}/diff`.
pub(crate) async fn show_diff(
    context: web::Data<AppContext>,
    visitor: Visitor,
    AgentRef(agent): AgentRef,
    request: HttpRequest,
) -> HttpResponse {
    let frame = Frame::for_visitor(&context.config(), "agent", &visitor);
    let caller = &visitor.caller;
    match load_diff_data(&context, caller, &agent, request.query_string()).await {
        Ok(material) => {
            let page = DiffPage::new(frame, material, context.now());
            crate::pages::render_page(StatusCode::OK, &page)
        }
        Err(error) => crate::pages::problems::framed_error_page(frame, error),
    }
}

async fn load_diff_data(
    context: &AppContext,
    caller: &Caller,
    agent: &str,
    query: &str,
) -> Result<DiffPageData> {
    let query = parse_diff_query(query)?;
    let first_page = PageRequest {
        page_size: Some(VERSIONS),
        page_token: None,
    };
    let (agent_detail, diff, versions) = futures::join!(
        agent_show(context, caller, agent),
        agent_diff(context, caller, agent, &query),
        agent_versions(context, caller, agent, &first_page),
    );
    let summary = agent_detail?.hit.summary;
    Ok(DiffPageData {
        name: summary.name,
        agent: summary.id.to_string(),
        diff: diff?,
        versions: versions?,
    })
}

/// Parses the query. Empty values, which forms may send, count as absent.
fn parse_diff_query(query: &str) -> Result<VersionDiffQuery> {
    let invalid = |text: String| AppError::invalid("/", text);
    if query.len() > ADDRESS {
        return Err(invalid("The URL is too long.".to_owned()));
    }
    let query: VersionDiffQuery =
        query::parse_query(query).map_err(|problem| invalid(problem.to_string()))?;
    let non_empty = |digest: Option<String>| digest.filter(|digest| !digest.is_empty());
    Ok(VersionDiffQuery {
        from: non_empty(query.from),
        to: non_empty(query.to),
    })
}

impl DiffPage {
    pub(crate) fn new(frame: Frame, data: DiffPageData, now: Timestamp) -> Self {
        let versions = data.versions.versions;
        Self {
            frame,
            now,
            name: text::single_line(&data.name, LINE),
            agent: data.agent,
            importance: diff_importance_text(&data.diff, &versions),
            diff: data.diff,
            versions,
        }
    }

    /// The version with this digest, if it is one of the choices.
    fn version(&self, digest: &str) -> Option<&Version> {
        let mut versions = self.versions.iter();
        versions.find(|version| version.digest == digest)
    }
}

/// Describes the importance of a comparison for its two versions: pending reviews and decisions.
fn diff_importance_text(diff: &Diff, versions: &[Version]) -> &'static str {
    let class = diff.change_class.known_value();
    if !matches!(class, Some(ChangeClass::High | ChangeClass::Critical)) {
        return change_class_description(class);
    }
    let sides = [&diff.from, &diff.to];
    let compared_versions: Vec<&Version> = versions
        .iter()
        .filter(|version| sides.contains(&&version.digest))
        .collect();
    let newer = compared_versions
        .iter()
        .max_by_key(|version| version.observed_at);
    let newer = newer.and_then(|version| version.state.known_value());
    let are_approved = compared_versions.len() == 2
        && compared_versions
            .iter()
            .all(|version| version.state == VersionState::Approved);
    match newer {
        Some(VersionState::Approved) if are_approved => {
            "A change like this needs a review. Both versions are approved."
        }
        Some(VersionState::Approved) => {
            "A change like this needs a review. The newer version is approved."
        }
        Some(VersionState::Rejected) => {
            "A change like this needs a review. The newer version was rejected."
        }
        Some(VersionState::Superseded) => {
            "A change like this needs a review. A newer version replaced it before a decision."
        }
        Some(VersionState::Pending) if class == Some(ChangeClass::Critical) => {
            "This change needs a review. No card is served until then."
        }
        Some(VersionState::Pending) => {
            "This change needs a review. The previous version is served until then."
        }
        None => change_class_description(class),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn empty_members_of_the_form_are_none_and_others_are_refused() {
        let query = parse_diff_query("from=&to=sha256%3Aab").unwrap();
        assert_eq!((query.from, query.to.as_deref()), (None, Some("sha256:ab")));
        assert_eq!(parse_diff_query("").unwrap(), VersionDiffQuery::default());
        for bad in [
            "form=a",
            "from=a&from=b",
            "to=%zz",
            &format!("to={}", "a".repeat(ADDRESS)),
        ] {
            assert!(parse_diff_query(bad).is_err(), "{bad}");
        }
    }
}
