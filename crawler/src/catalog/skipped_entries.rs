//! Skipped entries of a catalog, with the reasons.

use std::fmt;

use crate::foreign_text::sanitize_text;

/// Maximum number of skipped entries listed for one catalog; further ones are only counted.
pub const MAX_SKIPPED_ENTRIES: usize = 50;

const MAX_SUMMARY_ENTRIES: usize = 8;

const MAX_ENTRY_LABEL_CHARS: usize = 120;

/// Why an entry, or a nested catalog, is skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EntrySkipReason {
    /// It is neither an agent card nor a catalog, nor a registry if registries are read. Not an error.
    NotACard,
    /// It is not an object, or has no usable `identifier`, `type`, or exactly one of `url` and `data`.
    Malformed,
    /// Inline card beyond the maximum number read from catalogs.
    TooManyInline,
    /// The card's digest differs from the one that the entry states, or the stated one cannot be compared.
    DigestMismatch,
    /// JSON parsers read it differently: a repeated name, half a surrogate pair, a number with too many digits.
    Ambiguous,
    /// The card's scheme, host or port differs from that of the domain's catalog.
    ForeignOrigin,
    /// The nested catalog is on another registrable domain, or not on https although the domain's catalog is.
    ForeignSite,
    /// It is a registry whose publisher is not the host of the domain's catalog.
    RegistryOfOtherPublisher,
    /// The guard rejects the URL.
    RejectedByGuard,
    /// Its `trustManifest` names another publisher than its identifier.
    PublisherMismatch,
    /// An earlier entry has the same identifier.
    DuplicateIdentifier,
    /// The nested catalog was already fetched: it is in a loop, or named twice.
    AlreadyFetched,
    /// It is nested deeper than [`MAX_DEPTH`](super::MAX_DEPTH).
    TooDeep,
    /// A limit on entries, requests or bytes is reached.
    LimitReached,
}

impl EntrySkipReason {
    /// The reason, as the end of a sentence whose subject is the entry.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotACard => "is not an A2A agent card",
            Self::Malformed => "is not a complete entry",
            Self::TooManyInline => {
                "exceeds the number of cards that are read from inside a catalog"
            }
            Self::DigestMismatch => "states a digest that does not match its content",
            Self::Ambiguous => "is read differently by different JSON parsers",
            Self::ForeignOrigin => "is not on the scheme, host and port of the domain's catalog",
            Self::ForeignSite => "is on another registrable domain, or not https",
            Self::RegistryOfOtherPublisher => {
                "is a registry whose publisher is not the host of the domain's catalog"
            }
            Self::RejectedByGuard => "has a URL that the registry does not fetch",
            Self::PublisherMismatch => "names another publisher in its trustManifest",
            Self::DuplicateIdentifier => "repeats an identifier",
            Self::AlreadyFetched => "was already fetched",
            Self::TooDeep => "is nested too deep",
            Self::LimitReached => "exceeds the limits of one catalog",
        }
    }

    /// Whether this is an error that the owner of the domain may want to fix.
    pub const fn is_error(self) -> bool {
        !matches!(self, Self::NotACard)
    }
}

/// An entry that was skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedEntry {
    /// Why it was skipped.
    pub reason: EntrySkipReason,
    /// Label of the entry: its identifier, its URL, or its position in the document, safe to display.
    pub entry_label: String,
}

impl fmt::Display for SkippedEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.entry_label, self.reason.as_str())
    }
}

/// The skipped entries, at most [`MAX_SKIPPED_ENTRIES`] of them listed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkippedEntryList {
    /// The listed entries, in document order.
    pub entries: Vec<SkippedEntry>,
    /// Number of further skipped entries.
    pub omitted_count: usize,
}

impl SkippedEntryList {
    /// Adds a skipped entry; one beyond [`MAX_SKIPPED_ENTRIES`] is only counted.
    pub fn add(&mut self, reason: EntrySkipReason, entry_label: &str) {
        if self.entries.len() < MAX_SKIPPED_ENTRIES {
            let entry_label = sanitize_text(entry_label, MAX_ENTRY_LABEL_CHARS);
            self.entries.push(SkippedEntry {
                reason,
                entry_label,
            });
        } else {
            self.omitted_count += 1;
        }
    }

    /// Adds all skipped entries of another document.
    pub fn append(&mut self, other: Self) {
        for entry in other.entries {
            self.add(entry.reason, &entry.entry_label);
        }
        self.omitted_count += other.omitted_count;
    }

    /// Summary of what was skipped and why, errors first and by name as far as there is room; `None` if nothing was
    /// skipped.
    pub fn summary(&self) -> Option<String> {
        let (errors, others): (Vec<&SkippedEntry>, Vec<&SkippedEntry>) = self
            .entries
            .iter()
            .partition(|finding| finding.reason.is_error());
        let total = errors.len() + others.len() + self.omitted_count;
        let named = errors.into_iter().chain(others).take(MAX_SUMMARY_ENTRIES);
        let mut parts: Vec<String> = named.map(ToString::to_string).collect();
        let remaining = total - parts.len();
        if remaining > 0 {
            parts.push(format!("and {remaining} more"));
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}
