//! An index of a batch by domain. A batch has the visits of up to two hundred domains, and a lookup for one of them
//! must not scan the rows of all.

use std::collections::{BTreeSet, HashMap};

use a2a_registry_domain::coverage::CoverageLevel;
use a2a_registry_store::entity::source;
use uuid::Uuid;

use crate::commit::agent_state::AgentChangeState;
use crate::crawl::ingest::batch::IngestBatch;

/// The sources and agents of each domain of a batch, by their keys.
#[derive(Debug, Default)]
pub struct BatchDomainIndex {
    sources: HashMap<i64, BTreeSet<i64>>,
    agents: HashMap<i64, BTreeSet<Uuid>>,
}

impl IngestBatch {
    /// Adds a source that was loaded or is new.
    pub fn add_source(&mut self, row: source::Model) {
        let of_domain = self.domain_index.sources.entry(row.domain_id).or_default();
        of_domain.insert(row.id);
        self.sources.insert(row.id, row);
    }

    /// Adds an agent that was loaded or is new.
    pub fn add_agent(&mut self, state: AgentChangeState) {
        let of_domain = self.domain_index.agents.entry(state.agent.domain_id);
        of_domain.or_default().insert(state.agent.id);
        self.agents.insert(state.agent.id, state);
    }

    /// The account that first registered each domain.
    pub fn first_registrants(&self) -> HashMap<i64, Option<Uuid>> {
        let domains = self.domains.values();
        domains.map(|row| (row.id, row.account_id)).collect()
    }

    /// All sources of a domain, including those that have ended in this batch, oldest first.
    pub fn all_domain_sources(&self, domain: i64) -> impl Iterator<Item = &source::Model> + Clone {
        let ids = self.domain_index.sources.get(&domain);
        let ids = ids.into_iter().flatten();
        ids.filter_map(move |id| self.sources.get(id))
    }

    /// The sources of a domain that have not ended.
    pub fn live_domain_sources(&self, domain: i64) -> impl Iterator<Item = &source::Model> {
        let all = self.all_domain_sources(domain);
        all.filter(|row| row.ended_at.is_none())
    }

    pub fn domain_agents(&self, domain: i64) -> impl Iterator<Item = &AgentChangeState> {
        let ids = self.domain_index.agents.get(&domain);
        let ids = ids.into_iter().flatten();
        ids.filter_map(move |id| self.agents.get(id))
    }

    pub fn agents_without_source(&self, domain: i64) -> Vec<Uuid> {
        let agents_with_source: BTreeSet<Uuid> = self
            .live_domain_sources(domain)
            .filter_map(|row| row.agent_id)
            .collect();
        self.domain_agents(domain)
            .map(|state| &state.agent)
            .filter(|agent| !agents_with_source.contains(&agent.id) && agent.retired_at.is_none())
            .map(|agent| agent.id)
            .collect()
    }

    /// The identifiers of an agent in catalogs of its domain, oldest catalog first.
    pub fn agent_catalog_identifiers(
        &self,
        domain: i64,
        agent: Uuid,
    ) -> impl Iterator<Item = &str> {
        self.live_domain_sources(domain)
            .filter(move |row| row.agent_id == Some(agent))
            .filter_map(move |row| self.own_catalog_entry_identifier(row))
    }

    /// The coverage of a source's card.
    pub fn source_coverage(&self, source: i64) -> CoverageLevel {
        self.sources
            .get(&source)
            .map_or(CoverageLevel::Nomination, |row| {
                let all = self.all_domain_sources(row.domain_id);
                self.coverage_evidence.source_coverage(row, all)
            })
    }

    /// The highest coverage among the sources of an agent of a domain.
    pub fn agent_coverage(&self, domain: i64, agent: Uuid) -> CoverageLevel {
        self.all_domain_sources(domain)
            .filter(|row| row.agent_id == Some(agent))
            .map(|row| self.source_coverage(row.id))
            .max()
            .unwrap_or(CoverageLevel::Nomination)
    }
}

#[cfg(test)]
mod tests {
    use a2a_registry_domain::source::SourceKind;
    use a2a_registry_domain::timestamp::Timestamp;

    use super::*;
    use crate::sources::new_source_row;

    /// The key of the catalog of the first domain.
    const CATALOGS: i64 = 100;

    /// The mixed sources of three domains, of which every fourth has ended, and a further one that a catalog has added
    /// later; and the catalog of each domain that lists them.
    fn group() -> IngestBatch {
        let mut group = IngestBatch::default();
        for domain in 0..3 {
            let row = new_source_row(domain, SourceKind::Ard, format!("c{domain}"), Timestamp(0));
            let id = CATALOGS + domain;
            group.add_source(source::Model { id, ..row });
        }
        for id in (1..=30).rev().chain([31]) {
            let row = new_source_row(id % 3, SourceKind::Url, format!("u{id}"), Timestamp(0));
            let ended_at = (id % 4 == 0).then_some(1);
            group.add_source(source::Model {
                id,
                ended_at,
                identifier: Some(format!("i{id}")),
                catalog_id: Some(CATALOGS + id % 3),
                agent_id: Some(Uuid::from_u64_pair(0, id.cast_unsigned() % 2)),
                ..row
            });
        }
        group
    }

    #[test]
    fn what_is_found_of_a_domain_is_what_a_scan_of_the_group_finds() {
        let group = group();
        let scan = |keep: &dyn Fn(&source::Model) -> bool| -> Vec<i64> {
            let rows = group.sources.values().filter(|row| keep(row));
            rows.map(|row| row.id).collect()
        };
        for domain in 0..4 {
            let all: Vec<i64> = group.all_domain_sources(domain).map(|row| row.id).collect();
            assert_eq!(all, scan(&|row| row.domain_id == domain));
            let live: Vec<i64> = group
                .live_domain_sources(domain)
                .map(|row| row.id)
                .collect();
            let is_live = |row: &source::Model| row.ended_at.is_none();
            assert_eq!(live, scan(&|row| row.domain_id == domain && is_live(row)));
            let agent = Uuid::from_u64_pair(0, 1);
            let identifiers: Vec<&str> = group.agent_catalog_identifiers(domain, agent).collect();
            let feeds = |row: &source::Model| row.agent_id == Some(agent) && is_live(row);
            let expected = scan(&|row| row.domain_id == domain && feeds(row));
            let expected: Vec<String> = expected.iter().map(|id| format!("i{id}")).collect();
            assert_eq!(identifiers, expected);
        }
    }
}
