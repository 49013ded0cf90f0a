//! Why a domain or an agent of it is not listed, in sentences that say what to do.

use std::collections::HashMap;

use a2a_registry_domain::admission_rules::{AdmissionFacts, Obstacle, approval_obstacles};
use a2a_registry_domain::coverage::CoverageLevel;
use a2a_registry_domain::lifecycle::{Lifecycle, LivenessState};
use a2a_registry_domain::ownership::{DomainState, OptOut};
use a2a_registry_domain::signature::SignatureState;
use a2a_registry_domain::source::SourceState;
use a2a_registry_store::entity::{agent, domain, hold, source, version};
use a2a_registry_store::versions;
use uuid::Uuid;

use crate::agents::records::{card_name, current_version_id};
use crate::context::AppContext;
use crate::error::Result;
use crate::sources::is_catalog_source;
use crate::text::{self, LINE};

const MAX_REASONS: usize = 60;

/// Explains why a domain and these of its sources and agents are not listed.
pub async fn load_unlisted_reasons<'a>(
    context: &AppContext,
    row: &domain::Model,
    sources: impl Iterator<Item = &'a source::Model>,
    agents: &[agent::Model],
    holds: &[hold::Model],
) -> Result<Vec<String>> {
    let state = row.state()?;
    let is_held = |agent: &&agent::Model| holds.iter().any(|hold| hold.agent_id == agent.id);
    let current_versions = agents
        .iter()
        .filter(|agent| {
            agent.domain_id == row.id && (!is_agent_searchable(agent) || is_held(agent))
        })
        .filter_map(current_version_id);
    let version_ids: Vec<Uuid> = current_versions.take(MAX_REASONS).collect();
    let versions = versions::versions_by_ids(&context.store, &version_ids).await?;
    let named = |version: &version::Model| Some((version.agent_id, card_name(version)?));
    let names: HashMap<Uuid, String> = versions.iter().filter_map(named).collect();
    let agent_and_obstacles = |version: &version::Model| {
        let coverage_level = version.standing.known_value();
        let facts = AdmissionFacts {
            domain: &row.name,
            verified: state == DomainState::Verified,
            change: None,
            admitted: coverage_level.is_some_and(CoverageLevel::is_admitted),
            has_error: version.has_error,
            signature_invalid: version.signature.could_be(SignatureState::Invalid),
            person_approved: None,
            permitting_rule: None,
        };
        (
            version.agent_id,
            approval_obstacles(&facts, &context.rules()),
        )
    };
    let obstacles: HashMap<Uuid, Vec<Obstacle>> =
        versions.iter().map(agent_and_obstacles).collect();
    let agent_details = UnlistedAgentDetails { obstacles, names };
    Ok(collect_unlisted_reasons(
        (row, state),
        sources,
        agents,
        holds,
        &agent_details,
    ))
}

struct UnlistedAgentDetails {
    /// Why the rules do not approve the card of each agent.
    obstacles: HashMap<Uuid, Vec<Obstacle>>,
    /// The name of each agent in the card that it shows, or would show.
    names: HashMap<Uuid, String>,
}

impl UnlistedAgentDetails {
    /// The agent's name in sentences: its card's name, quoted as foreign text, and its id, by which clients match a
    /// sentence to its agent; the id alone if no card is known.
    fn display_name(&self, agent: Uuid) -> String {
        match self.names.get(&agent) {
            Some(name) => format!("Agent {} ({agent})", text::quoted_line(name, LINE)),
            None => format!("Agent {agent}"),
        }
    }
}

/// Whether every search that allows it finds an agent, unless it is on hold.
fn is_agent_searchable(agent: &agent::Model) -> bool {
    let lifecycle = agent.lifecycle.known_value();
    matches!(lifecycle, Some(Lifecycle::Approved | Lifecycle::Deprecated))
        && agent.liveness != LivenessState::Gone
}

fn missing_agent_reason(source: &source::Model) -> String {
    match source.last_success_at {
        _ if source.liveness == SourceState::New => {
            format!("{} has not been fetched yet.", source.url)
        }
        None => format!(
            "No card was found at {}: {}.",
            source.url,
            source
                .liveness_reason
                .as_deref()
                .unwrap_or("see the last attempt")
        ),
        Some(_) => match &source.limit_met {
            Some(limit) => format!("No agent was created from {}: {limit}.", source.url),
            None => format!("{} is fetched again before its card is shown.", source.url),
        },
    }
}

