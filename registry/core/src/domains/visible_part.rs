//! The part of a domain's sources and agents that a caller sees (docs/model.md#visibility).

use std::collections::{BTreeMap, BTreeSet};

use a2a_registry_api::SourceView;
use a2a_registry_domain::coverage::Coverage;
use a2a_registry_domain::source::{SourceKind, SourceState};
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{agent, attempt, domain, hold, source};
use uuid::Uuid;

use crate::domains::domain_access::DomainAccess;
use crate::domains::row_views::source_view;
use crate::domains::rows::DomainRows;
use crate::sources::{kind_of_place, new_source};
use crate::visibility::caller::Caller;
use crate::visibility::visible_to_registrant;

/// The sources and agents of a domain that a caller sees: all of its own domain, those that it has registered of a
/// domain that it registered first, and of others the listed ones.
pub struct VisiblePart {
    pub access: DomainAccess,
    /// Whether the caller registered the domain first. Any other caller sees of its registered sources only that they
    /// are recorded, until an agent there is listed for it: whatever else it saw would be missing for a hidden agent.
    is_first: bool,
    /// The sources that the caller has registered, with the time of each registration.
    pub own: BTreeMap<i64, i64>,
    /// The ended sources that the caller has registered, with the time of their end. An end together with a hidden
    /// agent must not show, so to all but the first registrant they look like other recorded ones.
    ended: Vec<(source::Model, i64)>,
    /// The agents that are listed for the caller, or have a source of the first registrant and are not hidden from it.
    pub agents: BTreeSet<Uuid>,
}

pub struct DomainAgents {
    pub all: Vec<agent::Model>,
    pub listed: Vec<agent::Model>,
    pub holds: Vec<hold::Model>,
}

impl DomainAgents {
    fn holds(&self, agent: Uuid) -> bool {
        self.holds.iter().any(|hold| hold.agent_id == agent)
    }
}

impl VisiblePart {
    /// The part of a domain that a caller sees at this time; `rows` may include those of other domains.
    pub fn of(caller: &Caller, row: &domain::Model, rows: &DomainRows, now: Timestamp) -> Self {
        let (sources, known) = (&rows.sources, &rows.agents);
        let of_domain = sources.iter().filter(|source| source.domain_id == row.id);
        let mut own = BTreeMap::new();
        let mut agents: BTreeSet<Uuid> = known
            .listed
            .iter()
            .filter(|agent| agent.domain_id == row.id)
            .map(|agent| agent.id)
            .collect();
        let has_listed = !agents.is_empty();
        let is_first = caller.is(row.account_id);
        for source in of_domain {
            let registrants = rows.standings.registrants(source.id);
            let by_caller = registrants.iter().find(|one| caller.is(one.account_id));
            // What a catalog nominates counts as registered, but whether it began a source tells what others have
            // registered.
            let by_caller = by_caller.filter(|_| is_first || source.kind != SourceKind::Entry);
            let Some(by_caller) = by_caller else { continue };
            own.insert(source.id, by_caller.registered_at);
            let mut all = known.all.iter();
            let is_known = is_first && source.kind.known().is_some();
            let fed = all.find(|agent| is_known && source.agent_id == Some(agent.id));
            agents.extend(
                fed.filter(|agent| visible_to_registrant(caller, agent, known.holds(agent.id)))
                    .map(|agent| agent.id),
            );
        }
        let access = DomainAccess::of(caller, row, &rows.proofs, &rows.marks, has_listed, now);
        let is_live = |ended: &source::Model| {
            let mut own = sources.iter().filter(|one| own.contains_key(&one.id));
            own.any(|one| one.kind == ended.kind && one.url == ended.url)
        };
        let ended = rows.ended.iter().filter(|(ended, _)| {
            let is_own = ended.domain_id == row.id && !access.sees_all() && !is_first;
            is_own && ended.kind != SourceKind::Entry && !is_live(ended)
        });
        Self {
            access,
            is_first,
            ended: ended.cloned().collect(),
            own,
            agents,
        }
    }

