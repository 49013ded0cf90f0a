//! Accounts and their access tokens. A secret is shown once and stored as a hash.

use a2a_registry_api::limits::{MAX_NAME, MAX_TOKEN_DAYS};
use a2a_registry_api::{CreatedToken, NewToken, Token, TokenList};
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::ids::{Entropy, new_id};
use a2a_registry_domain::role::{Permission, Role};
use a2a_registry_domain::timestamp::{DAY, Timestamp};
use a2a_registry_store::entity::{account, token};
use a2a_registry_store::{Store, StoreError, Write, accounts};
use data_encoding::BASE64URL_NOPAD;
use serde_json::json;
use uuid::Uuid;

use crate::authentication::{TOKEN_PREFIX, hash};
use crate::caller::Caller;
use crate::commit::approver::SYSTEM;
use crate::commit::ledger::Ledger;
use crate::commit::publish::after_write;
use crate::context::Context;
use crate::error::{AppError, ErrorKind, StartError};
use crate::paging::{PageRequest, cut, page_size};

/// Characters of a token that lists show.
const SHOWN: usize = 10;
/// Minimum length of a bootstrap token, in characters.
const MIN_BOOTSTRAP: usize = 32;
/// The account that the bootstrap token belongs to.
const ADMIN: &str = "admin";

/// Makes a token, and its account if no account has that name.
///
/// # Errors
/// `Invalid` for a name that is not allowed, `Conflict` if the account exists with another role.
pub async fn token_create(
    context: &Context,
    caller: &Caller,
    new: &NewToken,
) -> Result<CreatedToken, AppError> {
    let admin = caller.demand(Permission::Administer)?;
    check_name("/account", &new.account)?;
    check_name("/name", &new.name)?;
    if new
        .expires_in_days
        .is_some_and(|days| days == 0 || days > MAX_TOKEN_DAYS)
    {
        return Err(AppError::invalid(
            "/expires_in_days",
            format!("expires_in_days must be between 1 and {MAX_TOKEN_DAYS}"),
        ));
    }
    let now = context.now();
    let write = context.store.write().await?;
    let account = account_for(context, &write, new, now).await?;
    let secret = new_secret(context.entropy.as_ref());
    let expires_at = new
        .expires_in_days
        .map(|days| now.plus(i64::from(days) * DAY).0);
    let row = token_row(
        &secret,
        account.id,
        &new.name,
        false,
        now,
        context.entropy.as_ref(),
    );
    let row = token::Model { expires_at, ..row };
    write.token_insert(row.clone()).await?;
    let mut ledger = Ledger::new(now, context.entropy.as_ref());
    let data = json!({"account": account.name, "name": row.name});
    ledger.event(
        EventKind::TokenCreated,
        &row.id.to_string(),
        &admin.name,
        data,
    );
    let touched = ledger.write(&write).await?;
    write.commit().await?;
    after_write(context, &touched);
    Ok(CreatedToken {
        token: view(row, account.name),
        secret,
    })
}

async fn account_for(
    context: &Context,
    write: &Write,
    new: &NewToken,
    now: Timestamp,
) -> Result<account::Model, AppError> {
    if let Some(account) = accounts::account_by_name(write, &new.account).await? {
        if new.role.is_some_and(|role| account.role != role) {
            return Err(AppError::new(
                ErrorKind::Conflict,
                format!(
                    "The account {} has the role {}.",
                    account.name,
                    account.role.as_str()
                ),
            ));
        }
        return Ok(account);
    }
    let role = new.role.ok_or_else(|| {
        AppError::invalid(
            "/role",
            format!("there is no account {}; name its role", new.account),
        )
    })?;
    let account = account_row(&new.account, role, now, context.entropy.as_ref());
    write.account_insert(account.clone()).await?;
    Ok(account)
}

/// All tokens, newest first, without their secrets.
///
/// # Errors
/// `Forbidden` for every caller but an admin.
pub async fn token_list(
    context: &Context,
    caller: &Caller,
    page: &PageRequest,
) -> Result<TokenList, AppError> {
    caller.demand(Permission::Administer)?;
    let size = page_size(page.page_size)?;
    let before: Option<Uuid> = match &page.page_token {
        Some(token) => Some(context.signer.position("tokens", caller, token)?),
        None => None,
    };
    let mut rows = accounts::token_page(&context.store, before, size as u64 + 1).await?;
    let more = cut(&mut rows, size);
    let next_page_token = more
        .then(|| {
            rows.last()
                .and_then(|last| context.signer.token("tokens", caller, &last.id))
        })
        .flatten();
    let ids: Vec<Uuid> = rows.iter().map(|row| row.account_id).collect();
    let owners = accounts::accounts_by_ids(&context.store, &ids).await?;
    let name = |id: Uuid| {
        owners
            .iter()
            .find(|owner| owner.id == id)
            .map(|owner| owner.name.clone())
    };
    let tokens = rows
        .into_iter()
        .map(|row| {
            let account = name(row.account_id).unwrap_or_default();
            view(row, account)
        })
        .collect();
    Ok(TokenList {
        tokens,
        next_page_token,
    })
}

