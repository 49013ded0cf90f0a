//! Agents of a registered name: their state and its reason, the signature verdict, the findings of the card, and the
//! next step.

use std::collections::HashMap;

use a2a_registry_api::{Agent, DomainView};
use a2a_registry_domain::lifecycle::ShownLifecycle;
use uuid::Uuid;

use super::super::client::Client;
use super::super::console::Console;
use super::super::list_format::PageArgs;
use super::super::program_name;
use super::super::review::ReviewFilterArgs;
use super::super::signature_text::signature_lines;

/// Pages of open reviews that are searched for a review of an agent.
const MAX_REVIEW_PAGES: usize = 20;
/// Columns of a foreign text in a line on a terminal.
const MAX_TEXT_COLUMNS: usize = 200;

/// Agents of one registration, and their open reviews.
pub struct RegisteredAgentDescriber<'a> {
    client: &'a Client,
    console: &'a Console,
    /// Open reviews by agent; `None` if the caller may not see them.
    open_reviews: Option<HashMap<Uuid, Uuid>>,
}

impl<'a> RegisteredAgentDescriber<'a> {
    /// Creates it without any requests.
    pub fn new(client: &'a Client, console: &'a Console) -> Self {
        Self {
            client,
            console,
            open_reviews: Some(HashMap::new()),
        }
    }

    /// Lines about an agent that was found under a name.
    pub async fn describe_agent(
        &mut self,
        name: &str,
        id: Uuid,
        domain: &DomainView,
    ) -> Vec<String> {
        let agent = match self.client.agent(id).await {
            Ok(reply) => reply.value,
            Err(error) => return vec![format!("{name}: found an agent ({id}): {error}")],
        };
        let summary = &agent.hit.summary;
        let next = self
            .next_step_hint(id, summary.lifecycle.known_value())
            .await;
        let mut lines = vec![format!(
            "{name}: found {} ({id}), {}{next}",
            summary.name, summary.lifecycle
        )];
        lines.extend(
            agent_state_reasons(self.console, &agent, domain)
                .iter()
                .map(|why| format!("  {why}")),
        );
        let signature = signature_lines(self.console, &agent.signature_verdict);
        lines.extend(signature.iter().map(|line| format!("  {line}")));
        lines.push(format!("  {}", self.describe_finding_counts(id).await));
        lines
    }

    /// Command for the next step of an agent, if there is one.
    async fn next_step_hint(&mut self, id: Uuid, state: Option<ShownLifecycle>) -> String {
        let program = program_name::program_name();
        match state {
            Some(ShownLifecycle::Approved | ShownLifecycle::Deprecated) => {
                format!("; try `{program} show {id}`")
            }
            Some(ShownLifecycle::Pending) => match self.find_open_review(id).await {
                Some(review) => {
                    format!("; approve it with `{program} review approve {review} --reason TEXT`")
                }
                None => "; a curator decides on it".to_owned(),
            },
            _ => format!("; see `{program} show {id}`"),
        }
    }

    /// Open review of an agent, if the caller may see reviews.
    async fn find_open_review(&mut self, agent: Uuid) -> Option<Uuid> {
        if let Some(review) = self.open_reviews.as_ref()?.get(&agent) {
            return Some(*review);
        }
        let mut token = None;
        for _ in 0..MAX_REVIEW_PAGES {
            let query = ReviewFilterArgs::default()
                .query_parameters(Some("open"), &PageArgs::with_max_limit(token));
            let Ok(reply) = self.client.reviews(&query).await else {
                self.open_reviews = None;
                return None;
            };
            let open_reviews = self.open_reviews.as_mut()?;
            let reviews = reply.value.reviews.iter();
            open_reviews.extend(reviews.map(|review| (review.agent, review.id)));
            token = reply.value.next_page_token;
            if token.is_none() || open_reviews.contains_key(&agent) {
                break;
            }
        }
        self.open_reviews.as_ref()?.get(&agent).copied()
    }

    /// Number of the card's findings by severity.
    async fn describe_finding_counts(&self, id: Uuid) -> String {
        let findings = match self.client.findings(id).await {
            Ok(reply) => reply.value.findings,
            Err(error) => return format!("findings: unknown: {error}"),
        };
        let count = |severity: &str| {
            findings
                .iter()
                .filter(|finding| finding.severity == severity)
                .count()
        };
        let summary = format!(
            "findings: errors: {}, warnings: {}, notes: {}",
            count("error"),
            count("warning"),
            count("info")
        );
        if findings.is_empty() {
            return summary;
        }
        let program = program_name::program_name();
        format!("{summary}; `{program} show {id} --findings` lists them")
    }
}

/// Reasons for the state of an agent.
fn agent_state_reasons(console: &Console, agent: &Agent, domain: &DomainView) -> Vec<String> {
    let id = agent.hit.summary.id.to_string();
    let mut lines: Vec<String> = domain
        .not_listed
        .iter()
        .filter(|reason| reason.contains(&id))
        .map(|reason| format!("why: {}", console.shorten(reason, MAX_TEXT_COLUMNS)))
        .collect();
    if lines.is_empty() {
        let decision = &agent.decision;
        let reason = decision.reason.as_ref();
        let reason =
            reason.map(|reason| format!(": {}", console.shorten(reason, MAX_TEXT_COLUMNS)));
        let rules = match decision.rules.as_slice() {
            [] => String::new(),
            rules => format!(" (rule {})", rules.join(", ")),
        };
        lines.push(format!(
            "why: {} by {}{rules}{}",
            decision.state,
            decision.by,
            reason.unwrap_or_default()
        ));
    }
    lines
}
