//! A catalog and all that is nested in it, gathered document by document.

use std::collections::{BTreeSet, HashMap, VecDeque};

use url::Url;

use super::entry::CatalogEntry;
use super::finding::{Findings, PassedOver};
use super::read::CatalogDocument;
use super::{MAX_BYTES, MAX_ENTRIES, MAX_REQUESTS};
use crate::guard::{Guard, normalised};

/// A catalog to be asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nested {
    /// Where it lies.
    pub url: Url,
    /// How deep it is nested.
    pub depth: usize,
}

/// What was gathered so far, and what is still to be asked for. Breadth first, so that what the domain itself
/// names comes before what that names.
#[derive(Debug)]
pub struct CatalogWalk<'a> {
    guard: &'a Guard,
    first: Url,
    seen: BTreeSet<Url>,
    queue: VecDeque<Nested>,
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
    /// Begins at the catalog that lies at `first`, which is asked for without being queued.
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

    /// How many entries may still be looked at.
    pub const fn entries_left(&self) -> usize {
        MAX_ENTRIES.saturating_sub(self.entries)
    }

    /// How many bytes may still be read.
    pub const fn bytes_left(&self) -> usize {
        MAX_BYTES.saturating_sub(self.bytes)
    }

    /// Whether a catalog names others by URL: then a 304 of the first would hide what they say.
    pub const fn nests(&self) -> bool {
        self.nests
    }

    /// Takes in what a document says that came from `url`, after redirects, with so many bytes.
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
            self.take_nested(Nested { url, depth });
        }
    }

    /// Notes that a nested catalog could not be read: what the others name is not the whole then.
    pub fn failed(&mut self) {
        self.complete = false;
    }

    /// The next catalog to be asked for, and counts the request. `None` where there is none, or a bound is reached.
    pub fn next_nested(&mut self) -> Option<Nested> {
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

    /// The cards, each identifier once, what was passed over, and whether all of it was read.
    pub fn end(self) -> (Vec<CatalogEntry>, Findings, bool) {
        (self.cards, self.findings, self.complete)
    }

    fn take_card(&mut self, card: CatalogEntry) {
        let why = if card.url.origin() != self.first.origin() {
            Some(PassedOver::ForeignHost)
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

    fn take_nested(&mut self, nested: Nested) {
        self.nests = true;
        let why = if !Guard::same_site(&self.first, &nested.url)
            || (self.first.scheme() == "https" && nested.url.scheme() != "https")
        {
            PassedOver::ForeignHost
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