fn collect_unlisted_reasons<'a>(
    (row, state): (&domain::Model, DomainState),
    sources: impl Iterator<Item = &'a source::Model>,
    agents: &[agent::Model],
    holds: &[hold::Model],
    agent_details: &UnlistedAgentDetails,
) -> Vec<String> {
    let mut reasons = Vec::new();
    if let Some(opted_out_by) = &row.opted_out_by {
        reasons.push(match opted_out_by.known_value() {
            Some(OptOut::Record) => {
                "The domain is opted out by its own TXT record (policy=none); remove it to be listed."
                    .into()
            }
            Some(OptOut::Owner) => {
                "The owner opted out. To list it again, run `domain set --opt-out false`."
                    .to_owned()
            }
            None => format!(
                "It has opted out in a way that only a later version of this registry knows ({}).",
                opted_out_by.as_str()
            ),
        });
    }
    let sources: Vec<&source::Model> = sources
        .filter(|source| source.domain_id == row.id)
        .collect();
    for source in &sources {
        let lists_cards = sources.iter().any(|one| one.catalog_id == Some(source.id));
        if is_catalog_source(source) || lists_cards {
            // A missing catalog is no error. An unreadable one hides the cards that it names.
            if let Some(reason) = &source.liveness_reason {
                reasons.push(format!(
                    "The catalog at {} cannot be read: {reason}.",
                    source.url
                ));
            }
        } else if source.agent_id.is_none() {
            reasons.push(missing_agent_reason(source));
        }
    }
    for agent in agents.iter().filter(|agent| agent.domain_id == row.id) {
        reasons.extend(unlisted_agent_reasons(
            (row, state),
            agent,
            holds,
            agent_details,
        ));
    }
    reasons.truncate(MAX_REASONS);
    reasons
}

/// Explains why a domain has no proof, and what lets the rules decide. Before a domain has an owner, every account
/// that has registered a nominated URL may become the owner.
const fn unproved_reason(state: DomainState, is_provable: bool, nominated: bool) -> &'static str {
    match (state, nominated) {
        (DomainState::OptedOut, _) => {
            "the domain has opted out of being listed; no decision is made until the opt-out ends"
        }
        (_, false) if !is_provable => {
            "this domain cannot be proved (only a host name on port 443 over https can); the rules decide \
             after an admin has vouched for it (`domain vouch`)"
        }
        (_, true) if !is_provable => {
            "this domain cannot be proved (only a host name on port 443 over https can); the rules decide \
             after an admin has vouched for an account that registered this URL (`domain vouch --account`)"
        }
        (DomainState::Lapsed, false) => {
            "the domain's proof has lapsed; the rules decide after a new proof"
        }
        (DomainState::Lapsed, true) => {
            "the domain's proof has lapsed; the rules decide after an account that registered this URL has \
             proved the domain"
        }
        (DomainState::Disputed, false) => {
            "two accounts claim the domain; the rules decide once it belongs to one of them"
        }
        (DomainState::Disputed, true) => {
            "two accounts claim the domain; the rules decide once it belongs to an account that registered \
             this URL"
        }
        (_, false) => "no account has proved the domain yet; the rules decide after a proof",
        (_, true) => {
            "no account has proved the domain yet; the rules decide after an account that registered this \
             URL has proved it"
        }
    }
}