/// Revokes a token.
///
/// # Errors
/// `NotFound` if no token has this id.
pub async fn token_revoke(context: &Context, caller: &Caller, id: Uuid) -> Result<(), AppError> {
    let admin = caller.demand(Permission::Administer)?;
    let write = context.store.write().await?;
    if !write.token_delete(id).await? {
        return Err(AppError::no_token(id));
    }
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    ledger.event(
        EventKind::TokenRevoked,
        &id.to_string(),
        &admin.name,
        json!({}),
    );
    let touched = ledger.write(&write).await?;
    write.commit().await?;
    after_write(context, &touched);
    Ok(())
}

/// Makes sure that an admin token exists: the one from the environment, else the one of an earlier start, else a new
/// one, which is returned.
///
/// # Errors
/// If the given token is too short, or the database fails.
pub(crate) async fn bootstrap(
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

/// Replaces the bootstrap admin token by a new one, which is returned.
pub(crate) async fn reset(
    store: &Store,
    now: Timestamp,
    entropy: &dyn Entropy,
) -> Result<String, StoreError> {
    let secret = new_secret(entropy);
    replace(store, &secret, ExistingToken::Removed, now, entropy).await?;
    Ok(secret)
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
            let admin = account_row(ADMIN, Role::Admin, now, entropy);
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
        ledger
            .write(&write)
            .await
            .map_err(|error| StoreError::other(error.internal.unwrap_or(error.public)))?;
    }
    write.commit().await?;
    Ok(true)
}

fn account_row(name: &str, role: Role, now: Timestamp, entropy: &dyn Entropy) -> account::Model {
    account::Model {
        id: new_id(now, entropy),
        name: name.into(),
        role: role.into(),
        created_at: now.0,
    }
}

fn token_row(
    secret: &str,
    account_id: Uuid,
    name: &str,
    bootstrap: bool,
    now: Timestamp,
    entropy: &dyn Entropy,
) -> token::Model {
    // The beginning of a token that an operator chose may be enough to guess the rest; a generated token is random.
    let shown = if secret.starts_with(TOKEN_PREFIX) {
        SHOWN
    } else {
        0
    };
    token::Model {
        id: new_id(now, entropy),
        account_id,
        name: name.into(),
        prefix: secret.chars().take(shown).collect(),
        hash: hash(secret),
        bootstrap,
        created_at: now.0,
        expires_at: None,
    }
}

fn new_secret(entropy: &dyn Entropy) -> String {
    let mut random = [0; 32];
    entropy.fill(&mut random);
    format!("{TOKEN_PREFIX}{}", BASE64URL_NOPAD.encode(&random))
}

fn check_name(pointer: &str, name: &str) -> Result<(), AppError> {
    let fits = !name.is_empty()
        && name.len() <= MAX_NAME
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || " ._-@".contains(c));
    if fits {
        return Ok(());
    }
    Err(AppError::invalid(
        pointer,
        format!("a name has 1 to {MAX_NAME} letters, digits, blanks or any of . _ - @"),
    ))
}

fn view(row: token::Model, account: String) -> Token {
    Token {
        id: row.id,
        account,
        name: row.name,
        prefix: row.prefix,
        created_at: Timestamp(row.created_at),
        expires_at: row.expires_at.map(Timestamp),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use a2a_crawler::SystemClock;

    use super::*;
    use crate::authentication::authenticate;
    use crate::config::Config;
    use crate::network::Network;
    use a2a_registry_domain::ids::SystemEntropy;
    use a2a_registry_store::Kept;

    const ADMINS: &str = "a-bootstrap-token-of-forty-characters-0001";
    const THEIRS: &str = "a-token-of-somebody-whose-role-is-a-later-one";

    #[tokio::test]
    async fn a_role_that_is_not_known_may_nothing() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::default();
        config.store.data_dir = folder.path().to_owned();
        let entropy = Arc::new(SystemEntropy::default());
        let network = Network::none(&config, Arc::new(SystemClock)).unwrap();
        let clock = Arc::new(SystemClock);
        let build = Context::build(config, clock, entropy.clone(), network, Some(ADMINS));
        let context = build.await.unwrap().context;
        let now = context.now();
        let account = account::Model {
            role: Kept::read("warden".into()),
            ..account_row("later", Role::Admin, now, entropy.as_ref())
        };
        let token = token_row(THEIRS, account.id, "test", false, now, entropy.as_ref());
        let write = context.store.write().await.unwrap();
        write.account_insert(account.clone()).await.unwrap();
        write.token_insert(token).await.unwrap();
        write.commit().await.unwrap();
        let error = authenticate(&context, THEIRS).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Internal);
        let told = format!("accounts.role of {} holds \"warden\"", account.id);
        assert_eq!(error.internal, Some(told));
        assert!(authenticate(&context, ADMINS).await.is_ok());
    }
}
