//! One of the account's own domains in a few lines: its state, the next step, and its agents.

use a2a_registry_api::DomainView;
use a2a_registry_core::context::Context;
use a2a_registry_core::text::{self, LINE};
use a2a_registry_core::visibility::caller::Caller;

use crate::pages::domains::names;
use crate::pages::domains::parts::AgentView;
use crate::pages::domains::standing::StandingView;

pub(crate) struct OwnDomainView {
    pub name: String,
    pub link: String,
    pub tone: &'static str,
    pub sentence: String,
    pub next: Option<String>,
    pub agents: Vec<AgentView>,
    pub more_agents: usize,
}

impl OwnDomainView {
    /// The lines of a domain with at most `most` agents.
    pub(crate) async fn load(
        context: &Context,
        caller: &Caller,
        view: &DomainView,
        most: usize,
    ) -> Self {
        let names = names(context, caller, view, most).await;
        let standing = StandingView::new(view, &names);
        let next = standing.steps.into_iter().find(|step| step.next);
        let ids = view.agents.iter().take(most);
        Self {
            name: text::line(&view.domain, LINE),
            link: format!("/domains/{}", text::segment(&view.domain)),
            tone: standing.tone,
            sentence: standing.sentence,
            next: next.map(|step| format!("{}: {}", step.title, step.text)),
            agents: ids
                .map(|id| AgentView::new(&id.to_string(), &names))
                .collect(),
            more_agents: view.agents.len().saturating_sub(most),
        }
    }
}
