//! Domain ownership: the challenges of an account, the checks for its proofs, and the consequences of their results
//! (docs/publish/prove.md).

pub mod apply_check;
pub mod authorization;
pub mod challenges;
pub mod dispute;
pub mod domain_check;
pub mod generation;
pub mod job;
pub mod opt_out_lookup;
pub mod owner_change;
pub mod owner_vouches;
pub mod proofs;
pub mod urn_authority;
pub mod verify;

use a2a_registry_domain::ownership::{DomainState, Method, ProofOutcome};
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{self, agent, domain};
use uuid::Uuid;

use crate::visibility::responsible_account;

pub use challenges::challenge_unavailable_reason;
pub use dispute::{dispute_error, is_dispute_party, is_disputed_domain};
pub use owner_change::parse_owner_fingerprint;

/// Whether a domain never had an owner: no proof, no owner vouch, no earlier generation, no owner fingerprint. Until
/// it has one, the account that registered it manages it. A domain whose owner has left does not return to that
/// account.
pub fn has_no_owner_history(
    row: &domain::Model,
    fingerprints: &[entity::owner_fingerprint::Model],
) -> bool {
    row.owner_id.is_none()
        && row.vouched_owner.is_none()
        && row.generation == 1
        && row.state == DomainState::Unverified
        && !fingerprints.iter().any(|marks| marks.domain_id == row.id)
}

/// The account that first registered a domain that never had an owner.
fn registrant_if_never_owned(
    row: &domain::Model,
    fingerprints: &[entity::owner_fingerprint::Model],
) -> Option<Uuid> {
    row.account_id
        .filter(|_| has_no_owner_history(row, fingerprints))
}

/// The account that owns an agent of this domain at this time. The agent's row keeps a vouched owner until a job
/// notices that the vouch has expired.
pub fn agent_owner_at(
    agent: &agent::Model,
    row: &domain::Model,
    fingerprints: &[entity::owner_fingerprint::Model],
    now: Timestamp,
) -> Option<Uuid> {
    let expired = row
        .vouched_owner
        .filter(|_| row.domain_owner_at(now).is_none());
    if expired.is_some() && agent.owner_id == expired {
        return agent.claimed_by;
    }
    responsible_account(agent, registrant_if_never_owned(row, fingerprints))
}

/// A request to check a domain: the proofs to check, and the hosts that may be contacted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainCheckRequest {
    /// The domain, a host name.
    pub host: String,
    pub claimants: Vec<Claimant>,
    /// Whether the domain was proved before: then its owner fingerprint is fetched too, to detect a new owner.
    pub proved_before: bool,
    /// Whether the claims of all accounts are checked, and not only the caller's.
    pub all_claims: bool,
    /// Whether the spacing between requests allows a request to its host now.
    pub may_contact_host: bool,
    /// Whether its host may be contacted although the lookup of its opt-out record failed.
    pub contact_if_unknown: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimant {
    pub account: Uuid,
    /// The URI of the account in DNS records.
    pub uri: String,
    /// The nonces of the account's challenges and proofs; without any only the persistent record is checked.
    pub nonces: Vec<String>,
}

/// The result of one check of a domain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DomainCheckResult {
    /// Whether the domain's own record opts out of being listed; `None` if the lookup failed.
    pub opted_out: Option<bool>,
    pub proofs: Vec<ProofResult>,
    /// The name servers; empty if they were not looked up or the lookup failed.
    pub name_servers: Vec<String>,
    /// The digest of the TLS certificate's key; `None` if it was not fetched or the connection failed.
    pub tls_key: Option<String>,
    /// Whether the claims of all accounts were checked, so that the next check is due in a day.
    pub all_claims: bool,
    /// Whether a request was sent to its host.
    pub contacted_host: bool,
    /// The `Retry-After` of the host in seconds; 0 without one.
    pub retry_after: u32,
    /// Whether a request to the host was skipped because of spacing or `Retry-After`, so that the check is repeated
    /// soon.
    pub host_deferred: bool,
    /// Whether the circuit breaker was open: then a missing proof does not count against its account.
    pub breaker_open: bool,
}

impl DomainCheckResult {
    pub fn has_proof(&self) -> bool {
        let mut proofs = self.proofs.iter();
        proofs.any(|proof| proof.outcome == ProofOutcome::Held)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProofResult {
    pub account: Uuid,
    pub method: Method,
    pub place: String,
    /// The nonce that was checked; `None` for a persistent record.
    pub nonce: Option<String>,
    /// The name below which the proof covers every host, for a record with `policy=subdomains`.
    pub zone: Option<String>,
    /// Whether the proof was found.
    pub outcome: ProofOutcome,
    /// A sentence for the owner.
    pub detail: String,
    /// The value that is missing.
    pub wanted: Option<String>,
    /// The values that were found instead.
    pub found: Vec<String>,
    /// Whether the name is a CNAME, so that the record is in another zone.
    pub aliased: bool,
}
