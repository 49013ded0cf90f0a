//! The page of what a policy on a dry run would have changed.

use std::collections::HashMap;

use a2a_registry_api::{DryRun, DryRunCount};
use a2a_registry_core::agents::agent_names::{AgentName, agent_names};
use a2a_registry_core::policies::dry_run::policy_dry_run;
use a2a_registry_core::text::{self, LINE};
use actix_web::http::StatusCode;
use askama::Template;
use uuid::Uuid;

use crate::answers::answer::Answer;
use crate::pages::frame::Frame;
use crate::requests::auth::SeeAll;
use crate::requests::path::PolicyRef;
use crate::requests::visitor::PageOf;

#[derive(Template)]
#[template(path = "policy_dry_run.html")]
struct DryRunPage {
    frame: Frame,
    told: DryRun,
    names: HashMap<Uuid, String>,
}

pub(crate) async fn show(visitor: PageOf<SeeAll>, policy: PolicyRef) -> Answer {
    let told = policy_dry_run(&visitor.context, &visitor.caller, &policy.0).await?;
    let agents = told.resources.iter().filter_map(agent_of).collect();
    let names = agent_names(&visitor.context, agents).await?;
    let frame = Frame::of(visitor.context.config(), "policies", &visitor);
    let page = DryRunPage { frame, told, names };
    Ok(crate::pages::page(StatusCode::OK, &page))
}

/// The agent that was asked about; `None` for a domain.
fn agent_of(resource: &DryRunCount) -> Option<Uuid> {
    Uuid::try_parse(&resource.name).ok()
}

impl DryRunPage {
    fn resource(&self, resource: &DryRunCount) -> AgentName {
        match agent_of(resource) {
            Some(id) => AgentName::new(id, &self.names),
            None => AgentName {
                // A policy that refuses a registration leaves nothing to link to.
                link: None,
                name: text::line(&resource.name, LINE),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::tests::api_samples::{admin_frame, dry_run, read};
    use crate::pages::tests::hostile::assert_harmless;

    #[test]
    fn what_others_have_written_stays_text() {
        assert_harmless(|text| DryRunPage {
            frame: admin_frame("policies"),
            told: read(dry_run(text)),
            names: HashMap::new(),
        });
    }
}
