//! Loads the evidence by which [`coverage_level`] decides whether a domain covers a source.

use std::collections::{BTreeSet, HashMap};

use a2a_registry_domain::coverage::{
    CoverageLevel, DomainCoverageFacts, SourceCoverageFacts, SourceRegistrant, coverage_level,
};
use a2a_registry_domain::ownership::DomainState;
use a2a_registry_domain::source::SourceKind;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{domain, proof, source, source_registrant, version_source};
use a2a_registry_store::{Executor, domains, registrants};
use url::Url;
use uuid::Uuid;

use crate::error::Result;
use crate::sources::{is_catalog_source, source_card_url, source_kind_for_coverage};

#[derive(Debug, Default)]
pub struct CoverageEvidence {
    domains: HashMap<i64, DomainCoverageFacts>,
    registrants: HashMap<i64, Vec<source_registrant::Model>>,
}

impl CoverageEvidence {
    pub async fn load<'a>(
        db: &impl Executor,
        domain_rows: impl IntoIterator<Item = &'a domain::Model>,
        sources: impl IntoIterator<Item = &'a source::Model>,
        now: Timestamp,
    ) -> Result<Self> {
        let domain_rows: Vec<&domain::Model> = domain_rows.into_iter().collect();
        let ids: Vec<i64> = domain_rows.iter().map(|row| row.id).collect();
        let proofs = domains::valid_proofs_by_domain(db, &ids).await?;
        let owners: BTreeSet<Uuid> = domain_rows
            .iter()
            .filter_map(|row| verified_domain_owner(row))
            .collect();
        let owners: Vec<Uuid> = owners.into_iter().collect();
        let owned = registrants::domains_by_owner(db, &owners).await?;
        let facts =
            |row: &&domain::Model| (row.id, domain_coverage_facts(row, &proofs, &owned, now));
        let mut evidence = Self {
            domains: domain_rows.iter().map(facts).collect(),
            registrants: HashMap::new(),
        };
        let ids: Vec<i64> = sources.into_iter().map(|row| row.id).collect();
        for row in registrants::registrants_of_sources(db, &ids).await? {
            evidence
                .registrants
                .entry(row.source_id)
                .or_default()
                .push(row);
        }
        Ok(evidence)
    }

    /// The facts of a domain, if its rows were loaded.
    pub fn domain_facts(&self, domain: i64) -> Option<&DomainCoverageFacts> {
        self.domains.get(&domain)
    }

    /// The registrants of a source, the first one first.
    pub fn registrants(&self, source: i64) -> &[source_registrant::Model] {
        self.registrants.get(&source).map_or(&[], Vec::as_slice)
    }

    pub fn add_registrant(&mut self, row: source_registrant::Model) {
        self.registrants.entry(row.source_id).or_default().push(row);
    }

    /// The coverage of the last card of a source. `domain_sources` must include the live sources of its domain with
    /// the same card URL, and their catalogs.
    pub fn source_coverage<'a>(
        &self,
        row: &source::Model,
        domain_sources: impl Iterator<Item = &'a source::Model> + Clone,
    ) -> CoverageLevel {
        let own = url_origin(&row.url);
        let answered_by = row.answered_by.clone().unwrap_or(own);
        self.response_coverage(row, &answered_by, domain_sources)
    }

    /// The coverage of a catalog. That of a catalog at a registered URL depends on who registered it, not on what
    /// lists the URL.
    pub fn catalog_coverage(&self, row: &source::Model) -> CoverageLevel {
        self.source_coverage(row, std::iter::once(row))
    }

    /// The identifier of a catalog entry, if the catalog belongs to the domain: it is at a well-known path or was
    /// registered by the owner. Other and ended catalogs cannot name an agent of the domain.
    pub fn own_catalog_entry_identifier<'r>(
        &self,
        row: &'r source::Model,
        catalog: Option<&source::Model>,
    ) -> Option<&'r str> {
        let (identifier, catalog) = (row.identifier.as_deref()?, catalog?);
        let is_own =
            is_catalog_source(catalog) || self.catalog_coverage(catalog) == CoverageLevel::Covered;
        is_own.then_some(identifier)
    }

    /// The coverage of a source that the caller is registering.
    pub fn new_source_coverage<'a>(
        &self,
        row: &source::Model,
        new_registrant: &source_registrant::Model,
        domain_sources: impl Iterator<Item = &'a source::Model> + Clone,
    ) -> CoverageLevel {
        let (Some(domain), Some(kind)) = (
            self.domains.get(&row.domain_id),
            source_kind_for_coverage(row),
        ) else {
            return CoverageLevel::Nomination;
        };
        let origin = url_origin(&row.url);
        let facts = SourceCoverageFacts {
            kind,
            answered_by: &origin,
            origin: origin.clone(),
            is_in_own_catalog: false,
            registrants: vec![registrant_facts(new_registrant)],
        };
        // Other sources of the same URL may already have a higher level.
        let same = domain_sources
            .clone()
            .filter(|one| source_card_url(one) == row.url && one.domain_id == row.domain_id);
        let others = same
            .map(|one| self.source_coverage(one, domain_sources.clone()))
            .max();
        coverage_level(domain, &facts).max(others.unwrap_or(CoverageLevel::Nomination))
    }

    /// The coverage of a source's card that was served by this origin.
    pub fn response_coverage<'a>(
        &self,
        row: &source::Model,
        answered_by: &str,
        domain_sources: impl Iterator<Item = &'a source::Model> + Clone,
    ) -> CoverageLevel {
        // A source of an unknown kind, written by a later build, has no coverage.
        let (Some(domain), Some(kind)) = (
            self.domains.get(&row.domain_id),
            source_kind_for_coverage(row),
        ) else {
            return CoverageLevel::Nomination;
        };
        if row.ended_at.is_some() {
            return CoverageLevel::Nomination;
        }
        // The registrants of all sources of this URL are counted together.
        let yields_card =
            |one: &source::Model| one.kind == SourceKind::Url || one.kind == SourceKind::Entry;
        let is_same_url = |one: &&source::Model| {
            one.domain_id == row.domain_id
                && one.ended_at.is_none()
                && source_card_url(one) == source_card_url(row)
                && (one.id == row.id || (yields_card(one) && yields_card(row)))
        };
        let same_url_sources = domain_sources.clone().filter(is_same_url);
        let is_in_own_catalog = |one: &source::Model| {
            let catalog = domain_sources
                .clone()
                .find(|other| Some(other.id) == one.catalog_id);
            one.unlisted_since.is_none()
                && catalog.is_some_and(|catalog| {
                    catalog.id != one.id && self.catalog_coverage(catalog) == CoverageLevel::Covered
                })
        };
        let facts = SourceCoverageFacts {
            kind,
            origin: url_origin(&row.url),
            answered_by,
            is_in_own_catalog: same_url_sources.clone().any(is_in_own_catalog),
            registrants: same_url_sources
                .flat_map(|one| self.registrants(one.id))
                .map(registrant_facts)
                .collect(),
        };
        coverage_level(domain, &facts)
    }

    /// The coverage of a version: the highest level of its sources.
    pub fn version_coverage<'a>(
        &self,
        version_sources: impl Iterator<Item = &'a version_source::Model>,
        domain_sources: impl Iterator<Item = &'a source::Model> + Clone,
    ) -> CoverageLevel {
        version_sources
            .filter_map(|gave| {
                let row = domain_sources
                    .clone()
                    .find(|row| row.id == gave.source_id)?;
                Some(self.response_coverage(row, &gave.answered_by, domain_sources.clone()))
            })
            .max()
            .unwrap_or(CoverageLevel::Nomination)
    }
}

