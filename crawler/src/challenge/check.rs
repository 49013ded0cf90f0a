//! The result of a check for a proof, for programs and for people.

use time::OffsetDateTime;

use crate::fetch::{MAX_DETAIL, bounded, visible};

/// Most records or texts that are quoted of what was found.
pub const MAX_FOUND: usize = 5;
const MAX_QUOTED: usize = 120;

/// The form of a proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// A TXT record that proves once, for one challenge.
    DnsOneOff,
    /// A TXT record that stays in place and keeps proving.
    DnsStanding,
    /// A file on the host's own server.
    HttpsFile,
}

/// The hosts that a standing proof covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reach {
    /// Only the host itself.
    Exact,
    /// The host and every host below it.
    Subdomains,
}

/// The verdict of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckVerdict {
    /// The proof was found.
    Proved {
        /// The hosts that it covers. A file never covers more than its host.
        reach: Reach,
        /// When the proof itself says that it ends; `None` where it does not say.
        until: Option<OffsetDateTime>,
    },
    /// The owner of the name does not want any registry to list it (`policy=none`).
    OptedOut,
    /// The proof is absent, by a definite answer: it counts towards the end of the proof.
    Absent,
    /// Something else was found in its place. This is a definite answer too.
    Wrong,
    /// The check failed for now, which is evidence neither for nor against the proof.
    Failed,
    /// A resolver that checks DNSSEC reports that the answer is forged or broken.
    Bogus,
    /// The guard refuses the host or one of its addresses; nothing was sent.
    Refused,
}

impl CheckVerdict {
    /// The stable name for programs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Proved { .. } => "proved",
            Self::OptedOut => "opted_out",
            Self::Absent => "absent",
            Self::Wrong => "wrong",
            Self::Failed => "failed",
            Self::Bogus => "bogus",
            Self::Refused => "refused",
        }
    }
}

/// One check: what it looked for, where, and what it found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// The form of the proof.
    pub format: Format,
    /// The names or the URL that were queried, in order.
    pub places: Vec<String>,
    /// The text that the owner should place there.
    pub wanted: String,
    /// The texts found, at most [`MAX_FOUND`] of 120 characters each, with invisible characters escaped.
    pub found: Vec<String>,
    /// Whether a CNAME led to the records, so that the proof is kept in another zone.
    pub aliased: bool,
    /// Seconds for which the server that was asked for a file wants no further request (`Retry-After`).
    pub retry_after: Option<u32>,
    /// What the check concluded.
    pub verdict: CheckVerdict,
    /// One sentence for the owner, at most 300 characters, without control characters and addresses.
    pub detail: String,
}

impl Check {
    pub(super) fn new(format: Format, places: Vec<String>, wanted: String) -> Self {
        Self {
            format,
            places,
            wanted,
            found: Vec::new(),
            aliased: false,
            retry_after: None,
            verdict: CheckVerdict::Absent,
            detail: String::new(),
        }
    }

    /// Quotes a text that was found, while fewer than [`MAX_FOUND`] are quoted.
    pub(super) fn quote(&mut self, text: &str) {
        if self.found.len() < MAX_FOUND {
            self.found.push(visible(text, MAX_QUOTED));
        }
    }

    pub(super) fn ended(mut self, verdict: CheckVerdict, detail: &str) -> Self {
        self.verdict = verdict;
        self.detail = bounded(detail, MAX_DETAIL);
        self
    }
}
