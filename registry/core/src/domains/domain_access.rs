//! How much of a domain a caller sees (docs/model.md#visibility).

use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{domain, owner_fingerprint, proof};

use crate::ownership::{has_no_owner_history, is_party};
use crate::visibility::caller::Caller;

/// How much of a domain a caller sees. Each level includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DomainAccess {
    /// As much as of a domain that no one had registered before the caller.
    Hidden,
    /// State, proofs' method and time, liveness.
    Public,
    /// Attempts too, without addresses, and what owners are shown: the account that registered the domain, until it has
    /// had an owner. It still sees only its own sources.
    Registrant,
    /// All sources and agents too: the owner, and each party to a dispute.
    Owner,
    Curator,
}

impl DomainAccess {
    /// The access of a caller, by the domain's proofs and owner marks. An agent that is listed for the caller shows it
    /// the domain.
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
        } else if is_owner(caller, row, proofs, now) {
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
pub fn is_owner(
    caller: &Caller,
    row: &domain::Model,
    proofs: &[proof::Model],
    now: Timestamp,
) -> bool {
    let party = caller.account.as_ref();
    let party = party.is_some_and(|account| is_party(row, proofs, account.id));
    party || caller.is_account(row.owner_at(now))
}