/// Explains why the rules do not approve the first card of an agent, and what would change that.
fn pending_card_reason(obstacles: &[Obstacle], state: DomainState, is_provable: bool) -> String {
    let is_unproved = obstacles.contains(&Obstacle::Unproved);
    let nominated = obstacles.contains(&Obstacle::Nomination);
    let obstacle_text = |obstacle: &Obstacle| match obstacle {
        Obstacle::Unproved => unproved_reason(state, is_provable, nominated),
        // A registrant that an admin vouches for is not an owner.
        Obstacle::Nomination if !is_provable => {
            "no account that an admin has vouched for has registered its URL; an admin can vouch for an account \
             that registered it (`domain vouch --account`), or the domain's catalog can name it"
        }
        Obstacle::Nomination => {
            "its URL was not registered by the domain's owner, so the domain's proof does not cover it; the owner can \
             register it too, or name it in the domain's catalog"
        }
        Obstacle::ErrorFinding => {
            "its card has findings of severity error; publish a corrected card"
        }
        Obstacle::InvalidSignature => "a signature of its card is invalid, so no rule approves it",
        Obstacle::Change => "it has changed too much for the rules to decide",
    };
    let texts: Vec<&str> = obstacles
        .iter()
        .filter(|obstacle| !(is_unproved && **obstacle == Obstacle::Nomination))
        .map(obstacle_text)
        .collect();
    if texts.is_empty() {
        "a curator decides".into()
    } else {
        format!(
            "a curator decides, because {}",
            texts.join(", and because ")
        )
    }
}

fn unlisted_agent_reasons(
    (row, state): (&domain::Model, DomainState),
    agent: &agent::Model,
    holds: &[hold::Model],
    agent_details: &UnlistedAgentDetails,
) -> Vec<String> {
    let id = agent.id;
    let name = agent_details.display_name(id);
    let obstacles = agent_details
        .obstacles
        .get(&id)
        .map_or(&[][..], Vec::as_slice);
    let mut reasons: Vec<String> = holds
        .iter()
        .filter(|hold| hold.agent_id == id)
        .map(|hold| {
            let kind = hold.hold.as_str();
            format!("{name} is on hold ({kind}): {}.", hold.reason)
        })
        .collect();
    match agent.lifecycle.known_value() {
        None => reasons.push(format!(
            "{name} is hidden: only a later version of this registry knows its state ({}).",
            agent.lifecycle.as_str()
        )),
        Some(Lifecycle::Pending) => reasons.push(format!(
            "{name} waits for its first approval: {}.",
            pending_card_reason(obstacles, state, row.can_be_proved())
        )),
        Some(Lifecycle::Rejected) => reasons.push(format!(
            "{name} was rejected. A changed card is reviewed again."
        )),
        Some(Lifecycle::Retired) => reasons.push(format!("{name} is retired for good.")),
        _ if agent.liveness == LivenessState::Gone => reasons.push(format!(
            "{name} is found only by searches that include gone agents: {}.",
            agent
                .liveness_reason
                .as_deref()
                .unwrap_or("its card cannot be reached")
        )),
        _ => {}
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_obstacle_to_a_rule_decision_is_named() {
        use DomainState::{Disputed, Lapsed, OptedOut, Unverified, Verified};
        use Obstacle::{ErrorFinding, Nomination, Unproved};
        let own = [Unproved].as_slice();
        let nominated = [Unproved, Nomination].as_slice();
        let beside = [Nomination, ErrorFinding].as_slice();
        for (obstacles, state, is_provable, said, not_said) in [
            (
                own,
                Unverified,
                true,
                "no account has proved the domain yet; the rules decide after a proof",
                "URL",
            ),
            // The domain has no owner yet, so no registrant differs from the owner.
            (
                nominated,
                Unverified,
                true,
                "after an account that registered this URL has proved it",
                "owner",
            ),
            (own, Unverified, false, "cannot be proved", "no account"),
            (own, Lapsed, false, "`domain vouch`", "lapsed"),
            (
                nominated,
                Unverified,
                false,
                "that registered this URL",
                "no account",
            ),
            (own, Lapsed, true, "proof has lapsed", "no account"),
            (
                nominated,
                Lapsed,
                true,
                "that registered this URL",
                "no account",
            ),
            (own, Disputed, true, "two accounts claim", "no account"),
            (
                nominated,
                Disputed,
                true,
                "that registered this URL",
                "no account",
            ),
            (own, OptedOut, true, "opted out of being listed", "proof"),
            (beside, Verified, true, "the owner can", "no account"),
            (beside, Verified, false, "`domain vouch --account`", "owner"),
            (beside, Verified, true, ", and because its card", "proved"),
            (&[], Verified, true, "a curator decides", "because"),
        ] {
            let told = pending_card_reason(obstacles, state, is_provable);
            assert!(told.contains(said), "{obstacles:?}, {state}: {told}");
            assert!(!told.contains(not_said), "{obstacles:?}, {state}: {told}");
        }
    }
}
