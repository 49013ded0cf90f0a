//! How much of a domain a caller sees (docs/model.md#visibility).

use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{self, domain, proof};

use crate::caller::Caller;
use crate::ownership::{is_party, was_never_owned};

/// The level of detail that a caller sees of a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DetailLevel {
    /// State, proofs' method and time, liveness.
    Outside,
    /// Attempts too, without addresses.
    Owner,
    /// Everything.
    Curator,
}

/// The level of detail for a caller, by the domain's proofs and owner marks: each party to a dispute sees as much as
/// the other, and the account that registered a domain as much as an owner until it has one.
pub(crate) fn detail_level(
    caller: &Caller,
    row: &domain::Model,
    proofs: &[proof::Model],
    marks: &[entity::owner_marks::Model],
    now: Timestamp,
) -> DetailLevel {
    let registered = was_never_owned(row, marks) && caller.is(row.account_id);
    if caller.may(Permission::SeeAll) {
        DetailLevel::Curator
    } else if registered || is_owner(caller, row, proofs, now) {
        DetailLevel::Owner
    } else {
        DetailLevel::Outside
    }
}

/// Whether the caller owns a domain at this time, or has proved it in dispute.
pub(crate) fn is_owner(
    caller: &Caller,
    row: &domain::Model,
    proofs: &[proof::Model],
    now: Timestamp,
) -> bool {
    let party = caller.account.as_ref();
    let party = party.is_some_and(|account| is_party(row, proofs, account.id));
    party || caller.is(row.owner_at(now))
}
