//! Walk over a catalog and its nested catalogs, document by document.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use url::Url;

use super::entry::CatalogCardEntry;
use super::identifier::identifier_publisher;
use super::parser::CatalogDocument;
use super::registry::ListedRegistry;
use super::skipped_entries::{EntrySkipReason, SkippedEntryList};
use super::{
    MAX_CATALOG_BYTES, MAX_CATALOG_REQUESTS, MAX_ENTRIES, MAX_INLINE_CARDS, MAX_REGISTRIES,
};
use crate::guard::{SsrfGuard, normalize_url};

/// A catalog named by URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NestedCatalog {
    /// URL of the catalog.
    pub url: Url,
    /// Depth at which the catalog is nested.
    pub depth: usize,
}

/// The content of a catalog and of its nested catalogs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogContents {
    /// The cards, one for each identifier.
    pub cards: Vec<CatalogCardEntry>,
    /// The registries of the catalog's own host, one for each identifier, at most [`MAX_REGISTRIES`].
    pub registries: Vec<ListedRegistry>,
    /// The entries that were skipped.
    pub skipped: SkippedEntryList,
    /// Whether everything was read.
    pub is_complete: bool,
}

/// The entries collected so far, and the catalogs still to fetch. The walk is breadth first, so that the domain's own
/// entries come before those of nested catalogs.
#[derive(Debug)]
pub struct CatalogWalk<'a> {
    guard: &'a SsrfGuard,
    root_url: Url,
    visited_urls: BTreeSet<Url>,
    queue: VecDeque<NestedCatalog>,
    card_positions: HashMap<String, usize>,
    cards: Vec<CatalogCardEntry>,
    registries: BTreeMap<String, ListedRegistry>,
    inline_count: usize,
    skipped: SkippedEntryList,
    entry_count: usize,
    byte_count: usize,
    request_count: usize,
    has_nested: bool,
    is_complete: bool,
}

impl<'a> CatalogWalk<'a> {
    /// Starts at the catalog at `root_url`, which is fetched without being queued.
    pub fn new(guard: &'a SsrfGuard, root_url: &Url) -> Self {
        let root_url = normalize_url(root_url.clone());
        Self {
            guard,
            visited_urls: BTreeSet::from([root_url.clone()]),
            root_url,
            queue: VecDeque::new(),
            card_positions: HashMap::new(),
            cards: Vec::new(),
            registries: BTreeMap::new(),
            inline_count: 0,
            skipped: SkippedEntryList::default(),
            entry_count: 0,
            byte_count: 0,
            request_count: 1,
            has_nested: false,
            is_complete: true,
        }
    }

    /// Number of entries that may still be read.
    pub const fn entries_left(&self) -> usize {
        MAX_ENTRIES.saturating_sub(self.entry_count)
    }

    /// Number of bytes that may still be read.
    pub const fn bytes_left(&self) -> usize {
        MAX_CATALOG_BYTES.saturating_sub(self.byte_count)
    }

    /// Whether any catalog names others by URL. If so, a 304 for the first would hide changes in the others.
    pub const fn has_nested_catalogs(&self) -> bool {
        self.has_nested
    }

    /// Adds the content of a document that came from `url`, after redirects, and had `byte_count` bytes.
    pub fn add_document(&mut self, url: &Url, byte_count: usize, document: CatalogDocument) {
        self.visited_urls.insert(normalize_url(url.clone()));
        self.entry_count += document.entry_count;
        self.byte_count += byte_count;
        self.is_complete &= document.is_complete;
        self.skipped.append(document.skipped);
        for card in document.cards {
            self.add_card(card);
        }
        for registry in document.registries {
            self.add_registry(url, registry);
        }
        for (url, depth) in document.nested_urls {
            self.queue_nested_catalog(NestedCatalog { url, depth });
        }
    }

    /// Records that a nested catalog could not be read, so the entries are incomplete.
    pub fn mark_incomplete(&mut self) {
        self.is_complete = false;
    }

