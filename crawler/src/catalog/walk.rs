//! Walk over a catalog and all catalogs nested in it, document by document.

use std::collections::{BTreeSet, HashMap, VecDeque};

use url::Url;

use super::entry::CatalogEntry;
use super::finding::{Findings, PassedOver};
use super::read::CatalogDocument;
use super::{MAX_BYTES, MAX_ENTRIES, MAX_REQUESTS};
use crate::guard::{Guard, normalised};

/// A catalog that is named by URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NestedCatalog {
    /// URL of the catalog.
    pub url: Url,
    /// Depth at which it is nested.
    pub depth: usize,
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

    /// The cards, each identifier once, the skipped entries, and whether everything was read.
    pub fn end(self) -> (Vec<CatalogEntry>, Findings, bool) {
        (self.cards, self.findings, self.complete)
    }

    fn take_card(&mut self, card: CatalogEntry) {
        let why = if card.url.origin() != self.first.origin() {
            Some(PassedOver::ForeignOrigin)
        } else if self.guard.check_parsed(card.url.clone()).is_err() {
            Some(PassedOver::Refused)
        } else {
            None
        };
        if let Some(why) = why {
            self.findings.add(why, card.url.as_str());
            return;
        }
        let Some(&place) = self.known.get(&card.identifier) else {
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
            *before = card;
        }
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
