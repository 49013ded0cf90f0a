//! Who may change a domain: its owner, proved or vouched for, and curators.

use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::Handle;
use a2a_registry_store::entity::domain;

use crate::caller::{Account, Caller};
use crate::error::{AppError, ErrorKind};
use crate::ownership::dispute::{disputed, is_caller_party, is_disputed};
use crate::ownership::is_provable;

/// The caller's account, if it owns the domain at this time or curates. While a domain is disputed only curators may
/// change it.
///
/// # Errors
/// `Unauthenticated`; `Conflict` for a party to its dispute and for the account that registered a disputed domain;
/// `Forbidden` for all others.
pub(crate) async fn require_owner_or_curator<'a>(
    on: &impl Handle,
    caller: &'a Caller,
    row: &domain::Model,
    now: Timestamp,
) -> Result<&'a Account, AppError> {
    let account = caller.demand(Permission::Register)?;
    if caller.may(Permission::Curate) || row.owner_at(now) == Some(account.id) {
        return Ok(account);
    }
    let registered = is_disputed(row)? && row.account_id == Some(account.id);
    if registered || is_caller_party(on, caller, row).await? {
        return Err(disputed(row));
    }
    let name = &row.name;
    let needed = if is_provable(row) {
        format!("This needs a proof that {name} is yours: `a2a-registry domain verify {name}`.")
    } else {
        format!(
            "{name} cannot be proved, so this needs an admin who vouches for you as its owner: `a2a-registry domain vouch {name} \
             --owner NAME`."
        )
    };
    Err(AppError::new(ErrorKind::Forbidden, needed))
}
