//! What an earlier version has left undone for accounts.

use a2a_registry_store::groups::ADMIN_ORIGIN;
use a2a_registry_store::{Handle, StoreError, accounts, groups};

use crate::accounts::bootstrap::ADMIN;
use crate::context::Context;
use crate::names::RESERVED_NAMES;

/// Begins to count the absence of accounts that an earlier version has made, so that none of their tokens is suspended by the
/// upgrade itself, and logs names that mean something else by this version.
///
/// # Errors
/// Where the database fails.
pub(crate) async fn prepare_accounts(context: &Context) -> Result<(), StoreError> {
    let write = context.store.write().await?;
    write.absences_begin(context.now().0).await?;
    write.commit().await?;
    for holder in reserved_name_holders(&context.store).await? {
        tracing::warn!(holder, "{RESERVED_NAME}");
    }
    Ok(())
}

/// What is wrong with an account or a group that has a reserved name.
pub(crate) const RESERVED_NAME: &str = "its name is reserved, so policies that use the name do not apply to it; create another one in its place";

/// The accounts and groups that an earlier version has given a reserved name.
///
/// # Errors
/// Where the database fails.
pub(crate) async fn reserved_name_holders(on: &impl Handle) -> Result<Vec<String>, StoreError> {
    let accounts = accounts::account_names_among(on, &RESERVED_NAMES).await?;
    let groups = groups::group_names_among(on, ADMIN_ORIGIN, &RESERVED_NAMES).await?;
    let accounts = accounts.into_iter().filter(|name| name != ADMIN);
    let accounts = accounts.map(|name| format!("the account {name}"));
    let groups = groups.into_iter().map(|name| format!("the group {name}"));
    Ok(accounts.chain(groups).collect())
}
