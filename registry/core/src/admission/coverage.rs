//! Loads the facts by which [`coverage_level`] decides whether a domain covers a source.

use std::collections::{BTreeSet, HashMap};

use a2a_registry_domain::coverage::{
    CoverageLevel, DomainFacts, Registrant, SourceFacts, coverage_level,
};
use a2a_registry_domain::ownership::DomainState;
use a2a_registry_domain::source::SourceKind;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{domain, proof, source, source_registrant, version_source};
use a2a_registry_store::{Handle, coverage, domains};
use url::Url;
use uuid::Uuid;

use crate::error::Result;
use crate::sources::{card_url, is_catalog, kind_of_place};

#[derive(Debug, Default)]
pub struct SourceCoverage {
    domains: HashMap<i64, DomainFacts>,
    registrants: HashMap<i64, Vec<source_registrant::Model>>,
}

impl SourceCoverage {
    pub async fn load<'a>(
        on: &impl Handle,
        rows: impl IntoIterator<Item = &'a domain::Model>,
        sources: impl IntoIterator<Item = &'a source::Model>,
        now: Timestamp,
    ) -> Result<Self> {
        let rows: Vec<&domain::Model> = rows.into_iter().collect();
        let ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
        let proofs = domains::proofs_of(on, &ids).await?;
        let owners: BTreeSet<Uuid> = rows.iter().filter_map(|row| owner_of(row)).collect();
        let owners: Vec<Uuid> = owners.into_iter().collect();
        let owned = coverage::domains_owned(on, &owners).await?;
        let facts = |row: &&domain::Model| (row.id, domain_facts(row, &proofs, &owned, now));
        let mut standings = Self {
            domains: rows.iter().map(facts).collect(),
            registrants: HashMap::new(),
        };
        let ids: Vec<i64> = sources.into_iter().map(|row| row.id).collect();
        for row in coverage::registrants_of(on, &ids).await? {
            standings
                .registrants
                .entry(row.source_id)
                .or_default()
                .push(row);
        }
        Ok(standings)
    }

    /// The registrants of a source, the first one first.
    pub fn registrants(&self, source: i64) -> &[source_registrant::Model] {
        self.registrants.get(&source).map_or(&[], Vec::as_slice)
    }

    pub fn add_registrant(&mut self, row: source_registrant::Model) {
        self.registrants.entry(row.source_id).or_default().push(row);
    }

    /// The coverage of the last card of a source; `all` includes at least the live sources of its domain with the same
    /// card URL, and their catalogs.
    pub fn of_source<'a>(
        &self,
        row: &source::Model,
        all: impl Iterator<Item = &'a source::Model> + Clone,
    ) -> CoverageLevel {
        let own = origin_of(&row.url);
        let answered_by = row.answered_by.clone().unwrap_or(own);
        self.of_answer(row, &answered_by, all)
    }

    /// The coverage of a catalog. One at a registered URL depends on who registered it, and not on what lists that URL.
    pub fn of_catalog(&self, row: &source::Model) -> CoverageLevel {
        self.of_source(row, std::iter::once(row))
    }

    /// The identifier of a catalog entry, if the catalog is the domain's: at a well-known path, or registered by the
    /// owner. Another catalog names no agent of the domain, and neither does one that has ended.
    pub fn identifier<'r>(
        &self,
        row: &'r source::Model,
        catalog: Option<&source::Model>,
    ) -> Option<&'r str> {
        let (identifier, catalog) = (row.identifier.as_deref()?, catalog?);
        let is_own = is_catalog(catalog) || self.of_catalog(catalog) == CoverageLevel::Covered;
        is_own.then_some(identifier)
    }

    /// The coverage of a source that the caller registers now.
    pub fn of_new<'a>(
        &self,
        row: &source::Model,
        by: &source_registrant::Model,
        all: impl Iterator<Item = &'a source::Model> + Clone,
    ) -> CoverageLevel {
        let (Some(domain), Some(kind)) = (self.domains.get(&row.domain_id), kind_of_place(row))
        else {
            return CoverageLevel::Nomination;
        };
        let origin = origin_of(&row.url);
        let facts = SourceFacts {
            kind,
            answered_by: &origin,
            origin: origin.clone(),
            is_named: false,
            registrants: vec![registrant(by)],
        };
        // Other sources of the same URL may have a higher level already.
        let same = all
            .clone()
            .filter(|one| card_url(one) == row.url && one.domain_id == row.domain_id);
        let others = same.map(|one| self.of_source(one, all.clone())).max();
        coverage_level(domain, &facts).max(others.unwrap_or(CoverageLevel::Nomination))
    }

    /// The coverage of a source's card that this origin gave.
    pub fn of_answer<'a>(
        &self,
        row: &source::Model,
        answered_by: &str,
        all: impl Iterator<Item = &'a source::Model> + Clone,
    ) -> CoverageLevel {
        // A source of an unknown kind, written by a later build, is not covered.
        let (Some(domain), Some(kind)) = (self.domains.get(&row.domain_id), kind_of_place(row))
        else {
            return CoverageLevel::Nomination;
        };
        if row.ended_at.is_some() {
            return CoverageLevel::Nomination;
        }
        // The registrants of all sources of this URL count together.
        let asks_for_cards =
            |one: &source::Model| one.kind == SourceKind::Url || one.kind == SourceKind::Entry;
        let same = |one: &&source::Model| {
            one.domain_id == row.domain_id
                && one.ended_at.is_none()
                && card_url(one) == card_url(row)
                && (one.id == row.id || (asks_for_cards(one) && asks_for_cards(row)))
        };
        let alike = all.clone().filter(same);
        let named_by_own = |one: &source::Model| {
            let catalog = all.clone().find(|other| Some(other.id) == one.catalog_id);
            one.unlisted_since.is_none()
                && catalog.is_some_and(|catalog| {
                    catalog.id != one.id && self.of_catalog(catalog) == CoverageLevel::Covered
                })
        };
        let facts = SourceFacts {
            kind,
            origin: origin_of(&row.url),
            answered_by,
            is_named: alike.clone().any(named_by_own),
            registrants: alike
                .flat_map(|one| self.registrants(one.id))
                .map(registrant)
                .collect(),
        };
        coverage_level(domain, &facts)
    }

    /// The coverage of a version: the highest of the sources that gave it.
    pub fn of_version<'a>(
        &self,
        gave: impl Iterator<Item = &'a version_source::Model>,
        all: impl Iterator<Item = &'a source::Model> + Clone,
    ) -> CoverageLevel {
        gave.filter_map(|gave| {
            let row = all.clone().find(|row| row.id == gave.source_id)?;
            Some(self.of_answer(row, &gave.answered_by, all.clone()))
        })
        .max()
        .unwrap_or(CoverageLevel::Nomination)
    }
}

