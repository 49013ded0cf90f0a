//! What of some domains is their own: the facts that [`standing`] judges, as the database has them.

use std::collections::{BTreeSet, HashMap};

use a2a_registry_domain::coverage::{DomainFacts, Registrant, SourceFacts, Standing, standing};
use a2a_registry_domain::ownership::DomainState;
use a2a_registry_domain::source::SourceKind;
use a2a_registry_store::entity::{domain, proof, source, source_registrant, version_source};
use a2a_registry_store::{Handle, coverage, domains};
use url::Url;
use uuid::Uuid;

use crate::error::AppError;

/// Who stands behind the sources of some domains, and behind the versions of cards that they gave.
#[derive(Debug, Default)]
pub(crate) struct Standings {
    domains: HashMap<i64, DomainFacts>,
    registrants: HashMap<i64, Vec<source_registrant::Model>>,
}

impl Standings {
    /// Loads what is known of these domains and their sources.
    pub(crate) async fn load<'a>(
        on: &impl Handle,
        rows: impl IntoIterator<Item = &'a domain::Model>,
        sources: impl IntoIterator<Item = &'a source::Model>,
    ) -> Result<Self, AppError> {
        let rows: Vec<&domain::Model> = rows.into_iter().collect();
        let ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
        let proofs = domains::proofs_of(on, &ids).await?;
        let owners: BTreeSet<Uuid> = rows.iter().filter_map(|row| owner_of(row)).collect();
        let owners: Vec<Uuid> = owners.into_iter().collect();
        let owned = coverage::domains_owned(on, &owners).await?;
        let facts = |row: &&domain::Model| (row.id, domain_facts(row, &proofs, &owned));
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

    /// Who has registered a source, the first one first.
    pub(crate) fn registrants(&self, source: i64) -> &[source_registrant::Model] {
        self.registrants.get(&source).map_or(&[], Vec::as_slice)
    }

    /// Whose word stands behind what a source gave last; `all` are the live sources of its domain at least.
    pub(crate) fn of_source<'a>(
        &self,
        row: &source::Model,
        all: impl Iterator<Item = &'a source::Model> + Clone,
    ) -> Standing {
        let own = origin_of(&row.url);
        let answered_by = row.answered_by.clone().unwrap_or(own);
        self.of_answer(row, &answered_by, all)
    }

    /// Whose word would stand behind a source that somebody registers now.
    pub(crate) fn of_new<'a>(
        &self,
        row: &source::Model,
        by: &source_registrant::Model,
        all: impl Iterator<Item = &'a source::Model> + Clone,
    ) -> Standing {
        let (Some(domain), Some(kind)) = (self.domains.get(&row.domain_id), row.kind.known())
        else {
            return Standing::Nomination;
        };
        let origin = origin_of(&row.url);
        let facts = SourceFacts {
            kind,
            answered_by: &origin,
            origin: origin.clone(),
            is_named: false,
            registrants: vec![registrant(by)],
        };
        // Others who ask for the same URL stand behind it already.
        let same = all
            .clone()
            .filter(|one| one.url == row.url && one.domain_id == row.domain_id);
        let others = same.map(|one| self.of_source(one, all.clone())).max();
        standing(domain, &facts).max(others.unwrap_or(Standing::Nomination))
    }

    /// Whose word stands behind what this origin answered for a source.
    pub(crate) fn of_answer<'a>(
        &self,
        row: &source::Model,
        answered_by: &str,
        all: impl Iterator<Item = &'a source::Model> + Clone,
    ) -> Standing {
        // Nobody's word is known to stand behind a source of a kind that only a later build knows.
        let (Some(domain), Some(kind)) = (self.domains.get(&row.domain_id), row.kind.known())
        else {
            return Standing::Nomination;
        };
        if row.ended_at.is_some() {
            return Standing::Nomination;
        }
        // Whoever asks for the same URL of the same domain stands for the same thing.
        let asks_for_cards =
            |one: &source::Model| one.kind == SourceKind::Url || one.kind == SourceKind::Entry;
        let same = |one: &&source::Model| {
            one.domain_id == row.domain_id
                && one.ended_at.is_none()
                && one.url == row.url
                && (one.id == row.id || (asks_for_cards(one) && asks_for_cards(row)))
        };
        let alike = all.clone().filter(same);
        let named_by_own = |one: &source::Model| {
            let catalog = all.clone().find(|other| Some(other.id) == one.catalog_id);
            one.unlisted_since.is_none()
                && catalog.is_some_and(|catalog| {
                    self.of_source(catalog, std::iter::empty()) == Standing::Covered
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
        standing(domain, &facts)
    }

    /// Whose word stands behind a version: the strongest of those that gave it.
    pub(crate) fn of_version<'a>(
        &self,
        gave: impl Iterator<Item = &'a version_source::Model>,
        all: impl Iterator<Item = &'a source::Model> + Clone,
    ) -> Standing {
        gave.filter_map(|gave| {
            let row = all.clone().find(|row| row.id == gave.source_id)?;
            Some(self.of_answer(row, &gave.answered_by, all.clone()))
        })
        .max()
        .unwrap_or(Standing::Nomination)
    }
}

/// Scheme, host and port of a URL, the port where it is not the scheme's own.
pub(crate) fn origin_of(url: &str) -> String {
    Url::parse(url).map_or_else(|_| String::new(), |url| url.origin().ascii_serialization())
}

/// The account whose proof of a domain holds.
fn owner_of(row: &domain::Model) -> Option<Uuid> {
    row.owner_id.filter(|_| row.state == DomainState::Verified)
}

fn domain_facts(
    row: &domain::Model,
    proofs: &[proof::Model],
    owned: &[(Uuid, String, String)],
) -> DomainFacts {
    let owner = owner_of(row);
    let own = |proof: &&proof::Model| proof.domain_id == row.id;
    DomainFacts {
        name: row.name.clone(),
        origin: format!("{}://{}", row.scheme, row.name),
        owner,
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
