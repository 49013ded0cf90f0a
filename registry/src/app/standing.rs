//! Why a domain or an agent of it is not listed, in sentences that say what to do.

use crate::domain::source::SourceKind;
use crate::store::entity::{agent, domain, hold, source};

/// Sentences of one domain.
const MOST: usize = 60;

/// Everything that keeps a domain and its agents from being found.
pub(super) fn not_listed(
    row: &domain::Model,
    sources: &[source::Model],
    agents: &[agent::Model],
    holds: &[hold::Model],
) -> Vec<String> {
    let mut reasons = Vec::new();
    if let Some(by) = row.opted_out_by.as_deref() {
        reasons.push(match by {
            "record" => {
                "The domain opts out by its own TXT record (policy=none); remove it to be listed."
                    .into()
            }
            _ => "Its owner opted out; `domain set --opt-out false` takes that back.".to_owned(),
        });
    }
    for source in sources.iter().filter(|source| source.domain_id == row.id) {
        if is_catalog(source) {
            // One that is not there is no fault; one that cannot be read hides the cards that it names.
            if let Some(reason) = &source.liveness_reason {
                reasons.push(format!(
                    "The catalog at {} cannot be read: {reason}.",
                    source.url
                ));
            }
        } else if source.agent_id.is_none() {
            reasons.push(match source.last_success_at {
                _ if source.liveness == "new" => format!("{} was not asked yet.", source.url),
                None => format!(
                    "No card was found at {}: {}.",
                    source.url,
                    source
                        .liveness_reason
                        .as_deref()
                        .unwrap_or("the last attempt says why")
                ),
                Some(_) => format!(
                    "{} feeds no agent: the domain has as many as it may.",
                    source.url
                ),
            });
        }
    }
    for agent in agents.iter().filter(|agent| agent.domain_id == row.id) {
        reasons.extend(of_agent(agent, holds));
    }
    reasons.truncate(MOST);
    reasons
}

fn is_catalog(source: &source::Model) -> bool {
    matches!(
        source.kind.parse(),
        Ok(SourceKind::Ard | SourceKind::AiCatalog)
    )
}

fn of_agent(agent: &agent::Model, holds: &[hold::Model]) -> Vec<String> {
    let id = agent.id;
    let mut reasons: Vec<String> = holds
        .iter()
        .filter(|hold| hold.agent_id == id)
        .map(|hold| format!("Agent {id} is withheld ({}): {}.", hold.hold, hold.reason))
        .collect();
    match agent.lifecycle.as_str() {
        "pending" => reasons.push(format!(
            "Agent {id} waits for its first approval: a curator decides, or a proof of the domain lets the rules decide."
        )),
        "rejected" => reasons.push(format!(
            "Agent {id} was rejected; a changed card is looked at anew."
        )),
        "retired" => reasons.push(format!("Agent {id} has ended for good.")),
        _ if agent.liveness == "gone" => reasons.push(format!(
            "Agent {id} is found only where gone agents are asked for: {}.",
            agent.liveness_reason.as_deref().unwrap_or("its card cannot be reached")
        )),
        _ => {}
    }
    reasons
}
