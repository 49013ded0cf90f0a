//! Catalog entries of existing sources, and the changes that an entry makes to them.

use a2a_crawler::catalog::CatalogCardEntry;
use a2a_registry_domain::coverage::CoverageLevel;
use a2a_registry_domain::source::{SourceKind, SourceState};
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::source;

use crate::crawl::ingest::batch::IngestBatch;
use crate::sources::{fetches_card_at, is_catalog_source, may_list_cards};

/// The effect of a catalog entry on an existing source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CatalogEntryEffect {
    Unchanged,
    /// The same URL, which the catalog lists for the first time.
    NewlyListed,
    /// A new URL.
    Moved,
    /// A URL that differs from that in the catalog with precedence, or the URL of another entry.
    OtherUrl,
}

/// The precedence of catalogs of one domain, highest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CatalogRank {
    Ard,
    AiCatalog,
    /// A catalog at another URL, which the owner of the domain has registered.
    OwnerRegistered,
    /// A catalog at another URL, which someone else has registered.
    Nominated,
}

impl IngestBatch {
    pub fn is_catalog_source(&self, source: i64) -> bool {
        self.sources.get(&source).is_some_and(is_catalog_source)
    }

    /// The source of a catalog entry: the one with its identifier, else one with its URL.
    pub fn entry_source(&self, catalog: &source::Model, entry: &CatalogCardEntry) -> Option<i64> {
        let all = || self.live_domain_sources(catalog.domain_id);
        all()
            .find(|row| self.is_named_by_entry(row, catalog, entry))
            .or_else(|| all().find(|row| fetches_card_at(row, &entry.url)))
            .map(|row| row.id)
    }

    /// Whether an entry names a source by its identifier. The identifiers of a catalog that only nominates are
    /// separate: if the domain's catalog took over such a source, it would still have the earlier cards.
    pub fn is_named_by_entry(
        &self,
        row: &source::Model,
        catalog: &source::Model,
        entry: &CatalogCardEntry,
    ) -> bool {
        let are_shared = || {
            self.catalog_rank(catalog) != CatalogRank::Nominated
                && self.own_catalog_entry_identifier(row).is_some()
        };
        row.identifier.as_ref() == Some(&entry.identifier)
            && (row.catalog_id == Some(catalog.id) || are_shared())
    }

    /// Applies an entry to an existing source and returns the effect. The catalog that has listed the source keeps it;
    /// another one takes over if that catalog no longer lists it, does not exist, or has lower precedence.
    pub fn apply_catalog_entry(
        &mut self,
        id: i64,
        catalog: &source::Model,
        entry: &CatalogCardEntry,
        now: Timestamp,
    ) -> CatalogEntryEffect {
        let Some(row) = self.sources.get(&id) else {
            return CatalogEntryEffect::Unchanged;
        };
        let rank = self.catalog_rank(catalog);
        // An uncovered catalog changes no source that is registered, or that another catalog lists or has listed.
        let is_its_own = row.kind == SourceKind::Entry && row.catalog_id == Some(catalog.id);
        if id == catalog.id || (rank == CatalogRank::Nominated && !is_its_own) {
            return CatalogEntryEffect::Unchanged;
        }
        if row.kind != SourceKind::Entry {
            return self.record_listing(id, catalog, rank);
        }
        let speaks = self.has_other_listing_catalog(row, catalog, rank);
        let named = row.identifier.as_ref() == Some(&entry.identifier);
        let url_changed = named && row.url != entry.url.as_str();
        if speaks && row.unlisted_since.is_none() {
            return if url_changed {
                CatalogEntryEffect::OtherUrl
            } else {
                CatalogEntryEffect::Unchanged
            };
        }
        let url = entry.url.as_str();
        let was_only_nominated = self.own_catalog_entry_identifier(row).is_none();
        let url_taken = url_changed
            && self
                .live_domain_sources(catalog.domain_id)
                .any(|other| other.kind == SourceKind::Entry && other.url == url);
        let Some(row) = self.source_mut(id) else {
            return CatalogEntryEffect::Unchanged;
        };
        let newly_listed = row.unlisted_since.is_some() || row.catalog_id != Some(catalog.id);
        row.catalog_id = Some(catalog.id);
        row.unlisted_since = None;
        row.unlisted_looks = 0;
        if was_only_nominated {
            row.identifier = Some(entry.identifier.clone());
        }
        if url_taken {
            return CatalogEntryEffect::OtherUrl;
        }
        update_entry_digest(row, entry, now);
        if url_changed {
            set_source_url(row, url, now);
            return CatalogEntryEffect::Moved;
        }
        if newly_listed {
            CatalogEntryEffect::NewlyListed
        } else {
            CatalogEntryEffect::Unchanged
        }
    }