/// The origin of a URL: scheme, host, and the port if it is not the scheme's default.
pub fn origin_of(url: &str) -> String {
    Url::parse(url).map_or_else(|_| String::new(), |url| url.origin().ascii_serialization())
}

/// The proved owner of a domain.
fn owner_of(row: &domain::Model) -> Option<Uuid> {
    row.owner_id.filter(|_| row.state == DomainState::Verified)
}

fn domain_facts(
    row: &domain::Model,
    proofs: &[proof::Model],
    owned: &[(Uuid, String, String)],
    now: Timestamp,
) -> DomainFacts {
    let owner = owner_of(row);
    let own = |proof: &&proof::Model| proof.domain_id == row.id;
    DomainFacts {
        name: row.name.clone(),
        origin: row.origin(),
        owner,
        vouched_owner: row.vouched_owner_at(now),
        vouched: proofs
            .iter()
            .filter(own)
            .filter_map(|proof| proof.vouched_account)
            .collect(),
        zones: proofs
            .iter()
            .filter(own)
            .filter(|proof| owner.is_some() && proof.account_id == owner)
            .filter_map(|proof| proof.zone.clone())
            .collect(),
        same_owner: owned
            .iter()
            .filter(|(account, ..)| Some(*account) == owner)
            .map(|(_, scheme, name)| format!("{scheme}://{name}"))
            .collect(),
    }
}

fn registrant(row: &source_registrant::Model) -> Registrant {
    Registrant {
        account: row.account_id,
        role: row.role.as_ref().and_then(|role| role.known()),
    }
}
