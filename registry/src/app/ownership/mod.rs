//! Whose a domain is: what is to be placed, looking for it, and what follows from what was found
//! (docs/ownership.md#proofs).

mod acts;
mod challenges;
mod dispute;
mod first_look;
mod generation;
mod keys;
mod look;
mod settle;
mod succession;
mod verify;

use uuid::Uuid;

use crate::domain::ownership::{DomainState, Look, Method};
use crate::store::entity::{self, domain};

pub(super) use challenges::{is_provable, why_no_challenge};
pub(super) use dispute::{disputed, is_disputed, is_party};
pub(super) use succession::owner_marks;

/// Whether a domain is nobody's, never had a generation before, and bears no marks of an owner: whoever registered it looks
/// after it until then. What was an owner's does not fall to who was there before.
pub(super) fn is_nobodys(row: &domain::Model, marks: &[entity::owner_marks::Model]) -> bool {
    row.owner_id.is_none()
        && row.generation == 1
        && row.state == DomainState::Unverified
        && !marks.iter().any(|marks| marks.domain_id == row.id)
}

/// What is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Question {
    /// The domain, a host name.
    host: String,
    /// Those who say that it is theirs.
    claimants: Vec<Claimant>,
    /// Whether it was proved before, so that another owner would show.
    proved_before: bool,
    /// Whether all of their claims are asked about, and not only those of whoever asks.
    everybody: bool,
    /// Whether its host may be asked at all now, or must rest.
    may_ask_host: bool,
    /// Whether its host may be asked although nobody can tell whether it has opted out.
    asks_in_doubt: bool,
}

/// Who says that a domain is theirs.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Claimant {
    /// The account.
    account: Uuid,
    /// Its URI, which records name.
    uri: String,
    /// The random parts of what it has placed or is to place; without any only the standing record counts.
    nonces: Vec<String>,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Looked {
    /// Whether the domain's own record says that it wants not to be listed; `None` where nobody could tell.
    opted_out: Option<bool>,
    /// What was found for each claimant at each place.
    found: Vec<Found>,
    /// The name servers, where they were asked for and told.
    name_servers: Vec<String>,
    /// The key of the certificate, likewise.
    tls_key: Option<String>,
    /// Whether the claims of everybody were looked at, so that the next look may wait its day.
    everybody: bool,
    /// Whether its host was asked for anything.
    asked_host: bool,
    /// For how many seconds its host wants to rest, where it has said so.
    retry_after: u32,
    /// Whether its host was to be asked for something and had to rest; it is asked soon.
    host_rested: bool,
    /// Whether so many fetches failed at once that the fault was likely ours: then what is missing is no verdict.
    braked: bool,
}

/// What was found for a claimant at one place.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    /// For whom.
    account: Uuid,
    /// How it would prove the domain.
    method: Method,
    /// The DNS name or URL.
    place: String,
    /// The random part of what was looked for.
    nonce: Option<String>,
    /// The name below which it covers every host, where it is a record that says so.
    zone: Option<String>,
    /// What it was.
    look: Look,
    /// One sentence.
    detail: String,
    /// What was looked for, where it is missing.
    wanted: Option<String>,
    /// What was there instead.
    instead: Vec<String>,
    /// Whether a CNAME led there.
    aliased: bool,
}
