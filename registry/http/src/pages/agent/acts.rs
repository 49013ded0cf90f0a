//! Actions on an agent: links on its page, and a page for each, which says what it does and asks for a reason.

use a2a_registry_api::Agent;
use a2a_registry_api::limits::MAX_REASON;
use a2a_registry_core::agents::rendering::{parse_rendered_agent, render_agent};
use a2a_registry_core::agents::views::agent_show;
use a2a_registry_core::error::AppError;
use a2a_registry_core::text::{self, BLOCK, LINE};
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::lifecycle::{Hold, ShownLifecycle, Visibility};
use a2a_registry_domain::role::Permission;
use actix_web::http::StatusCode;
use askama::Template;

use crate::answers::response::HandlerResult;
use crate::pages::agent::act_requests::{AgentActForm, run_agent_act};
use crate::pages::agent::page_extras::AgentPageExtras;
use crate::pages::frame::Frame;
use crate::problems::problem::Problem;
use crate::requests::auth::Register;
use crate::requests::forms::PermittedForm;
use crate::requests::path_parameters::{AgentRef, Slug};
use crate::requests::visitor::PermittedVisitor;

/// Holds that a person may lift.
const LIFTABLE_HOLDS: [Hold; 3] = [Hold::Operator, Hold::CriticalChange, Hold::KeyChanged];

/// An action that pages offer for an agent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AgentAct {
    /// Name in the URL.
    pub name: &'static str,
    pub title: &'static str,
    /// What the action does, before a person confirms it.
    pub meaning: &'static str,
    /// Whether only curators may take it; otherwise also the owner.
    is_for_curators: bool,
    /// Whether it cannot be undone.
    pub is_final: bool,
    /// Whether a reason is recorded.
    takes_reason: bool,
}

const fn act(name: &'static str, title: &'static str, meaning: &'static str) -> AgentAct {
    AgentAct {
        name,
        title,
        meaning,
        is_for_curators: false,
        is_final: false,
        takes_reason: true,
    }
}

const fn curator_act(name: &'static str, title: &'static str, meaning: &'static str) -> AgentAct {
    AgentAct {
        is_for_curators: true,
        ..act(name, title, meaning)
    }
}

const ACTS: &[AgentAct] = &[
    AgentAct {
        takes_reason: false,
        ..act(
            "fetch",
            "Fetch again",
            "The registry fetches the cards of the domain again as soon as the rate limits allow.",
        )
    },
    act(
        "deprecate",
        "Deprecate",
        "The agent stays listed, and everyone who finds it sees the reason and which agent to use instead.",
    ),
    act(
        "undeprecate",
        "Undo the deprecation",
        "The agent is listed as before, without the advice.",
    ),
    act(
        "visibility",
        "Change who finds it",
        "An owner can only narrow this. A restricted agent is found by the members of its groups and by the audience \
         of its collections.",
    ),
    act(
        "sponsor",
        "Name a sponsor",
        "The sponsor is the account that is responsible for the agent inside this company.",
    ),
    curator_act(
        "suspend",
        "Suspend",
        "The agent is put on hold: only its owner and curators see it until a curator resumes it.",
    ),
    curator_act(
        "resume",
        "Resume",
        "The hold ends, and the agent is listed again if no other hold is left.",
    ),
    curator_act(
        "recertify",
        "Recertify",
        "A review of the served content opens. Until it is decided, the content stays served.",
    ),
    curator_act(
        "labels",
        "Set labels",
        "Searches and policies can filter by labels. These labels replace all that the agent has.",
    ),
    curator_act(
        "queries",
        "Set derived queries",
        "The agent's entry in the catalog of this registry gets representative queries, derived from its skills.",
    ),
    AgentAct {
        is_final: true,
        ..act(
            "retire",
            "Retire",
            "The agent is no longer served to anyone, and its id is never used again.",
        )
    },
];

#[derive(Template)]
#[template(path = "agent_act.html")]
pub(crate) struct AgentActPage {
    frame: Frame,
    act: &'static AgentAct,
    id: String,
    name: String,
    fields: AgentActForm,
    holds: Vec<&'static str>,
    problem: Option<String>,
}

/// The actions that the agent's state allows and the caller may take; none for a caller without an account. Whoever
/// has only registered the agent may have it fetched again.
pub(crate) fn offered_acts(
    agent: &Agent,
    caller: &Caller,
    background: &AgentPageExtras,
) -> Vec<&'static AgentAct> {
    let curates = caller.has_permission(Permission::Curate);
    let registers = caller.has_permission(Permission::Register);
    let is_permitted = |act: &AgentAct| match act.name {
        "fetch" => background.is_own || background.acts_as_owner,
        _ => background.acts_as_owner && !act.is_for_curators,
    };
    let offered = ACTS
        .iter()
        .filter(|act| curates || (registers && is_permitted(act)));
    offered.filter(|act| fits_state(act, agent)).collect()
}

fn fits_state(act: &AgentAct, agent: &Agent) -> bool {
    let summary = &agent.hit.summary;
    if summary.lifecycle == ShownLifecycle::Retired {
        return false;
    }
    let is_deprecated = summary.deprecation.is_some();
    let is_approved = matches!(
        summary.lifecycle.known_value(),
        Some(ShownLifecycle::Approved | ShownLifecycle::Deprecated | ShownLifecycle::Suspended)
    );
    match act.name {
        "deprecate" => is_approved && !is_deprecated,
        "undeprecate" => is_deprecated,
        "recertify" => is_approved,
        "suspend" => !agent.holds.iter().any(|hold| hold.hold == Hold::Operator),
        "resume" => !liftable_holds(agent).is_empty(),
        _ => true,
    }
}

