//! Domain ownership: the challenges of an account, the checks for its proofs, and the consequences of their results
//! (docs/ownership.md#proofs).

pub mod apply_check;
pub(crate) mod authorization;
pub mod challenges;
pub mod dispute;
pub mod domain_check;
pub mod first_check;
pub mod generation;
pub mod job;
pub mod owner_vouches;
pub mod proofs;
pub mod succession;
pub mod verify;

use a2a_registry_domain::ownership::{DomainState, Method, ProofOutcome};
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{self, agent, domain};
use uuid::Uuid;

use crate::visibility::keeper;

pub(crate) use challenges::{is_provable, why_no_challenge};
pub(crate) use dispute::{disputed, is_disputed, is_party};
pub(crate) use succession::owner_marks;

/// Whether a domain never had an owner: no proof, no owner vouch, no earlier generation, no owner marks. Until it has
/// one, the account that registered it manages it; a domain that an owner has left does not return to that account.
pub(crate) fn was_never_owned(row: &domain::Model, marks: &[entity::owner_marks::Model]) -> bool {
    row.owner_id.is_none()
        && row.vouched_owner.is_none()
        && row.generation == 1
        && row.state == DomainState::Unverified
        && !marks.iter().any(|marks| marks.domain_id == row.id)
}

/// The account that first registered a domain which never had an owner.
fn first_of_unowned(row: &domain::Model, marks: &[entity::owner_marks::Model]) -> Option<Uuid> {
    row.account_id.filter(|_| was_never_owned(row, marks))
}

/// The account that owns an agent of this domain at this time. The agent's row keeps an owner that an admin vouches for
/// until a job has seen that the vouch has expired.
pub(crate) fn keeper_at(
    agent: &agent::Model,
    row: &domain::Model,
    marks: &[entity::owner_marks::Model],
    now: Timestamp,
) -> Option<Uuid> {
    let expired = row.vouched_owner.filter(|_| row.owner_at(now).is_none());
    if expired.is_some() && agent.owner_id == expired {
        return agent.claimed_by;
    }
    keeper(agent, first_of_unowned(row, marks))
}

/// One check of a domain: which proofs are checked, and what may be contacted for that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CheckRequest {
    /// The domain, a host name.
    pub(crate) host: String,
    pub(crate) claimants: Vec<Claimant>,
    /// Whether it was proved before: then its owner marks are fetched too, by which a new owner is detected.
    pub(crate) proved_before: bool,
    /// Whether this checks the claims of all accounts, and not only the caller's.
    pub(crate) all_claims: bool,
    /// Whether the spacing between requests allows a request to its host now.
    pub(crate) may_contact_host: bool,
    /// Whether its host may be contacted although the lookup of its opt-out record failed.
    pub(crate) contact_if_unknown: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claimant {
    pub(crate) account: Uuid,
    /// Its URI, as DNS records name it.
    pub(crate) uri: String,
    /// The nonces of its challenges and proofs; without any only the persistent record is checked.
    pub(crate) nonces: Vec<String>,
}

/// The result of one check of a domain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CheckResult {
    /// Whether the domain's own record opts out of being listed; `None` if the lookup failed.
    pub(crate) opted_out: Option<bool>,
    pub(crate) proofs: Vec<ProofResult>,
    /// The name servers; empty if they were not looked up or the lookup failed.
    pub(crate) name_servers: Vec<String>,
    /// The digest of the certificate's key; `None` if it was not fetched or the connection failed.
    pub(crate) tls_key: Option<String>,
    /// Whether the claims of all accounts were checked, so that the next check is due in a day.
    pub(crate) all_claims: bool,
    /// Whether a request was sent to its host.
    pub(crate) contacted_host: bool,
    /// The seconds of its host's `Retry-After`; 0 without one.
    pub(crate) retry_after: u32,
    /// Whether a request to its host was left out because of spacing or `Retry-After`; the check is repeated soon.
    pub(crate) host_deferred: bool,
    /// Whether the circuit breaker was open: then a missing proof does not count against its account.
    pub(crate) breaker_open: bool,
}

impl CheckResult {
    pub(crate) fn has_proof(&self) -> bool {
        let mut proofs = self.proofs.iter();
        proofs.any(|proof| proof.outcome == ProofOutcome::Held)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProofResult {
    pub(crate) account: Uuid,
    pub(crate) method: Method,
    pub(crate) place: String,
    /// The nonce that was checked; `None` for a persistent record.
    pub(crate) nonce: Option<String>,
    /// The name below which it covers every host, for a record with `policy=subdomains`.
    pub(crate) zone: Option<String>,
    /// Whether the proof was found.
    pub(crate) outcome: ProofOutcome,
    /// One sentence for the owner.
    pub(crate) detail: String,
    /// The value that is missing.
    pub(crate) wanted: Option<String>,
    /// The values that are there instead.
    pub(crate) found: Vec<String>,
    /// Whether the name is a CNAME, so that the record is in another zone.
    pub(crate) aliased: bool,
}
