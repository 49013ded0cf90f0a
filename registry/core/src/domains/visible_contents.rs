//! The part of a domain's sources and agents that a caller sees
//! (docs/publish/private-cards.md#who-sees-what-of-a-domain).

use std::collections::{BTreeMap, BTreeSet};

use a2a_registry_api::SourceView;
use a2a_registry_domain::coverage::Coverage;
use a2a_registry_domain::source::{SourceKind, SourceState};
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{agent, domain, fetch_attempt, hold, source};
use uuid::Uuid;

use crate::domains::domain_access::DomainAccess;
use crate::domains::domain_rows::DomainRows;
use crate::domains::row_views::source_view;
use crate::sources::{new_source_row, source_kind_for_coverage};
use crate::visibility::caller::Caller;
use crate::visibility::is_visible_to_registrant;

/// The sources and agents of a domain that a caller sees: all of them if it owns the domain, those that it has
/// registered if it registered the domain first, and otherwise the listed ones.
pub struct VisibleDomainContents {
    pub access: DomainAccess,
    /// Whether the caller registered the domain first. To any other caller its registered sources only show as
    /// recorded until it can find an agent there: anything more would be missing for a hidden agent, and so reveal it.
    is_first_registrant: bool,
    /// The sources that the caller has registered, with the time of each registration.
    pub registered_sources: BTreeMap<i64, i64>,
    /// The ended sources that the caller has registered, with the time of their end. To all but the first registrant
    /// they look like other recorded sources, because the end of a source must not reveal that a hidden agent ended
    /// with it.
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
    fn has_hold(&self, agent: Uuid) -> bool {
        self.holds.iter().any(|hold| hold.agent_id == agent)
    }
}

impl VisibleDomainContents {
    /// Selects the part of a domain that a caller sees at this time; `rows` may include rows of other domains.
    pub fn for_caller(
        caller: &Caller,
        row: &domain::Model,
        rows: &DomainRows,
        now: Timestamp,
    ) -> Self {
        let (sources, domain_agents) = (&rows.sources, &rows.agents);
        let domain_sources = sources.iter().filter(|source| source.domain_id == row.id);
        let mut registered_sources = BTreeMap::new();
        let mut agents: BTreeSet<Uuid> = domain_agents
            .listed
            .iter()
            .filter(|agent| agent.domain_id == row.id)
            .map(|agent| agent.id)
            .collect();
        let has_listed_agent = !agents.is_empty();
        let is_first_registrant = caller.is_account(row.account_id);
        for source in domain_sources {
            let registrants = rows.coverage_evidence.registrants(source.id);
            let by_caller = registrants
                .iter()
                .find(|one| caller.is_account(one.account_id));
            // URLs that a catalog nominates count as registered, but whether the catalog created a source reveals what
            // others have registered.
            let by_caller =
                by_caller.filter(|_| is_first_registrant || source.kind != SourceKind::Entry);
            let Some(by_caller) = by_caller else { continue };
            registered_sources.insert(source.id, by_caller.registered_at);
            let mut all = domain_agents.all.iter();
            let is_known = is_first_registrant && source.kind.known_value().is_some();
            let agent_of_source = all.find(|agent| is_known && source.agent_id == Some(agent.id));
            agents.extend(
                agent_of_source
                    .filter(|agent| {
                        is_visible_to_registrant(caller, agent, domain_agents.has_hold(agent.id))
                    })
                    .map(|agent| agent.id),
            );
        }
        let access = DomainAccess::for_caller(
            caller,
            row,
            &rows.proofs,
            &rows.fingerprints,
            has_listed_agent,
            now,
        );
        let is_live = |ended: &source::Model| {
            let mut own = sources
                .iter()
                .filter(|one| registered_sources.contains_key(&one.id));
            own.any(|one| one.kind == ended.kind && one.url == ended.url)
        };
        let ended = rows.ended_sources.iter().filter(|(ended, _)| {
            let is_own = ended.domain_id == row.id && !access.sees_all() && !is_first_registrant;
            is_own && ended.kind != SourceKind::Entry && !is_live(ended)
        });
        Self {
            access,
            is_first_registrant,
            ended: ended.cloned().collect(),
            registered_sources,
            agents,
        }
    }