fn liftable_holds(agent: &Agent) -> Vec<&'static str> {
    let holds = LIFTABLE_HOLDS.into_iter();
    let present = holds.filter(|hold| agent.holds.iter().any(|one| one.hold == *hold));
    present.map(Hold::as_str).collect()
}

/// Shows what an action does, and its form.
pub(crate) async fn show_agent_act(
    visitor: PermittedVisitor<Register>,
    AgentRef(agent): AgentRef,
    Slug(act): Slug,
) -> HandlerResult {
    let (context, caller) = (&visitor.context, &visitor.caller);
    let act = find_act(&act)?;
    if act.is_for_curators {
        caller.require_permission(Permission::Curate)?;
    }
    let rendered = render_agent(context, caller, &agent).await?;
    let agent = parse_rendered_agent(&rendered)?;
    let frame = Frame::for_visitor(&context.config(), "agent", &visitor);
    let mut page = AgentActPage::new(frame, &agent, act);
    page.fields.seen = rendered.tag;
    Ok(crate::pages::render_page(StatusCode::OK, &page))
}

/// Takes an action, and redirects to what it leads to. An error is shown above the form, which keeps its input.
pub(crate) async fn submit_agent_act(
    AgentRef(agent): AgentRef,
    Slug(act): Slug,
    form: PermittedForm<Register, AgentActForm>,
) -> HandlerResult {
    let (context, caller) = (&form.context, &form.visitor.caller);
    let act = find_act(&act)?;
    let agent = agent_show(context, caller, &agent).await?;
    let problem = match act.is_final && !form.fields.confirm.is_given() {
        true => Problem::invalid("/confirm", "Confirm that this cannot be undone."),
        false => match run_agent_act(context, caller, &agent, act.name, &form.fields).await {
            Ok(url) => return Ok(crate::pages::see_other(&url)),
            Err(problem) => problem,
        },
    };
    crate::pages::log_problem(&problem);
    let frame = Frame::for_visitor(&context.config(), "agent", &form.visitor);
    let mut page = AgentActPage::new(frame, &agent, act);
    page.fields = form.fields;
    page.problem = Some(text::single_line(&problem.to_string(), BLOCK));
    Ok(crate::pages::render_page(problem.kind().status, &page))
}

fn find_act(name: &str) -> Result<&'static AgentAct, Problem> {
    let act = ACTS.iter().find(|act| act.name == name);
    act.ok_or_else(|| AppError::no_resource().into())
}

impl AgentActPage {
    fn new(frame: Frame, agent: &Agent, act: &'static AgentAct) -> Self {
        let summary = &agent.hit.summary;
        let labels = summary.labels.iter();
        let labels: Vec<String> = labels
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        let fields = AgentActForm {
            visibility: summary.visibility.as_str().to_owned(),
            groups: agent.groups.join("\n"),
            collections: agent.collections.join("\n"),
            labels: labels.join("\n"),
            sponsor: agent.sponsor.clone().unwrap_or_default(),
            accept: if agent.derived_queries {
                "yes".to_owned()
            } else {
                String::new()
            },
            ..AgentActForm::default()
        };
        Self {
            frame,
            act,
            id: summary.id.to_string(),
            name: text::single_line(&summary.name, LINE),
            fields,
            holds: liftable_holds(agent),
            problem: None,
        }
    }

    fn visibilities() -> impl Iterator<Item = &'static str> {
        Visibility::ALL.iter().map(|one| one.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::tests::api_samples::admin_frame;
    use crate::pages::tests::hostile::assert_harmless;
    use crate::pages::tests::samples;

    fn agent(text: &str) -> Agent {
        let mut agent = samples::agent(samples::card(&samples::hostile(text)), text);
        agent.sponsor = Some("ann".to_owned());
        agent
    }

    #[test]
    fn what_others_have_written_stays_text() {
        for act in ACTS {
            assert_harmless(|text| AgentActPage::new(admin_frame("agent"), &agent(text), act));
        }
    }

    #[test]
    fn a_visitor_is_offered_nothing() {
        let own = AgentPageExtras {
            is_own: true,
            acts_as_owner: true,
            ..AgentPageExtras::default()
        };
        assert!(offered_acts(&agent("x"), &Caller::default(), &own).is_empty());
    }

    #[test]
    fn a_state_offers_only_what_it_allows() {
        let names = |agent: &Agent| -> Vec<&str> {
            let fitting = ACTS.iter().filter(|act| fits_state(act, agent));
            fitting.map(|act| act.name).collect()
        };
        let mut agent = agent("x");
        agent.holds.clear();
        agent.hit.summary.deprecation = None;
        agent.hit.summary.lifecycle = ShownLifecycle::Approved.into();
        let offered = names(&agent);
        assert!(offered.contains(&"deprecate") && offered.contains(&"suspend"));
        assert!(!offered.contains(&"undeprecate") && !offered.contains(&"resume"));
        agent.hit.summary.lifecycle = ShownLifecycle::Retired.into();
        assert!(names(&agent).is_empty());
    }
}
