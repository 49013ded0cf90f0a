//! The registered sources of a domain, and those that would end with a registration.

use a2a_registry_domain::coverage::{CoverageLevel, is_domain_controlled};
use a2a_registry_domain::ownership::DomainState;
use a2a_registry_domain::source::SourceKind;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{agent, domain, source};
use a2a_registry_store::{WriteTransaction, agents, domains};
use uuid::Uuid;

use crate::admission::coverage::CoverageEvidence;
use crate::error::Result;
use crate::sources::source_kind_for_coverage;

pub struct DomainSources {
    pub sources: Vec<source::Model>,
    coverage_evidence: CoverageEvidence,
    pub agents: Vec<agent::Model>,
    /// Whether the domain was ever proved, or has an owner that an admin vouches for; `owner` is the current owner.
    pub is_proved: bool,
    pub owner: Option<Uuid>,
}

impl DomainSources {
    /// Loads the sources of a domain that the caller has locked.
    pub async fn load(
        write: &WriteTransaction,
        row: &domain::Model,
        now: Timestamp,
    ) -> Result<Self> {
        let owner = row.domain_owner_at(now);
        let agents = agents::live_agents_by_domain(write, &[row.id]).await?;
        let sources = domains::live_sources_by_domain(write, &[row.id]).await?;
        Ok(Self {
            coverage_evidence: CoverageEvidence::load(write, [row], &sources, now).await?,
            sources,
            agents,
            is_proved: row.state != DomainState::Unverified || owner.is_some(),
            owner,
        })
    }

    pub fn is_registered_by(&self, account: Uuid, source: i64) -> bool {
        let mut all = self.coverage_evidence.registrants(source).iter();
        all.any(|one| one.account_id == Some(account))
    }

    pub fn is_registered_by_others(&self, account: Uuid, source: i64) -> bool {
        let mut all = self.coverage_evidence.registrants(source).iter();
        all.any(|one| one.account_id != Some(account))
    }

    /// Whether a source belongs to another account that has proved the domain: it is at a location that only the
    /// domain controls, or the proof covers it. Other registrants cannot end such a source, even after the proof has
    /// lapsed.
    fn belongs_to_other_owner(&self, account: Uuid, source: &source::Model) -> bool {
        let coverage_level = || {
            self.coverage_evidence
                .source_coverage(source, self.sources.iter())
        };
        self.is_proved
            && self.owner != Some(account)
            && (is_domain_controlled_source(source) || coverage_level() == CoverageLevel::Covered)
    }

    /// Returns the sources that end when an account withdraws its registrations: those without another registrant, and
    /// the entries of catalogs that end, which belong to the catalog's owner.
    pub fn sources_ending(&self, account: Uuid, withdrawn: &[i64]) -> Vec<i64> {
        let mut ending: Vec<i64> = self
            .sources
            .iter()
            .filter(|source| withdrawn.contains(&source.id))
            .filter(|source| !self.is_registered_by_others(account, source.id))
            .filter(|source| !self.belongs_to_other_owner(account, source))
            .map(|source| source.id)
            .collect();
        let entries: Vec<i64> = self
            .sources
            .iter()
            .filter(|source| source.kind == SourceKind::Entry)
            .filter(|source| source.catalog_id.is_some_and(|id| ending.contains(&id)))
            .map(|source| source.id)
            .collect();
        ending.extend(entries);
        ending
    }

    /// Returns the agents that have no source once these sources have ended.
    pub fn agents_without_source(&self, ending_sources: &[i64]) -> Vec<&agent::Model> {
        let has_source = |agent: Uuid, stays: bool| {
            self.sources
                .iter()
                .filter(move |source| ending_sources.contains(&source.id) != stays)
                .any(move |source| source.agent_id == Some(agent))
        };
        self.agents
            .iter()
            .filter(|agent| has_source(agent.id, false) && !has_source(agent.id, true))
            .collect()
    }
}

pub fn has_approved_version(agent: &agent::Model) -> bool {
    agent.approved_version.is_some()
}

/// Whether a source is at a location that only its domain controls. A kind that only a later build knows counts as
/// one, so that no other registrant can end it.
pub fn is_domain_controlled_source(source: &source::Model) -> bool {
    source_kind_for_coverage(source).is_none_or(is_domain_controlled)
}
