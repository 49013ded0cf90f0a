//! Catalog entries of existing sources, and what an entry changes in them.

use a2a_crawler::catalog::CatalogEntry;
use a2a_registry_domain::coverage::CoverageLevel;
use a2a_registry_domain::source::{SourceKind, SourceState};
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::source;

use crate::crawl::ingest::group::Group;
use crate::sources::{asks, is_catalog, may_list_cards};

/// The effect of a catalog entry on an existing source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relisting {
    Same,
    /// The same URL, which the catalog names for the first time.
    Anew,
    /// Another URL than before.
    Moved,
    /// Another URL than in the catalog that takes precedence, or the URL of another entry.
    Elsewhere,
}

/// The precedence of catalogs of one domain, the first one first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CatalogRank {
    Ard,
    AiCatalog,
    /// At another URL, which the owner of the domain has registered.
    Owners,
    /// At another URL, which someone else has registered.
    Nominated,
}

impl Group {
    pub fn is_catalog(&self, source: i64) -> bool {
        self.sources.get(&source).is_some_and(is_catalog)
    }

    /// The source of a catalog's entry: the one with its identifier, else one with its URL.
    pub fn source_of(&self, catalog: &source::Model, entry: &CatalogEntry) -> Option<i64> {
        let all = || self.of_domain(catalog.domain_id);
        all()
            .find(|row| self.is_named(row, catalog, entry))
            .or_else(|| all().find(|row| asks(row, &entry.url)))
            .map(|row| row.id)
    }

    /// Whether an entry names a source by its identifier. The identifiers of a catalog that only nominates are its own:
    /// a source that the domain's catalog took over from it would still have the cards that it gave before.
    pub fn is_named(
        &self,
        row: &source::Model,
        catalog: &source::Model,
        entry: &CatalogEntry,
    ) -> bool {
        let are_shared =
            || self.rank(catalog) != CatalogRank::Nominated && self.identifier_of(row).is_some();
        row.identifier.as_ref() == Some(&entry.identifier)
            && (row.catalog_id == Some(catalog.id) || are_shared())
    }

    /// The effect of naming an existing source. The catalog that has named it keeps it; another one takes over if that
    /// one no longer names it, does not exist, or has lower precedence.
    pub fn relist(
        &mut self,
        id: i64,
        catalog: &source::Model,
        entry: &CatalogEntry,
        now: Timestamp,
    ) -> Relisting {
        let Some(row) = self.sources.get(&id) else {
            return Relisting::Same;
        };
        let rank = self.rank(catalog);
        // What no proof covers changes nothing that is registered, or that another catalog lists or has listed.
        let is_its_own = row.kind == SourceKind::Entry && row.catalog_id == Some(catalog.id);
        if id == catalog.id || (rank == CatalogRank::Nominated && !is_its_own) {
            return Relisting::Same;
        }
        if row.kind != SourceKind::Entry {
            return self.name(id, catalog, rank);
        }
        let speaks = self.is_listed_by_another(row, catalog, rank);
        let named = row.identifier.as_ref() == Some(&entry.identifier);
        let moves = named && row.url != entry.url.as_str();
        if speaks && row.unlisted_since.is_none() {
            return if moves {
                Relisting::Elsewhere
            } else {
                Relisting::Same
            };
        }
        let url = entry.url.as_str();
        let was_nominated = self.identifier_of(row).is_none();
        let taken = moves
            && self
                .of_domain(catalog.domain_id)
                .any(|other| other.kind == SourceKind::Entry && other.url == url);
        let Some(row) = self.touch(id) else {
            return Relisting::Same;
        };
        let is_anew = row.unlisted_since.is_some() || row.catalog_id != Some(catalog.id);
        row.catalog_id = Some(catalog.id);
        row.unlisted_since = None;
        row.unlisted_looks = 0;
        if was_nominated {
            row.identifier = Some(entry.identifier.clone());
        }
        if taken {
            return Relisting::Elsewhere;
        }
        follow_digest(row, entry, now);
        if moves {
            move_to(row, url, now);
            return Relisting::Moved;
        }
        if is_anew {
            Relisting::Anew
        } else {
            Relisting::Same
        }
    }

    /// Whether another existing catalog of the same precedence has listed an entry.
    fn is_listed_by_another(
        &self,
        row: &source::Model,
        catalog: &source::Model,
        rank: CatalogRank,
    ) -> bool {
        let by = row.catalog_id.and_then(|id| self.sources.get(&id));
        by.is_some_and(|by| {
            let there = by.liveness == SourceState::Fresh;
            by.id != catalog.id && there && self.rank(by) <= rank
        })
    }

    /// The precedence of a catalog among those of its domain.
    fn rank(&self, catalog: &source::Model) -> CatalogRank {
        match catalog.kind.known() {
            Some(SourceKind::Ard) => CatalogRank::Ard,
            Some(SourceKind::AiCatalog) => CatalogRank::AiCatalog,
            _ if self.standings.of_catalog(catalog) == CoverageLevel::Covered => {
                CatalogRank::Owners
            }
            _ => CatalogRank::Nominated,
        }
    }

    /// Records that a catalog names a registered URL. The source keeps its kind: it stays when the catalog drops it.
    fn name(&mut self, id: i64, catalog: &source::Model, rank: CatalogRank) -> Relisting {
        let by = |row: &source::Model| row.catalog_id.and_then(|id| self.sources.get(&id));
        let by = self.sources.get(&id).and_then(by);
        // A catalog at a well-known path takes over from a registered one, whose registration may be withdrawn.
        let is_named = by.is_some_and(|by| self.rank(by) <= rank.max(CatalogRank::AiCatalog));
        if is_named {
            return Relisting::Same;
        }
        if let Some(row) = self.touch(id) {
            row.catalog_id = Some(catalog.id);
        }
        Relisting::Anew
    }

    /// Whether the catalog that names a source states another digest than these bytes have. A registered source is not
    /// compared.
    pub fn has_other_digest(&self, source: i64, bytes: &[u8]) -> bool {
        let row = self.sources.get(&source);
        let row = row.filter(|row| row.kind == SourceKind::Entry);
        let stated = row.and_then(|row| row.entry_digest.as_deref());
        stated.is_some_and(|stated| stated != a2a_card::digest(bytes))
    }

    /// Has the catalogs of a source's domain fetched in full the next time.
    pub fn want_catalogs_of(&mut self, source: i64) {
        let Some(row) = self.sources.get(&source).cloned() else {
            return;
        };
        self.want_other_catalogs(&row);
    }

    pub fn want_other_catalogs(&mut self, catalog: &source::Model) {
        let others: Vec<i64> = self
            .of_domain(catalog.domain_id)
            .filter(|row| row.id != catalog.id && may_list_cards(row))
            .map(|row| row.id)
            .collect();
        for id in others {
            if let Some(row) = self.touch(id) {
                row.full_wanted = true;
            }
        }
    }
}

/// Gives a source another URL, which is fetched now.
fn move_to(row: &mut source::Model, url: &str, now: Timestamp) {
    row.url = url.to_owned();
    row.validator_url = None;
    row.next_due_at = now.0;
    row.planned_at = None;
    // The approval applies to the entries of the first fetch.
    row.approve_as = None;
}

/// Stores the digest that an entry states. Another digest promises another card, which is fetched now.
fn follow_digest(row: &mut source::Model, entry: &CatalogEntry, now: Timestamp) {
    if row.entry_digest != entry.digest {
        row.entry_digest.clone_from(&entry.digest);
        row.next_due_at = row.next_due_at.min(now.0);
        row.full_wanted = true;
    }
}
