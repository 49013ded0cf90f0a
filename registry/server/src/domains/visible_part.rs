//! Which part of a domain's sources and agents a caller sees (docs/model.md#visibility).

use std::collections::{BTreeMap, BTreeSet};

use a2a_registry_api::SourceView;
use a2a_registry_domain::coverage::Coverage;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::source::SourceKind;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{agent, attempt, domain, hold, proof, source};
use uuid::Uuid;

use crate::admission::coverage::Standings;
use crate::caller::Caller;
use crate::domains::view::{Sight, keeps, source_view};
use crate::sources::new_source;
use crate::visibility::visible_to_registrant;

/// What a caller sees of a domain's sources and agents: all of them where it is its own, otherwise what it has registered
/// and what is listed.
pub(crate) struct Part {
    pub(crate) sees_all: bool,
    /// The sources that the caller has registered, with when.
    pub(crate) own: BTreeMap<i64, i64>,
    /// The agents that are listed for the caller, or fed by a source of its own and not hidden from it.
    pub(crate) agents: BTreeSet<Uuid>,
    /// Whether an agent of the domain is listed for the caller.
    is_listed: bool,
}

/// The agents of some domains.
pub(crate) struct Agents {
    pub(crate) all: Vec<agent::Model>,
    /// Those of them that are listed for the caller.
    pub(crate) listed: Vec<agent::Model>,
    pub(crate) holds: Vec<hold::Model>,
}

impl Agents {
    /// Whether anything holds an agent back.
    fn holds(&self, agent: Uuid) -> bool {
        self.holds.iter().any(|hold| hold.agent_id == agent)
    }
}

/// What a caller is told of a domain itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    Everything,
    /// No more than of one that nobody knew before the caller has registered it.
    Nothing {
        since: Option<i64>,
    },
}

impl Part {
    pub(crate) fn of(
        caller: &Caller,
        row: &domain::Model,
        proofs: &[proof::Model],
        sources: &[source::Model],
        standings: &Standings,
        known: &Agents,
    ) -> Self {
        let of_domain = sources.iter().filter(|source| source.domain_id == row.id);
        let mut own = BTreeMap::new();
        let mut agents: BTreeSet<Uuid> = known
            .listed
            .iter()
            .filter(|agent| agent.domain_id == row.id)
            .map(|agent| agent.id)
            .collect();
        let is_listed = !agents.is_empty();
        for source in of_domain {
            let registrants = standings.registrants(source.id);
            let by_caller = registrants.iter().find(|one| caller.is(one.account_id));
            let Some(by_caller) = by_caller else { continue };
            own.insert(source.id, by_caller.registered_at);
            let mut all = known.all.iter();
            let is_known = source.kind.known().is_some();
            let fed = all.find(|agent| is_known && source.agent_id == Some(agent.id));
            agents.extend(
                fed.filter(|agent| visible_to_registrant(caller, agent, known.holds(agent.id)))
                    .map(|agent| agent.id),
            );
        }
        Self {
            sees_all: caller.may(Permission::SeeAll) || keeps(caller, row, proofs),
            own,
            agents,
            is_listed,
        }
    }

    pub(crate) fn told(
        &self,
        caller: &Caller,
        row: &domain::Model,
        proofs: &[proof::Model],
    ) -> Told {
        let trusted = proofs
            .iter()
            .filter(|proof| proof.domain_id == row.id)
            .any(|proof| caller.is(proof.vouched_account));
        if self.sees_all || self.is_listed || trusted || caller.is(row.account_id) {
            Told::Everything
        } else {
            Told::Nothing {
                since: self.own.values().min().copied(),
            }
        }
    }

    /// Whether the caller sees what became of a source.
    pub(crate) fn sees(&self, source: &source::Model) -> bool {
        let hidden = source.agent_id.is_some_and(|id| !self.agents.contains(&id));
        self.sees_all || (self.own.contains_key(&source.id) && !hidden)
    }

    /// A source as the caller sees it, with whether a proof covers it; `None` where it does not. What feeds a hidden agent
    /// looks like one that was never asked.
    pub(crate) fn source_view(
        &self,
        source: &source::Model,
        attempts: Option<Vec<attempt::Model>>,
        sight: Sight,
        coverage: Coverage,
    ) -> Option<SourceView> {
        let own = self.own.contains_key(&source.id);
        let agent = source.agent_id.filter(|id| self.agents.contains(id));
        let view = if self.sees_all {
            source_view(source, attempts, sight)
        } else if self.sees(source) {
            source_view(source, attempts, Sight::Owner)
        } else if agent.is_some() {
            source_view(source, None, Sight::Outside)
        } else {
            let since = Timestamp(*self.own.get(&source.id)?);
            return Some(unasked(source, since, Sight::Owner));
        };
        // Before a URL has brought an agent that the caller sees, who else has named it is nobody's to know.
        let is_known = self.sees_all || agent.is_some() || source.kind != SourceKind::Url;
        let coverage = if is_known {
            coverage
        } else {
            unasked_coverage(source)
        };
        Some(SourceView {
            agent,
            coverage: coverage.into(),
            own,
            ..view
        })
    }
}

/// A source as one that the caller was the first to register, at that moment, and that was never asked.
pub(crate) fn unasked(source: &source::Model, since: Timestamp, sight: Sight) -> SourceView {
    let new = source::Model {
        id: source.id,
        kind: source.kind.clone(),
        ..new_source(source.domain_id, SourceKind::Url, source.url.clone(), since)
    };
    SourceView {
        own: true,
        coverage: unasked_coverage(source).into(),
        ..source_view(&new, None, sight)
    }
}

/// Whether a proof would cover a source, as far as its kind alone says.
fn unasked_coverage(source: &source::Model) -> Coverage {
    match source.kind.known() {
        Some(SourceKind::Url | SourceKind::Entry) | None => Coverage::Nomination,
        Some(SourceKind::WellKnown | SourceKind::Ard | SourceKind::AiCatalog) => Coverage::Covered,
    }
}
