//! The entries of a catalog that were skipped, and why.

use std::fmt;

use crate::fetch::bounded;

/// Most findings kept of one catalog; further ones are only counted.
pub const MAX_FINDINGS: usize = 50;

const MAX_NAMED: usize = 8;

const SHOWN: usize = 120;

/// Why an entry, or a nested catalog, is skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PassedOver {
    /// It is neither an agent card nor a catalog, nor a registry where those are read. Not a fault.
    NotACard,
    /// It is not an object, or has no usable `identifier`, `type`, or exactly one of `url` and `data`.
    Malformed,
    /// It contains more cards than are read from inside catalogs.
    TooManyInline,
    /// The card has another digest than the entry states, or the entry states none that can be compared.
    OtherDigest,
    /// JSON parsers read it differently: a name twice, half a character, a number too long.
    Ambiguous,
    /// The card has another scheme, host or port than the catalog of the domain.
    ForeignOrigin,
    /// The nested catalog is on another registrable domain, or not https while the catalog of the domain is.
    ForeignSite,
    /// It is a registry of another publisher than the host of the domain's catalog.
    ForeignRegistry,
    /// The guard refuses the URL.
    Refused,
    /// Its `trustManifest` names another publisher than its identifier.
    OtherPublisher,
    /// An earlier entry has the same identifier.
    Repeated,
    /// The nested catalog was already fetched: a loop, or named twice.
    Loop,
    /// It is nested deeper than [`MAX_DEPTH`](super::MAX_DEPTH).
    TooDeep,
    /// A limit on entries, requests or bytes is reached.
    TooMany,
}

impl PassedOver {
    /// The reason, as the end of a sentence that begins with the entry.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotACard => "is not an A2A agent card",
            Self::Malformed => "is not a complete entry",
            Self::TooManyInline => {
                "is beyond the number of cards that are read from inside a catalog"
            }
            Self::OtherDigest => "states another digest than its content has",
            Self::Ambiguous => "is read differently by different JSON parsers",
            Self::ForeignOrigin => "is not on the scheme, host and port of the domain's catalog",
            Self::ForeignSite => "is on another registrable domain, or not https",
            Self::ForeignRegistry => {
                "is a registry of another publisher than the host of the domain's catalog"
            }
            Self::Refused => "has a URL that the registry does not fetch",
            Self::OtherPublisher => "names another publisher in its trustManifest",
            Self::Repeated => "repeats an identifier",
            Self::Loop => "was already fetched",
            Self::TooDeep => "is nested too deep",
            Self::TooMany => "exceeds the limits of one catalog",
        }
    }

    /// Whether the owner of the domain may want to fix it.
    pub const fn is_fault(self) -> bool {
        !matches!(self, Self::NotACard)
    }
}

/// An entry that was skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Why it was skipped.
    pub why: PassedOver,
    /// Its identifier, its URL, or its position in the document, safe to display.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.what, self.why.as_str())
    }
}

/// The skipped entries, at most [`MAX_FINDINGS`] of them in full.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// In the order found.
    pub kept: Vec<Finding>,
    /// Number of further ones.
    pub more: usize,
}

impl Findings {
    /// Adds a finding; one beyond [`MAX_FINDINGS`] is only counted.
    pub fn add(&mut self, why: PassedOver, what: &str) {
        if self.kept.len() < MAX_FINDINGS {
            let what = bounded(what, SHOWN);
            self.kept.push(Finding { why, what });
        } else {
            self.more += 1;
        }
    }

    /// Adds all findings of another document.
    pub fn append(&mut self, other: Self) {
        for finding in other.kept {
            self.add(finding.why, &finding.what);
        }
        self.more += other.more;
    }

    /// What was skipped and why, the faults first and by name as far as there is room; `None` where nothing was.
    pub fn sentence(&self) -> Option<String> {
        let (faults, others): (Vec<&Finding>, Vec<&Finding>) =
            self.kept.iter().partition(|finding| finding.why.is_fault());
        let all = faults.len() + others.len() + self.more;
        let named = faults.into_iter().chain(others).take(MAX_NAMED);
        let mut parts: Vec<String> = named.map(ToString::to_string).collect();
        let left = all - parts.len();
        if left > 0 {
            parts.push(format!("and {left} more"));
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}
