//! How much of a domain a caller sees (docs/model.md#visibility).

use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{domain, owner_marks, proof};

use crate::ownership::{is_party, was_never_owned};
use crate::visibility::caller::Caller;

/// How much of a domain a caller sees. Each level includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DomainAccess {
    /// As much as of a domain that no one had registered before the caller.
    Nothing,
    /// State, proofs' method and time, liveness.
    Outside,
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
    pub fn of(
        caller: &Caller,
        row: &domain::Model,
        proofs: &[proof::Model],
        marks: &[owner_marks::Model],
        has_listed_agent: bool,
        now: Timestamp,
    ) -> Self {
        let is_first = caller.is(row.account_id);
        let is_vouched =
            |proof: &proof::Model| proof.domain_id == row.id && caller.is(proof.vouched_account);
        if caller.may(Permission::SeeAll) {
            Self::Curator
        } else if is_owner(caller, row, proofs, now) {
            Self::Owner
        } else if is_first && was_never_owned(row, marks) {
            Self::Registrant
        } else if is_first || has_listed_agent || proofs.iter().any(is_vouched) {
            Self::Outside
        } else {
            Self::Nothing
        }
    }

    pub fn is_inside(self) -> bool {
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
    party || caller.is(row.owner_at(now))
}
