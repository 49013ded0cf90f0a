//! Summary of one of the account's own domains: its state, the next step, and its agents.

use a2a_registry_api::DomainView;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::text::{self, LINE};
use a2a_registry_core::visibility::caller::Caller;

use crate::pages::domains::load_domain_agent_rows;
use crate::pages::domains::parts::AgentLinkView;
use crate::pages::domains::progress::DomainProgressView;

pub(crate) struct MyDomainView {
    pub name: String,
    pub link: String,
    pub tone: &'static str,
    pub sentence: String,
    pub next: Option<String>,
    pub agents: Vec<AgentLinkView>,
    pub more_agents: usize,
}

impl MyDomainView {
    /// Loads the summary of a domain with a limited number of agents.
    pub(crate) async fn load(
        context: &AppContext,
        caller: &Caller,
        view: &DomainView,
        limit: usize,
    ) -> Self {
        let agent_rows = load_domain_agent_rows(context, caller, view, limit).await;
        let progress = DomainProgressView::new(view, &agent_rows);
        let next = progress.steps.into_iter().find(|step| step.next);
        let ids = view.agents.iter().take(limit);
        Self {
            name: text::single_line(&view.domain, LINE),
            link: format!("/domains/{}", text::path_segment(&view.domain)),
            tone: progress.tone,
            sentence: progress.sentence,
            next: next.map(|step| format!("{}: {}", step.title, step.text)),
            agents: ids
                .map(|id| AgentLinkView::new(&id.to_string(), &agent_rows))
                .collect(),
            more_agents: view.agents.len().saturating_sub(limit),
        }
    }
}
