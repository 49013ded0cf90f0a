//! Who may change a domain: its owner, and curators.

use a2a_registry_domain::role::Permission;
use a2a_registry_store::Handle;
use a2a_registry_store::entity::domain;

use crate::caller::{Account, Caller};
use crate::error::{AppError, ErrorKind};
use crate::ownership::dispute::{disputed, is_caller_party, is_disputed};

/// The caller's account, if it owns the domain or curates. While a domain is disputed only curators may change it.
///
/// # Errors
/// `Unauthenticated`; `Conflict` for a party to its dispute and for the account that registered a disputed domain;
/// `Forbidden` for all others.
pub(crate) async fn require_owner_or_curator<'a>(
    on: &impl Handle,
    caller: &'a Caller,
    row: &domain::Model,
) -> Result<&'a Account, AppError> {
    let account = caller.demand(Permission::Register)?;
    if caller.may(Permission::Curate) || row.owner_id == Some(account.id) {
        return Ok(account);
    }
    let registered = is_disputed(row)? && row.account_id == Some(account.id);
    if registered || is_caller_party(on, caller, row).await? {
        return Err(disputed(row));
    }
    Err(AppError::new(
        ErrorKind::Forbidden,
        format!(
            "This needs a proof that {} is yours: `a2a-registry domain verify {0}`.",
            row.name
        ),
    ))
}
