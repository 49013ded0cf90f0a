//! Result of a check for a proof, for programs and for people.

use time::OffsetDateTime;

use crate::foreign_text::{MAX_DETAIL, escape_invisible, sanitize_text};

/// Maximum number of quoted records or texts.
pub const MAX_FOUND_TEXTS: usize = 5;
const MAX_FOUND_CHARS: usize = 120;

/// Format of a proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProofFormat {
    /// A TXT record that proves the host once, for one challenge.
    DnsOneOff,
    /// A TXT record that stays in place and keeps proving the host.
    DnsPersistent,
    /// A file on the host's own server.
    HttpsFile,
}

/// Hosts that a persistent proof covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProofScope {
    /// Only the host itself.
    Exact,
    /// The host and every host below it.
    Subdomains,
}

/// Result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChallengeResult {
    /// The proof was found.
    Proved {
        /// The hosts that the proof covers. A file never covers more than its host.
        scope: ProofScope,
        /// The expiry stated by the proof itself; `None` if it states none.
        expires_at: Option<OffsetDateTime>,
    },
    /// The owner of the name does not want any registry to list it (`policy=none`).
    OptedOut,
    /// The proof is absent, by a definite answer, which counts towards the end of an existing proof.
    Absent,
    /// Something else is in its place, also by a definite answer.
    Wrong,
    /// The check failed for now, which is evidence neither for nor against the proof.
    Failed,
    /// A validating resolver reports that the DNSSEC data of the answer is forged or broken.
    Bogus,
    /// The guard rejects the host or one of its addresses; nothing was sent.
    RejectedByGuard,
}

/// One check: what was expected, where, and what was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChallengeCheck {
    /// The form of the proof.
    pub format: ProofFormat,
    /// The names or the URL queried, in order.
    pub locations: Vec<String>,
    /// The text that the owner has to publish there.
    pub expected_text: String,
    /// The texts found, at most [`MAX_FOUND_TEXTS`] of 120 characters each, with invisible characters escaped.
    pub found: Vec<String>,
    /// Whether a CNAME led to the records, so that the proof is in another zone.
    pub is_aliased: bool,
    /// Seconds for which the file server wants no further requests (`Retry-After`).
    pub retry_after: Option<u32>,
    /// What the check concluded.
    pub result: ChallengeResult,
    /// One sentence for the owner, at most 300 characters, without control characters and addresses.
    pub detail: String,
}

impl ChallengeCheck {
    pub(super) fn new(format: ProofFormat, locations: Vec<String>, expected_text: String) -> Self {
        Self {
            format,
            locations,
            expected_text,
            found: Vec::new(),
            is_aliased: false,
            retry_after: None,
            result: ChallengeResult::Absent,
            detail: String::new(),
        }
    }

    /// Quotes a text that was found, unless [`MAX_FOUND_TEXTS`] are already quoted.
    pub(super) fn add_found_text(&mut self, text: &str) {
        if self.found.len() < MAX_FOUND_TEXTS {
            self.found.push(escape_invisible(text, MAX_FOUND_CHARS));
        }
    }

    pub(super) fn with_result(mut self, result: ChallengeResult, detail: &str) -> Self {
        self.result = result;
        self.detail = sanitize_text(detail, MAX_DETAIL);
        self
    }
}
