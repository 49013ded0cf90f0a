//! Accounts and groups with reserved names, created before those names were reserved.

use a2a_registry_store::groups::{self, ADMIN_ORIGIN};
use a2a_registry_store::{Executor, StoreError, accounts};

use crate::accounts::bootstrap::BOOTSTRAP_ACCOUNT;
use crate::name_rules::RESERVED_NAMES;

pub const RESERVED_NAME_NOTICE: &str = "its name is reserved, so policies that use the name do not apply to it; \
    replace it with one that has another name";

pub async fn reserved_names_in_use(db: &impl Executor) -> Result<Vec<String>, StoreError> {
    let accounts = accounts::account_names_matching(db, &RESERVED_NAMES).await?;
    let groups = groups::group_names_matching(db, ADMIN_ORIGIN, &RESERVED_NAMES).await?;
    let accounts = accounts
        .into_iter()
        .filter(|name| name != BOOTSTRAP_ACCOUNT);
    let accounts = accounts.map(|name| format!("the account {name}"));
    let groups = groups.into_iter().map(|name| format!("the group {name}"));
    Ok(accounts.chain(groups).collect())
}
