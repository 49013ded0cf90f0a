//! The first account and its token, which is taken from the environment or generated at the first start.

use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::identifiers::Entropy;
use a2a_registry_domain::role::{Role, Roles};
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::{Store, StoreError, WriteTransaction, accounts};
use serde_json::json;

use crate::accounts::authentication::sha256_hex;
use crate::accounts::records::{
    new_account_row, new_token_row, new_token_secret, set_account_roles,
};
use crate::commit::change_set::ChangeSet;
use crate::commit::committed_changes::CommittedChanges;
use crate::commit::decision_maker::SYSTEM_ACTOR;
use crate::error::StartError;

/// Minimum length of a bootstrap token, in characters.
const MIN_BOOTSTRAP_TOKEN_CHARS: usize = 32;
pub(super) const BOOTSTRAP_ACCOUNT: &str = "admin";

/// Ensures that an admin token exists: the one from the environment, else that of an earlier start, else a new one,
/// which is returned.
pub async fn ensure_bootstrap_token(
    store: &Store,
    configured_token: Option<&str>,
    now: Timestamp,
    entropy: &dyn Entropy,
) -> Result<Option<String>, StartError> {
    let database_error = |error: StoreError| StartError(format!("the database failed: {error}"));
    if let Some(configured_token) = configured_token {
        if configured_token.len() < MIN_BOOTSTRAP_TOKEN_CHARS {
            return Err(StartError(format!(
                "A2A_REGISTRY_BOOTSTRAP_TOKEN must have at least {MIN_BOOTSTRAP_TOKEN_CHARS} characters"
            )));
        }
        set_bootstrap_token(
            store,
            configured_token,
            ExistingTokenHandling::Replace,
            now,
            entropy,
        )
        .await
        .map_err(database_error)?;
        return Ok(None);
    }
    let secret = new_token_secret(entropy);
    let is_new = set_bootstrap_token(store, &secret, ExistingTokenHandling::Keep, now, entropy)
        .await
        .map_err(database_error)?;
    Ok(is_new.then_some(secret))
}

pub async fn reset_bootstrap_token(
    store: &Store,
    now: Timestamp,
    entropy: &dyn Entropy,
) -> Result<String, StoreError> {
    let secret = new_token_secret(entropy);
    set_bootstrap_token(store, &secret, ExistingTokenHandling::Replace, now, entropy).await?;
    restore_bootstrap_admin(store, now, entropy).await?;
    Ok(secret)
}

/// Makes the account of the bootstrap token an enabled admin and curator again, even if others have changed it:
/// whoever controls the data folder controls the registry.
async fn restore_bootstrap_admin(
    store: &Store,
    now: Timestamp,
    entropy: &dyn Entropy,
) -> Result<(), StoreError> {
    let write = store.begin_write().await?;
    write.lock_accounts().await?;
    let Some(row) = accounts::account_by_name(&write, BOOTSTRAP_ACCOUNT).await? else {
        return Ok(());
    };
    let admin_role = Roles::from_legacy_role(Role::Admin);
    let roles: Roles = row
        .account_roles()
        .unwrap_or_default()
        .iter()
        .chain(admin_role.iter())
        .collect();
    let mut changed = row.clone();
    set_account_roles(&mut changed, &roles);
    changed.disabled_at = None;
    if changed == row {
        return Ok(());
    }
    write.update_account_access(&changed).await?;
    let mut change_set = ChangeSet::new(now, entropy);
    let data = json!({"account": BOOTSTRAP_ACCOUNT, "roles": roles.to_string(), "disabled": false});
    change_set.add_event(EventKind::AccountChanged, row.id, SYSTEM_ACTOR, data);
    let committed = write_change_set(change_set, &write).await?;
    write.commit().await?;
    committed.log_actions();
    Ok(())
}

async fn write_change_set(
    change_set: ChangeSet<'_>,
    write: &WriteTransaction,
) -> Result<CommittedChanges, StoreError> {
    let result = change_set.write(write).await;
    result.map_err(|error| StoreError::other(error.internal.unwrap_or(error.public)))
}

/// What to do with an existing bootstrap token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExistingTokenHandling {
    Keep,
    Replace,
}

/// Stores the bootstrap token; returns whether this secret is the bootstrap token afterwards.
async fn set_bootstrap_token(
    store: &Store,
    secret: &str,
    if_exists: ExistingTokenHandling,
    now: Timestamp,
    entropy: &dyn Entropy,
) -> Result<bool, StoreError> {
    let write = store.begin_write().await?;
    write.lock_accounts().await?;
    if if_exists == ExistingTokenHandling::Keep && accounts::has_bootstrap_token(&write).await? {
        return Ok(false);
    }
    let admin = match accounts::account_by_name(&write, BOOTSTRAP_ACCOUNT).await? {
        Some(admin) => admin,
        None => {
            let admin = new_account_row(
                BOOTSTRAP_ACCOUNT,
                &Roles::from_legacy_role(Role::Admin),
                now,
                entropy,
            );
            write.insert_account(admin.clone()).await?;
            admin
        }
    };
    let mut committed = CommittedChanges::default();
    write
        .delete_other_bootstrap_tokens(&sha256_hex(secret))
        .await?;
    if accounts::token_by_hash(&write, &sha256_hex(secret))
        .await?
        .is_none()
    {
        write
            .insert_token(new_token_row(
                secret,
                admin.id,
                "bootstrap",
                true,
                now,
                entropy,
            ))
            .await?;
        let mut change_set = ChangeSet::new(now, entropy);
        let data = json!({"account": BOOTSTRAP_ACCOUNT, "name": "bootstrap"});
        change_set.add_event(
            EventKind::TokenCreated,
            BOOTSTRAP_ACCOUNT,
            SYSTEM_ACTOR,
            data,
        );
        committed = write_change_set(change_set, &write).await?;
    }
    write.commit().await?;
    committed.log_actions();
    Ok(true)
}
