//! What a check for a proof found, in words that programs and people can use.

use time::OffsetDateTime;

use crate::fetch::{MAX_DETAIL, bounded, visible};

/// Most things found that are quoted.
pub const MAX_FOUND: usize = 5;
/// Characters of each.
const MAX_QUOTED: usize = 120;

/// In which form a proof is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// A TXT record for one challenge.
    DnsOneOff,
    /// A TXT record that stays.
    DnsStanding,
    /// A file on the host's own server.
    HttpsFile,
}

/// What a standing proof covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reach {
    /// The host alone.
    Exact,
    /// The host and every host below it.
    Subdomains,
}

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckVerdict {
    /// The proof is there.
    Proved {
        /// What it covers. A file never covers more than its host.
        reach: Reach,
        /// Until when it says that it holds; `None` where it says nothing.
        until: Option<OffsetDateTime>,
    },
    /// The owner of the name wants no registry to list it (`policy=none`), whoever asks.
    OptedOut,
    /// Nothing is there. An answer: it counts towards the end of a proof.
    Absent,
    /// Something else is there. An answer as well.
    Wrong,
    /// There was no answer for now. Neither for nor against the proof.
    Failed,
    /// A resolver that checks DNSSEC says that the answer is forged or broken.
    Bogus,
    /// The guard refuses the host, or a host's address; nothing was sent there.
    Refused,
}

impl CheckVerdict {
    /// A stable name for programs.
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

/// One check: what was looked for, where, and what was found instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// In which form.
    pub format: Format,
    /// The names or the URL that were asked, in order.
    pub places: Vec<String>,
    /// What is to be placed there.
    pub wanted: String,
    /// What was found, at most [`MAX_FOUND`] things of 120 characters, with every character that cannot be
    /// seen written out.
    pub found: Vec<String>,
    /// Whether a CNAME led to the records, so that the proof is kept in another zone.
    pub aliased: bool,
    /// For how many seconds the server that was asked for a file wants not to be asked again.
    pub retry_after: Option<u32>,
    /// How it ended.
    pub verdict: CheckVerdict,
    /// One sentence for the owner, at most 300 characters, without control characters and addresses.
    pub detail: String,
}

impl Check {
    /// A check that has not found anything yet.
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

    /// Quotes something that was found, as long as there is room.
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
