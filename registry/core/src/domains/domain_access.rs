//! How much of a domain a caller sees (docs/publish/private-cards.md#who-sees-what-of-a-domain).

use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{domain, owner_fingerprint, proof};

use crate::ownership::{has_no_owner_history, is_dispute_party};
use crate::visibility::caller::Caller;

/// The part of a domain that a caller sees. Each level includes the previous ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DomainAccess {
    /// Only what a domain shows that no one had registered before the caller.
    Hidden,
    /// The state, liveness, and method and time of proofs.
    Public,
    /// Attempts without addresses too, and what owners are shown. This level is for the account that registered the
    /// domain, until the domain has had an owner; it still sees only its own sources.
    Registrant,
    /// All sources and agents too. This level is for the owner and each party to a dispute.
    Owner,
    Curator,
}

impl DomainAccess {
    /// Determines a caller's access from the domain's proofs and owner fingerprint. A caller that can see a listed
    /// agent can see its domain.
    pub fn for_caller(
        caller: &Caller,
        row: &domain::Model,
        proofs: &[proof::Model],
        fingerprints: &[owner_fingerprint::Model],
        has_listed_agent: bool,
        now: Timestamp,
    ) -> Self {
        let is_first_registrant = caller.is_account(row.account_id);
        let is_vouched = |proof: &proof::Model| {
            proof.domain_id == row.id && caller.is_account(proof.vouched_account)
        };
        if caller.has_permission(Permission::SeeAll) {
            Self::Curator
        } else if is_owner_or_disputant(caller, row, proofs, now) {
            Self::Owner
        } else if is_first_registrant && has_no_owner_history(row, fingerprints) {
            Self::Registrant
        } else if is_first_registrant || has_listed_agent || proofs.iter().any(is_vouched) {
            Self::Public
        } else {
            Self::Hidden
        }
    }

    pub fn sees_details(self) -> bool {
        self >= Self::Registrant
    }

    pub fn sees_all(self) -> bool {
        self >= Self::Owner
    }
}

/// Whether the caller owns a domain at this time, or has proved it in dispute.
pub fn is_owner_or_disputant(
    caller: &Caller,
    row: &domain::Model,
    proofs: &[proof::Model],
    now: Timestamp,
) -> bool {
    let party = caller.account.as_ref();
    let party = party.is_some_and(|account| is_dispute_party(row, proofs, account.id));
    party || caller.is_account(row.domain_owner_at(now))
}