    /// The next catalog to fetch, counted as a request. `None` if none is left or a limit has been reached.
    pub fn take_next_nested_catalog(&mut self) -> Option<NestedCatalog> {
        let nested = self.queue.pop_front()?;
        if self.request_count >= MAX_CATALOG_REQUESTS
            || self.bytes_left() == 0
            || self.entries_left() == 0
        {
            self.is_complete = false;
            for skipped_catalog in std::iter::once(nested).chain(std::mem::take(&mut self.queue)) {
                self.skipped
                    .add(EntrySkipReason::LimitReached, skipped_catalog.url.as_str());
            }
            return None;
        }
        self.request_count += 1;
        Some(nested)
    }

    /// The collected contents of all documents.
    pub fn into_contents(self) -> CatalogContents {
        CatalogContents {
            cards: self.cards,
            registries: self.registries.into_values().collect(),
            skipped: self.skipped,
            is_complete: self.is_complete,
        }
    }

    fn add_card(&mut self, card: CatalogCardEntry) {
        let mut document_url = card.url.clone();
        document_url.set_fragment(None);
        let existing = self.card_positions.get(&card.identifier);
        let existing = existing.and_then(|position| self.cards.get(*position));
        let was_inline = existing.is_some_and(|before| before.inline_card.is_some());
        let adds_inline = card.inline_card.is_some() && !was_inline;
        let skip_reason = if card.url.origin() != self.root_url.origin() {
            Some(EntrySkipReason::ForeignOrigin)
        } else if self.guard.check_parsed_url(document_url).is_err() {
            Some(EntrySkipReason::RejectedByGuard)
        } else if adds_inline && self.inline_count >= MAX_INLINE_CARDS {
            Some(EntrySkipReason::TooManyInline)
        } else {
            None
        };
        if let Some(reason) = skip_reason {
            self.skipped.add(reason, card.url.as_str());
            return;
        }
        let Some(&position) = self.card_positions.get(&card.identifier) else {
            self.inline_count += usize::from(adds_inline);
            self.card_positions
                .insert(card.identifier.clone(), self.cards.len());
            self.cards.push(card);
            return;
        };
        let Some(existing) = self.cards.get_mut(position) else {
            return;
        };
        if existing.url != card.url {
            self.skipped
                .add(EntrySkipReason::DuplicateIdentifier, &card.identifier);
        }
        if existing.updated_at.is_some() && existing.updated_at < card.updated_at {
            self.inline_count += usize::from(adds_inline);
            *existing = card;
        }
    }

    /// Adds a registry that the document at `url` names. Only the publisher's own host can name its registries; a
    /// domain above or below it and other sites cannot. Of two with one identifier the first counts.
    fn add_registry(&mut self, url: &Url, registry: ListedRegistry) {
        let publisher = identifier_publisher(&registry.identifier);
        let is_own = publisher.is_some()
            && publisher == host_if_default_https(&self.root_url)
            && publisher == host_if_default_https(url);
        let reason = if !is_own {
            EntrySkipReason::RegistryOfOtherPublisher
        } else if self.registries.contains_key(&registry.identifier) {
            EntrySkipReason::DuplicateIdentifier
        } else if self.registries.len() >= MAX_REGISTRIES {
            EntrySkipReason::LimitReached
        } else {
            let identifier = registry.identifier.clone();
            self.registries.insert(identifier, registry);
            return;
        };
        self.skipped.add(reason, &registry.identifier);
    }

    fn queue_nested_catalog(&mut self, nested: NestedCatalog) {
        self.has_nested = true;
        let reason = if !SsrfGuard::is_same_site(&self.root_url, &nested.url)
            || (self.root_url.scheme() == "https" && nested.url.scheme() != "https")
        {
            EntrySkipReason::ForeignSite
        } else if self.guard.check_parsed_url(nested.url.clone()).is_err() {
            EntrySkipReason::RejectedByGuard
        } else if self.visited_urls.insert(nested.url.clone()) {
            self.queue.push_back(nested);
            return;
        } else {
            EntrySkipReason::AlreadyFetched
        };
        self.skipped.add(reason, nested.url.as_str());
    }
}

/// The host of a document served over https on the default port, for comparison with publishers.
fn host_if_default_https(document: &Url) -> Option<&str> {
    let is_usual = document.scheme() == "https" && document.port().is_none();
    document.host_str().filter(|_| is_usual)
}
