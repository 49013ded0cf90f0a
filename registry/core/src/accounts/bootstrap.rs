//! The first account and its token: from the environment, or made at the first start.

use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::ids::Entropy;
use a2a_registry_domain::role::{Role, Roles};
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::{Store, StoreError, Write, accounts};
use serde_json::json;

use crate::accounts::authentication::hash;
use crate::accounts::records::{account_row, new_secret, set_roles, token_row};
use crate::commit::approver::SYSTEM;
use crate::commit::ledger::Ledger;
use crate::error::StartError;

/// Minimum length of a bootstrap token, in characters.
const MIN_BOOTSTRAP: usize = 32;
pub(super) const ADMIN: &str = "admin";

/// Makes sure that an admin token exists: the one from the environment, else that of an earlier start, else a new one,
/// which is returned.
pub async fn bootstrap(
    store: &Store,
    given: Option<&str>,
    now: Timestamp,
    entropy: &dyn Entropy,
) -> Result<Option<String>, StartError> {
    let failed = |error: StoreError| StartError(format!("the database failed: {error}"));
    if let Some(given) = given {
        if given.len() < MIN_BOOTSTRAP {
            return Err(StartError(format!(
                "A2A_REGISTRY_BOOTSTRAP_TOKEN must have at least {MIN_BOOTSTRAP} characters"
            )));
        }
        replace(store, given, ExistingToken::Removed, now, entropy)
            .await
            .map_err(failed)?;
        return Ok(None);
    }
    let secret = new_secret(entropy);
    let made = replace(store, &secret, ExistingToken::Kept, now, entropy)
        .await
        .map_err(failed)?;
    Ok(made.then_some(secret))
}

pub async fn reset(
    store: &Store,
    now: Timestamp,
    entropy: &dyn Entropy,
) -> Result<String, StoreError> {
    let secret = new_secret(entropy);
    replace(store, &secret, ExistingToken::Removed, now, entropy).await?;
    recover(store, now, entropy).await?;
    Ok(secret)
}

/// Makes the account of the bootstrap token an enabled admin and curator again, even if others have changed it: whoever
/// holds the data folder is in charge.
async fn recover(store: &Store, now: Timestamp, entropy: &dyn Entropy) -> Result<(), StoreError> {
    let write = store.write().await?;
    write.accounts_lock().await?;
    let Some(row) = accounts::account_by_name(&write, ADMIN).await? else {
        return Ok(());
    };
    let whole = Roles::of_one(Role::Admin);
    let roles: Roles = row
        .roles()
        .unwrap_or_default()
        .iter()
        .chain(whole.iter())
        .collect();
    let mut changed = row.clone();
    set_roles(&mut changed, &roles);
    changed.disabled_at = None;
    if changed == row {
        return Ok(());
    }
    write.account_update(&changed).await?;
    let mut ledger = Ledger::new(now, entropy);
    let data = json!({"account": ADMIN, "roles": roles.to_string(), "disabled": false});
    ledger.event(EventKind::AccountChanged, row.id, SYSTEM, data);
    written(ledger, &write).await?;
    write.commit().await
}

async fn written(ledger: Ledger<'_>, write: &Write) -> Result<(), StoreError> {
    let wrote = ledger.write(write).await;
    wrote
        .map(drop)
        .map_err(|error| StoreError::other(error.internal.unwrap_or(error.public)))
}

/// What to do with an existing bootstrap token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExistingToken {
    Kept,
    Removed,
}

/// Makes this the bootstrap token; returns whether it is the bootstrap token afterwards.
async fn replace(
    store: &Store,
    secret: &str,
    standing: ExistingToken,
    now: Timestamp,
    entropy: &dyn Entropy,
) -> Result<bool, StoreError> {
    let write = store.write().await?;
    write.accounts_lock().await?;
    if standing == ExistingToken::Kept && accounts::token_has_bootstrap(&write).await? {
        return Ok(false);
    }
    let admin = match accounts::account_by_name(&write, ADMIN).await? {
        Some(admin) => admin,
        None => {
            let admin = account_row(ADMIN, &Roles::of_one(Role::Admin), now, entropy);
            write.account_insert(admin.clone()).await?;
            admin
        }
    };
    write.token_delete_bootstrap(&hash(secret)).await?;
    if accounts::token_by_hash(&write, &hash(secret))
        .await?
        .is_none()
    {
        write
            .token_insert(token_row(secret, admin.id, "bootstrap", true, now, entropy))
            .await?;
        let mut ledger = Ledger::new(now, entropy);
        let data = json!({"account": ADMIN, "name": "bootstrap"});
        ledger.event(EventKind::TokenCreated, ADMIN, SYSTEM, data);
        written(ledger, &write).await?;
    }
    write.commit().await?;
    Ok(true)
}
