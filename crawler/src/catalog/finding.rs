//! What of a catalog is passed over, and why.

use std::fmt;

use crate::fetch::bounded;

/// Most findings that are kept of one catalog; further ones are counted.
pub const MAX_FINDINGS: usize = 50;

/// Characters of a stranger's text in a finding.
const SHOWN: usize = 120;

/// Why an entry, or a nested catalog, is passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PassedOver {
    /// Its type is not that of an A2A agent card or of a catalog. No fault: catalogs name other things too.
    NotACard,
    /// It is no object, or has no usable `identifier`, `type`, or exactly one of `url` and `data`.
    Malformed,
    /// The card itself stands in the entry. Cards are taken from URLs only, where they can be asked for again.
    InlineCard,
    /// The card lies on another host than the catalog's domain, or the nested catalog on another registrable
    /// domain.
    ForeignHost,
    /// The guard does not admit the URL.
    Refused,
    /// Its `trustManifest` names another publisher than its identifier.
    OtherPublisher,
    /// The identifier was named before.
    Repeated,
    /// The nested catalog was asked for before: a loop, or two ways to one place.
    Loop,
    /// It is nested deeper than [`MAX_DEPTH`](super::MAX_DEPTH).
    TooDeep,
    /// One of the bounds on entries, requests and bytes is reached.
    TooMany,
}

impl PassedOver {
    /// Why, as the end of a sentence that begins with the place.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotACard => "is no A2A agent card",
            Self::Malformed => "is no whole entry",
            Self::InlineCard => "holds the card itself instead of its URL",
            Self::ForeignHost => "lies on a foreign host",
            Self::Refused => "has a URL that is not asked",
            Self::OtherPublisher => "is vouched for by another publisher",
            Self::Repeated => "repeats an identifier",
            Self::Loop => "was asked already",
            Self::TooDeep => "is nested too deep",
            Self::TooMany => "is beyond what one catalog may name",
        }
    }

    /// Whether something is wrong, or at least left out that the domain may care for.
    pub const fn is_fault(self) -> bool {
        !matches!(self, Self::NotACard)
    }
}

/// One thing that is passed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Why.
    pub why: PassedOver,
    /// Its identifier, its URL, or its place in the document; fit to be shown.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.what, self.why.as_str())
    }
}

/// What is passed over, at most [`MAX_FINDINGS`] of it in full.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// In the order found.
    pub kept: Vec<Finding>,
    /// How many further ones there are, faults only.
    pub more: usize,
}

impl Findings {
    /// Adds one.
    pub fn add(&mut self, why: PassedOver, what: &str) {
        if self.kept.len() < MAX_FINDINGS {
            let what = bounded(what, SHOWN);
            self.kept.push(Finding { why, what });
        } else if why.is_fault() {
            self.more += 1;
        }
    }

    /// Adds all of another document's.
    pub fn append(&mut self, other: Self) {
        for finding in other.kept {
            self.add(finding.why, &finding.what);
        }
        self.more += other.more;
    }

    /// The faults: the first one, and how many there are. `None` where nothing is at fault.
    pub fn faults(&self) -> Option<(&Finding, usize)> {
        let mut faults = self.kept.iter().filter(|finding| finding.why.is_fault());
        let first = faults.next()?;
        Some((first, 1 + faults.count() + self.more))
    }
}
