//! Dry-run page: what a policy on a dry run would have changed.

use std::collections::HashMap;

use a2a_registry_api::{DryRun, DryRunCount};
use a2a_registry_core::agents::agent_names::{AgentNameView, load_agent_names};
use a2a_registry_core::policies::dry_run::load_policy_dry_run;
use a2a_registry_core::text::{self, LINE};
use actix_web::http::StatusCode;
use askama::Template;
use uuid::Uuid;

use crate::answers::response::HandlerResult;
use crate::pages::frame::Frame;
use crate::requests::auth::SeeAll;
use crate::requests::path_parameters::PolicyRef;
use crate::requests::visitor::PermittedVisitor;

#[derive(Template)]
#[template(path = "policy_dry_run.html")]
struct DryRunPage {
    frame: Frame,
    told: DryRun,
    names: HashMap<Uuid, String>,
}

pub(crate) async fn show_dry_run(
    visitor: PermittedVisitor<SeeAll>,
    policy: PolicyRef,
) -> HandlerResult {
    let dry_run = load_policy_dry_run(&visitor.context, &visitor.caller, &policy.0).await?;
    let agents = dry_run
        .resources
        .iter()
        .filter_map(dry_run_agent_id)
        .collect();
    let names = load_agent_names(&visitor.context, agents).await?;
    let frame = Frame::for_visitor(&visitor.context.config(), "policies", &visitor);
    let page = DryRunPage {
        frame,
        told: dry_run,
        names,
    };
    Ok(crate::pages::render_page(StatusCode::OK, &page))
}

/// Agent that the decision was about; `None` for a domain.
fn dry_run_agent_id(resource: &DryRunCount) -> Option<Uuid> {
    Uuid::try_parse(&resource.name).ok()
}

impl DryRunPage {
    fn resource_name(&self, resource: &DryRunCount) -> AgentNameView {
        match dry_run_agent_id(resource) {
            Some(id) => AgentNameView::new(id, &self.names),
            None => AgentNameView {
                // A rejected registration has no page to link to.
                link: None,
                name: text::single_line(&resource.name, LINE),
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