    /// Whether another existing catalog of the same precedence has listed an entry.
    fn has_other_listing_catalog(
        &self,
        row: &source::Model,
        catalog: &source::Model,
        rank: CatalogRank,
    ) -> bool {
        let other = row.catalog_id.and_then(|id| self.sources.get(&id));
        other.is_some_and(|by| {
            let there = by.liveness == SourceState::Fresh;
            by.id != catalog.id && there && self.catalog_rank(by) <= rank
        })
    }

    /// The precedence of a catalog among those of its domain.
    fn catalog_rank(&self, catalog: &source::Model) -> CatalogRank {
        match catalog.kind.known_value() {
            Some(SourceKind::Ard) => CatalogRank::Ard,
            Some(SourceKind::AiCatalog) => CatalogRank::AiCatalog,
            _ if self.coverage_evidence.catalog_coverage(catalog) == CoverageLevel::Covered => {
                CatalogRank::OwnerRegistered
            }
            _ => CatalogRank::Nominated,
        }
    }

    /// Records that a catalog lists a registered URL. The source keeps its kind: it stays when the catalog drops it.
    fn record_listing(
        &mut self,
        id: i64,
        catalog: &source::Model,
        rank: CatalogRank,
    ) -> CatalogEntryEffect {
        let listing_catalog_of =
            |row: &source::Model| row.catalog_id.and_then(|id| self.sources.get(&id));
        let listing_catalog = self.sources.get(&id).and_then(listing_catalog_of);
        // A catalog at a well-known path takes over from a registered one, whose registration may be withdrawn.
        let is_named = listing_catalog
            .is_some_and(|by| self.catalog_rank(by) <= rank.max(CatalogRank::AiCatalog));
        if is_named {
            return CatalogEntryEffect::Unchanged;
        }
        if let Some(row) = self.source_mut(id) {
            row.catalog_id = Some(catalog.id);
        }
        CatalogEntryEffect::NewlyListed
    }

    /// Whether the catalog that lists a source states a different digest from that of these bytes. A registered source
    /// is not compared.
    pub fn differs_from_entry_digest(&self, source: i64, bytes: &[u8]) -> bool {
        let row = self.sources.get(&source);
        let row = row.filter(|row| row.kind == SourceKind::Entry);
        let stated = row.and_then(|row| row.entry_digest.as_deref());
        stated.is_some_and(|stated| stated != a2a_card::bytes_digest(bytes))
    }

    /// Schedules a full fetch of the catalogs of a source's domain.
    pub fn schedule_domain_catalog_fetches(&mut self, source: i64) {
        let Some(row) = self.sources.get(&source).cloned() else {
            return;
        };
        self.schedule_other_catalog_fetches(&row);
    }

    pub fn schedule_other_catalog_fetches(&mut self, catalog: &source::Model) {
        let others: Vec<i64> = self
            .live_domain_sources(catalog.domain_id)
            .filter(|row| row.id != catalog.id && may_list_cards(row))
            .map(|row| row.id)
            .collect();
        for id in others {
            if let Some(row) = self.source_mut(id) {
                row.full_wanted = true;
            }
        }
    }
}

/// Gives a source another URL, which is fetched now.
fn set_source_url(row: &mut source::Model, url: &str, now: Timestamp) {
    row.url = url.to_owned();
    row.validator_url = None;
    row.next_due_at = now.0;
    row.planned_at = None;
    // The approval applies to the entries of the first fetch.
    row.approve_as = None;
}

/// Stores the digest that an entry states. A different digest indicates a different card, which is fetched now.
fn update_entry_digest(row: &mut source::Model, entry: &CatalogCardEntry, now: Timestamp) {
    if row.entry_digest != entry.digest {
        row.entry_digest.clone_from(&entry.digest);
        row.next_due_at = row.next_due_at.min(now.0);
        row.full_wanted = true;
    }
}