    pub fn first_registered_at(&self) -> Option<i64> {
        let ended = self.ended.iter().map(|(_, at)| at);
        self.registered_sources.values().chain(ended).min().copied()
    }

    /// Whether the caller sees the results of a source.
    pub fn sees_source_results(&self, source: &source::Model) -> bool {
        let agent = source.agent_id;
        let is_shown = agent.map_or(self.is_first_registrant, |id| self.agents.contains(&id));
        self.access.sees_all() || (self.registered_sources.contains_key(&source.id) && is_shown)
    }

    /// When the caller registered a source that it may only see as recorded.
    pub fn recorded_at(&self, source: &source::Model) -> Option<i64> {
        let at = self.registered_sources.get(&source.id).copied();
        at.filter(|_| !self.is_first_registrant && !self.sees_source_results(source))
    }

    /// The ended sources with the times of their registration, each URL once.
    pub fn ended_sources(&self) -> impl Iterator<Item = (&source::Model, i64)> {
        let mut urls = BTreeSet::new();
        let ended = self.ended.iter();
        let once = ended.filter(move |(source, _)| {
            urls.insert((source.kind.as_str().to_owned(), source.url.clone()))
        });
        once.map(|(source, at)| (source, *at))
    }

    /// The view of a source with its coverage; `None` if the caller may not see it. To the domain's first registrant,
    /// its own source of a hidden agent looks as if it was never fetched; to other registrants all their sources look
    /// alike.
    pub fn source_view(
        &self,
        source: &source::Model,
        attempts: Option<Vec<fetch_attempt::Model>>,
        coverage: Coverage,
    ) -> Option<SourceView> {
        if let Some(at) = self.recorded_at(source) {
            return Some(source_registration_view(source, Timestamp(at)));
        }
        let own = self.registered_sources.contains_key(&source.id);
        let agent = source.agent_id.filter(|id| self.agents.contains(id));
        let view = if self.access.sees_all() {
            source_view(source, attempts, self.access)
        } else if self.sees_source_results(source) {
            source_view(source, attempts, DomainAccess::Owner)
        } else if agent.is_some() {
            source_view(source, None, DomainAccess::Public)
        } else {
            let since = Timestamp(*self.registered_sources.get(&source.id)?);
            return Some(unfetched_source_view(source, since, DomainAccess::Owner));
        };
        // The other registrants of a URL stay hidden until the URL has an agent that the caller sees.
        let is_known = self.access.sees_all() || agent.is_some() || source.kind != SourceKind::Url;
        let coverage = if is_known {
            coverage
        } else {
            location_only_coverage(source)
        };
        Some(SourceView {
            agent,
            coverage: coverage.into(),
            own,
            ..view
        })
    }
}

/// The view of a source that shows the caller its own registration and nothing else.
pub fn source_registration_view(source: &source::Model, since: Timestamp) -> SourceView {
    SourceView {
        state: SourceState::Recorded.into(),
        next_due: None,
        ..unfetched_source_view(source, since, DomainAccess::Public)
    }
}

/// The view of a source as if the caller had been the first to register it, and it was never fetched.
fn unfetched_source_view(
    source: &source::Model,
    since: Timestamp,
    access: DomainAccess,
) -> SourceView {
    let new_row = source::Model {
        id: source.id,
        kind: source.kind.clone(),
        ..new_source_row(source.domain_id, SourceKind::Url, source.url.clone(), since)
    };
    SourceView {
        own: true,
        coverage: location_only_coverage(source).into(),
        ..source_view(&new_row, None, access)
    }
}

/// Whether a proof would cover a source, judged by its location alone.
fn location_only_coverage(source: &source::Model) -> Coverage {
    match source_kind_for_coverage(source) {
        Some(SourceKind::Url | SourceKind::Entry) | None => Coverage::Nomination,
        Some(SourceKind::WellKnown | SourceKind::Ard | SourceKind::AiCatalog) => Coverage::Covered,
    }
}
