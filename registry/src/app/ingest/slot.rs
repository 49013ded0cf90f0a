//! Which agent a source feeds (model.md section 3).

use serde_json::json;
use uuid::Uuid;

use super::group::Group;
use crate::app::App;
use crate::app::ledger::{AgentState, CRAWLER, Ledger};
use crate::app::sources::kind_of;
use crate::domain::event::EventKind;
use crate::domain::lifecycle::{Lifecycle, LivenessState, Visibility};
use crate::domain::source::SourceKind;
use crate::store::entity::{agent, source};

/// The slot of a domain's well-known paths (model.md section 3).
const WELL_KNOWN_SLOT: &str = "well-known";

impl App {
    /// The agent this source feeds: the one it fed before, the one in its slot, one of the same domain
    /// with this very content, or a new one. `None` where the domain has as many agents as it may.
    pub(super) fn agent_for(
        &self,
        group: &mut Group,
        ledger: &mut Ledger<'_>,
        source: i64,
        content_digest: &str,
    ) -> Option<Uuid> {
        let row = group.sources.get(&source)?;
        let (domain_id, known) = (row.domain_id, row.agent_id);
        let slot = slot_of(row);
        // The agent behind the very same URL.
        let same_place = group
            .sources
            .values()
            .find(|other| other.id != source && asks_alike(row, other))
            .and_then(|other| other.agent_id);
        let same_content = |state: &AgentState| {
            state
                .agent
                .newest_version
                .and_then(|id| group.versions.get(&id))
                .is_some_and(|newest| newest.content_digest == content_digest)
        };
        let fed = known.and_then(|id| group.agents.get(&id)).filter(|state| {
            // A further source keeps feeding an older slot's agent only while both say the same.
            state.agent.slot == slot || same_content(state) || same_place == Some(state.agent.id)
        });
        let in_domain = || {
            group
                .agents
                .values()
                .filter(|state| state.agent.domain_id == domain_id)
        };
        let found = fed
            .or_else(|| in_domain().find(|state| state.agent.slot == slot))
            .or_else(|| {
                let same_place = |state: &&AgentState| same_place == Some(state.agent.id);
                in_domain().find(same_place).filter(|_| known.is_none())
            })
            .or_else(|| in_domain().find(|state| known.is_none() && same_content(state)))
            .map(|state| state.agent.id);
        let id = match found {
            Some(id) => {
                // Both agents' entries name their sources.
                for fed in [known, Some(id)].into_iter().flatten() {
                    if known != Some(id) {
                        let data = json!({"source": row.url, "fed": fed == id});
                        ledger.agent_event(EventKind::AgentUpdated, fed, CRAWLER, data);
                    }
                }
                id
            }
            None if in_domain().count() >= self.config.limits.agents_per_domain => return None,
            None => {
                if let Some(known) = known {
                    let data = json!({"source": row.url, "fed": false});
                    ledger.agent_event(EventKind::AgentUpdated, known, CRAWLER, data);
                }
                self.new_agent(group, ledger, domain_id, slot)?
            }
        };
        if let Some(row) = group.sources.get_mut(&source) {
            row.agent_id = Some(id);
        }
        Some(id)
    }

    fn new_agent(
        &self,
        group: &mut Group,
        ledger: &mut Ledger<'_>,
        domain_id: i64,
        slot: String,
    ) -> Option<Uuid> {
        let domain = group.domains.get(&domain_id)?;
        let now = ledger.now().0;
        let agent = agent::Model {
            id: ledger.new_id(),
            domain_id,
            domain: domain.name.clone(),
            slot,
            urn: None,
            lifecycle: Lifecycle::Pending.as_str().into(),
            deprecation: None,
            visibility: Visibility::Public.as_str().into(),
            labels: "{}".into(),
            pins: String::new(),
            claimed_by: None,
            owner_id: domain.owner_id,
            submitter: domain.account_id,
            approved_version: None,
            newest_version: None,
            tls: false,
            liveness: LivenessState::Fresh.as_str().into(),
            liveness_reason: None,
            last_seen_at: Some(now),
            last_changed_at: None,
            gone_since: None,
            changes_since: now,
            changes: 0,
            created_at: now,
            updated_at: now,
            retired_at: None,
        };
        let id = agent.id;
        let data = json!({"domain": agent.domain, "slot": agent.slot});
        ledger.agent_event(EventKind::AgentDiscovered, id, CRAWLER, data);
        group.agents.insert(
            id,
            AgentState {
                agent,
                holds: Vec::new(),
                open_review: None,
            },
        );
        Some(id)
    }
}

/// The slot whose agent a source gives the cards of (model.md section 3). A catalog's identifier is marked as
/// one, so that none can pass for another kind of slot.
fn slot_of(row: &source::Model) -> String {
    match (kind_of(row), &row.identifier) {
        (SourceKind::WellKnown, _) => WELL_KNOWN_SLOT.to_owned(),
        (SourceKind::Entry, Some(identifier)) => format!("entry {identifier}"),
        _ => row.url.clone(),
    }
}

/// Whether two sources of a domain ask for one URL.
fn asks_alike(one: &source::Model, other: &source::Model) -> bool {
    let cards = |row: &source::Model| matches!(kind_of(row), SourceKind::Url | SourceKind::Entry);
    one.domain_id == other.domain_id
        && other.ended_at.is_none()
        && cards(one)
        && cards(other)
        && one.url == other.url
}