    pub fn registered_since(&self) -> Option<i64> {
        let ended = self.ended.iter().map(|(_, at)| at);
        self.own.values().chain(ended).min().copied()
    }

    /// Whether the caller sees the results of a source.
    pub fn sees(&self, source: &source::Model) -> bool {
        let agent = source.agent_id;
        let is_shown = agent.map_or(self.is_first, |id| self.agents.contains(&id));
        self.access.sees_all() || (self.own.contains_key(&source.id) && is_shown)
    }

    /// When the caller registered a source of which it may see no more than that.
    pub fn recorded_at(&self, source: &source::Model) -> Option<i64> {
        let at = self.own.get(&source.id).copied();
        at.filter(|_| !self.is_first && !self.sees(source))
    }

    /// The ended sources, each with the time of its registration, each URL once.
    pub fn ended_sources(&self) -> impl Iterator<Item = (&source::Model, i64)> {
        let mut urls = BTreeSet::new();
        let ended = self.ended.iter();
        let once = ended.filter(move |(source, _)| {
            urls.insert((source.kind.as_str().to_owned(), source.url.clone()))
        });
        once.map(|(source, at)| (source, *at))
    }

    /// The view of a source with its coverage; `None` if the caller may not see it. Of the sources that the caller has
    /// registered, that of a hidden agent looks to the domain's first registrant like one that was never fetched, and
    /// all of them look alike to others.
    pub fn source_view(
        &self,
        source: &source::Model,
        attempts: Option<Vec<attempt::Model>>,
        coverage: Coverage,
    ) -> Option<SourceView> {
        if let Some(at) = self.recorded_at(source) {
            return Some(recorded_view(source, Timestamp(at)));
        }
        let own = self.own.contains_key(&source.id);
        let agent = source.agent_id.filter(|id| self.agents.contains(id));
        let view = if self.access.sees_all() {
            source_view(source, attempts, self.access)
        } else if self.sees(source) {
            source_view(source, attempts, DomainAccess::Owner)
        } else if agent.is_some() {
            source_view(source, None, DomainAccess::Outside)
        } else {
            let since = Timestamp(*self.own.get(&source.id)?);
            return Some(unfetched(source, since, DomainAccess::Owner));
        };
        // Until the URL has given an agent that the caller sees, its other registrants stay hidden.
        let is_known = self.access.sees_all() || agent.is_some() || source.kind != SourceKind::Url;
        let coverage = if is_known {
            coverage
        } else {
            unfetched_coverage(source)
        };
        Some(SourceView {
            agent,
            coverage: coverage.into(),
            own,
            ..view
        })
    }
}

/// The view of a source of which the caller sees that it has registered it, and nothing else.
pub fn recorded_view(source: &source::Model, since: Timestamp) -> SourceView {
    SourceView {
        state: SourceState::Recorded.into(),
        next_due: None,
        ..unfetched(source, since, DomainAccess::Outside)
    }
}

/// The view of a source as if the caller had been the first to register it, and it was never fetched.
fn unfetched(source: &source::Model, since: Timestamp, access: DomainAccess) -> SourceView {
    let new = source::Model {
        id: source.id,
        kind: source.kind.clone(),
        ..new_source(source.domain_id, SourceKind::Url, source.url.clone(), since)
    };
    SourceView {
        own: true,
        coverage: unfetched_coverage(source).into(),
        ..source_view(&new, None, access)
    }
}

/// Whether a proof would cover a source, by its place alone.
fn unfetched_coverage(source: &source::Model) -> Coverage {
    match kind_of_place(source) {
        Some(SourceKind::Url | SourceKind::Entry) | None => Coverage::Nomination,
        Some(SourceKind::WellKnown | SourceKind::Ard | SourceKind::AiCatalog) => Coverage::Covered,
    }
}
