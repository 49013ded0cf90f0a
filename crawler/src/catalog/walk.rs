//! Walk over a catalog and all catalogs nested in it, document by document.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use url::Url;

use super::entry::CatalogEntry;
use super::finding::{Findings, PassedOver};
use super::identifier::publisher_of;
use super::read::CatalogDocument;
use super::registry::ListedRegistry;
use super::{MAX_BYTES, MAX_ENTRIES, MAX_INLINE_CARDS, MAX_REGISTRIES, MAX_REQUESTS};
use crate::guard::{Guard, normalised};

/// A catalog that is named by URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NestedCatalog {
    /// URL of the catalog.
    pub url: Url,
    /// Depth at which it is nested.
    pub depth: usize,
}

/// The content of a catalog and of all nested in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalkedCatalog {
    /// The cards, each identifier once.
    pub cards: Vec<CatalogEntry>,
    /// The registries of the catalog's own host, each identifier once, at most [`MAX_REGISTRIES`].
    pub registries: Vec<ListedRegistry>,
    /// The entries that were skipped.
    pub findings: Findings,
    /// Whether everything was read.
    pub complete: bool,
}

/// The entries collected so far, and the catalogs still to fetch. Breadth first, so that the domain's own entries
/// come before those of nested catalogs.
#[derive(Debug)]
pub struct CatalogWalk<'a> {
    guard: &'a Guard,
    first: Url,
    seen: BTreeSet<Url>,
    queue: VecDeque<NestedCatalog>,
    known: HashMap<String, usize>,
    cards: Vec<CatalogEntry>,
    registries: BTreeMap<String, ListedRegistry>,
    inline: usize,
    findings: Findings,
    entries: usize,
    bytes: usize,
    requests: usize,
    nests: bool,
    complete: bool,
}

impl<'a> CatalogWalk<'a> {
    /// Starts at the catalog at `first`, which is fetched without being queued.
    pub fn new(guard: &'a Guard, first: &Url) -> Self {
        let first = normalised(first.clone());
        Self {
            guard,
            seen: BTreeSet::from([first.clone()]),
            first,
            queue: VecDeque::new(),
            known: HashMap::new(),
            cards: Vec::new(),
            registries: BTreeMap::new(),
            inline: 0,
            findings: Findings::default(),
            entries: 0,
            bytes: 0,
            requests: 1,
            nests: false,
            complete: true,
        }
    }

    /// Number of entries that may still be read.
    pub const fn entries_left(&self) -> usize {
        MAX_ENTRIES.saturating_sub(self.entries)
    }

    /// Number of bytes that may still be read.
    pub const fn bytes_left(&self) -> usize {
        MAX_BYTES.saturating_sub(self.bytes)
    }

    /// Whether a catalog names others by URL: then a 304 of the first would hide changes in the others.
    pub const fn nests(&self) -> bool {
        self.nests
    }

    /// Adds the content of a document that came from `url`, after redirects, and had this many bytes.
    pub fn take(&mut self, url: &Url, bytes: usize, reading: CatalogDocument) {
        self.seen.insert(normalised(url.clone()));
        self.entries += reading.entries;
        self.bytes += bytes;
        self.complete &= reading.complete;
        self.findings.append(reading.findings);
        for card in reading.cards {
            self.take_card(card);
        }
        for registry in reading.registries {
            self.take_registry(url, registry);
        }
        for (url, depth) in reading.nested {
            self.take_nested(NestedCatalog { url, depth });
        }
    }

    /// Notes that a nested catalog could not be read, so the entries are not complete.
    pub fn failed(&mut self) {
        self.complete = false;
    }

    /// The next catalog to fetch, counted as a request. `None` if there is none left, or a limit is reached.
    pub fn next_nested(&mut self) -> Option<NestedCatalog> {
        let nested = self.queue.pop_front()?;
        if self.requests >= MAX_REQUESTS || self.bytes_left() == 0 || self.entries_left() == 0 {
            self.complete = false;
            for left in std::iter::once(nested).chain(std::mem::take(&mut self.queue)) {
                self.findings.add(PassedOver::TooMany, left.url.as_str());
            }
            return None;
        }
        self.requests += 1;
        Some(nested)
    }

    /// What was found in all documents.
    pub fn end(self) -> WalkedCatalog {
        WalkedCatalog {
            cards: self.cards,
            registries: self.registries.into_values().collect(),
            findings: self.findings,
            complete: self.complete,
        }
    }

    fn take_card(&mut self, card: CatalogEntry) {
        let mut place = card.url.clone();
        place.set_fragment(None);
        let before = self.known.get(&card.identifier);
        let before = before.and_then(|place| self.cards.get(*place));
        let was_inline = before.is_some_and(|before| before.inline.is_some());
        let adds_inline = card.inline.is_some() && !was_inline;
        let why = if card.url.origin() != self.first.origin() {
            Some(PassedOver::ForeignOrigin)
        } else if self.guard.check_parsed(place).is_err() {
            Some(PassedOver::Refused)
        } else if adds_inline && self.inline >= MAX_INLINE_CARDS {
            Some(PassedOver::TooManyInline)
        } else {
            None
        };
        if let Some(why) = why {
            self.findings.add(why, card.url.as_str());
            return;
        }
        let Some(&place) = self.known.get(&card.identifier) else {
            self.inline += usize::from(adds_inline);
            self.known.insert(card.identifier.clone(), self.cards.len());
            self.cards.push(card);
            return;
        };
        let Some(before) = self.cards.get_mut(place) else {
            return;
        };
        if before.url != card.url {
            self.findings.add(PassedOver::Repeated, &card.identifier);
        }
        if before.updated_at.is_some() && before.updated_at < card.updated_at {
            self.inline += usize::from(adds_inline);
            *before = card;
        }
    }

    /// Takes a registry that the document at `url` names. Only the publisher's own host can name its registries,
    /// neither a domain above or below it nor another site. Of two with one identifier the first counts.
    fn take_registry(&mut self, url: &Url, registry: ListedRegistry) {
        let publisher = publisher_of(&registry.identifier);
        let is_own = publisher.is_some()
            && publisher == publishing_host(&self.first)
            && publisher == publishing_host(url);
        let why = if !is_own {
            PassedOver::ForeignRegistry
        } else if self.registries.contains_key(&registry.identifier) {
            PassedOver::Repeated
        } else if self.registries.len() >= MAX_REGISTRIES {
            PassedOver::TooMany
        } else {
            let identifier = registry.identifier.clone();
            self.registries.insert(identifier, registry);
            return;
        };
        self.findings.add(why, &registry.identifier);
    }

    fn take_nested(&mut self, nested: NestedCatalog) {
        self.nests = true;
        let why = if !Guard::same_site(&self.first, &nested.url)
            || (self.first.scheme() == "https" && nested.url.scheme() != "https")
        {
            PassedOver::ForeignSite
        } else if self.guard.check_parsed(nested.url.clone()).is_err() {
            PassedOver::Refused
        } else if self.seen.insert(nested.url.clone()) {
            self.queue.push_back(nested);
            return;
        } else {
            PassedOver::Loop
        };
        self.findings.add(why, nested.url.as_str());
    }
}

/// The host of a document that is served over https on the default port, for comparison with publishers.
fn publishing_host(document: &Url) -> Option<&str> {
    let is_usual = document.scheme() == "https" && document.port().is_none();
    document.host_str().filter(|_| is_usual)
}
