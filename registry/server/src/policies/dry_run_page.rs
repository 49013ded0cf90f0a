//! The page of what a policy on a dry run would have changed.

use std::collections::HashMap;

use a2a_registry_api::{DryRun, DryRunCount};
use actix_web::http::StatusCode;
use actix_web::{HttpResponse, web};
use askama::Template;
use uuid::Uuid;

use crate::agents::agent_names::{AgentName, agent_names};
use crate::context::Context;
use crate::http::auth::SeeAll;
use crate::http::path::PolicyRef;
use crate::http::problem::Problem;
use crate::http::visitor::PageOf;
use crate::pages::frame::Frame;
use crate::pages::text::{self, LINE, grouped};
use crate::policies::dry_run::policy_dry_run;

/// The page.
#[derive(Template)]
#[template(path = "policy_dry_run.html")]
struct DryRunPage {
    frame: Frame,
    policy: String,
    running: bool,
    answers: String,
    days: Vec<DayRow>,
    resources: Vec<(AgentName, String)>,
    callers: Vec<(String, String)>,
    truncated: bool,
}

/// One day.
struct DayRow {
    day: String,
    denied: String,
    allowed: String,
    resources: String,
    callers: String,
}

/// Shows what a policy would have changed.
///
/// # Errors
/// As the act.
pub(crate) async fn show(
    context: web::Data<Context>,
    visitor: PageOf<SeeAll>,
    policy: PolicyRef,
) -> Result<HttpResponse, Problem> {
    let visitor = &visitor.0;
    let told = policy_dry_run(&context, &visitor.caller, &policy.0).await?;
    let agents = told.resources.iter().filter_map(agent_of).collect();
    let names = agent_names(&context, agents).await?;
    let frame = Frame::of(context.config(), "policies", visitor);
    let page = DryRunPage::new(frame, &told, &names);
    Ok(crate::pages::page(StatusCode::OK, &page))
}

/// The agent that was asked about; a domain is none.
fn agent_of(resource: &DryRunCount) -> Option<Uuid> {
    Uuid::try_parse(&resource.name).ok()
}

impl DryRunPage {
    fn new(frame: Frame, told: &DryRun, names: &HashMap<Uuid, String>) -> Self {
        let resource = |one: &DryRunCount| match agent_of(one) {
            Some(id) => AgentName::new(id, names),
            None => AgentName {
                // Whose registration a policy refuses is not there to be linked.
                link: None,
                name: text::line(&one.name, LINE),
            },
        };
        Self {
            frame,
            policy: text::line(&told.policy, LINE),
            running: told.running,
            answers: grouped(told.answers),
            days: told
                .days
                .iter()
                .map(|day| DayRow {
                    day: day.day.clone(),
                    denied: grouped(day.denied),
                    allowed: grouped(day.allowed),
                    resources: grouped(day.resources),
                    callers: grouped(day.callers),
                })
                .collect(),
            resources: told
                .resources
                .iter()
                .map(|one| (resource(one), grouped(one.answers)))
                .collect(),
            callers: told
                .callers
                .iter()
                .map(|one| (text::line(&one.name, LINE), grouped(one.answers)))
                .collect(),
            truncated: told.truncated,
        }
    }
}
