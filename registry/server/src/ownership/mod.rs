//! Whose a domain is: what is to be placed, looking for it, and what follows from what was found
//! (docs/ownership.md#proofs).

pub mod apply_check;
pub mod attribution;
pub mod challenges;
pub mod dispute;
pub mod domain_check;
pub mod first_check;
pub mod generation;
pub mod job;
pub mod proofs;
pub mod succession;
pub mod verify;

use a2a_registry_domain::ownership::{DomainState, Look, Method};
use a2a_registry_store::entity::{self, domain};
use uuid::Uuid;

pub(crate) use challenges::{is_provable, why_no_challenge};
pub(crate) use dispute::{disputed, is_disputed, is_party};
pub(crate) use succession::owner_marks;

/// Whether a domain is nobody's, never had a generation before, and bears no marks of an owner: whoever registered it looks
/// after it until then. What was an owner's does not fall to who was there before.
pub(crate) fn is_nobodys(row: &domain::Model, marks: &[entity::owner_marks::Model]) -> bool {
    row.owner_id.is_none()
        && row.generation == 1
        && row.state == DomainState::Unverified
        && !marks.iter().any(|marks| marks.domain_id == row.id)
}

/// What is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    /// The domain, a host name.
    pub(crate) host: String,
    /// Those who say that it is theirs.
    pub(crate) claimants: Vec<Claimant>,
    /// Whether it was proved before, so that another owner would show.
    pub(crate) proved_before: bool,
    /// Whether all of their claims are asked about, and not only those of whoever asks.
    pub(crate) everybody: bool,
    /// Whether its host may be asked at all now, or must rest.
    pub(crate) may_ask_host: bool,
    /// Whether its host may be asked although nobody can tell whether it has opted out.
    pub(crate) asks_in_doubt: bool,
}

/// Who says that a domain is theirs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claimant {
    /// The account.
    pub(crate) account: Uuid,
    /// Its URI, which records name.
    pub(crate) uri: String,
    /// The random parts of what it has placed or is to place; without any only the standing record counts.
    pub(crate) nonces: Vec<String>,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Looked {
    /// Whether the domain's own record says that it wants not to be listed; `None` where nobody could tell.
    pub(crate) opted_out: Option<bool>,
    /// What was found for each claimant at each place.
    pub(crate) found: Vec<Found>,
    /// The name servers, where they were asked for and told.
    pub(crate) name_servers: Vec<String>,
    /// The key of the certificate, likewise.
    pub(crate) tls_key: Option<String>,
    /// Whether the claims of everybody were looked at, so that the next look may wait its day.
    pub(crate) everybody: bool,
    /// Whether its host was asked for anything.
    pub(crate) asked_host: bool,
    /// For how many seconds its host wants to rest, where it has said so.
    pub(crate) retry_after: u32,
    /// Whether its host was to be asked for something and had to rest; it is asked soon.
    pub(crate) host_rested: bool,
    /// Whether the circuit breaker was open: then a missing proof does not count as missing.
    pub(crate) braked: bool,
}

/// What was found for a claimant at one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// For whom.
    pub(crate) account: Uuid,
    /// How it would prove the domain.
    pub(crate) method: Method,
    /// The DNS name or URL.
    pub(crate) place: String,
    /// The random part of what was looked for.
    pub(crate) nonce: Option<String>,
    /// The name below which it covers every host, where it is a record that says so.
    pub(crate) zone: Option<String>,
    /// What it was.
    pub(crate) look: Look,
    /// One sentence.
    pub(crate) detail: String,
    /// What was looked for, where it is missing.
    pub(crate) wanted: Option<String>,
    /// What was there instead.
    pub(crate) instead: Vec<String>,
    /// Whether a CNAME led there.
    pub(crate) aliased: bool,
}