/// The origin of a URL: scheme, host, and the port if it is not the scheme's default.
pub fn url_origin(url: &str) -> String {
    Url::parse(url).map_or_else(|_| String::new(), |url| url.origin().ascii_serialization())
}

/// The verified owner of a domain.
fn verified_domain_owner(row: &domain::Model) -> Option<Uuid> {
    row.owner_id.filter(|_| row.state == DomainState::Verified)
}

fn domain_coverage_facts(
    row: &domain::Model,
    proofs: &[proof::Model],
    owned_domains: &[(Uuid, String, String)],
    now: Timestamp,
) -> DomainCoverageFacts {
    let owner = verified_domain_owner(row);
    let is_own_proof = |proof: &&proof::Model| proof.domain_id == row.id;
    DomainCoverageFacts {
        name: row.name.clone(),
        origin: row.domain_origin(),
        owner,
        vouched_owner: row.vouched_owner_at(now),
        vouched_accounts: proofs
            .iter()
            .filter(is_own_proof)
            .filter_map(|proof| proof.vouched_account)
            .collect(),
        zones: proofs
            .iter()
            .filter(is_own_proof)
            .filter(|proof| owner.is_some() && proof.account_id == owner)
            .filter_map(|proof| proof.zone.clone())
            .collect(),
        same_owner_origins: owned_domains
            .iter()
            .filter(|(account, ..)| Some(*account) == owner)
            .map(|(_, scheme, name)| format!("{scheme}://{name}"))
            .collect(),
    }
}

fn registrant_facts(row: &source_registrant::Model) -> SourceRegistrant {
    SourceRegistrant {
        account: row.account_id,
        role: row.role.as_ref().and_then(|role| role.known_value()),
    }
}
