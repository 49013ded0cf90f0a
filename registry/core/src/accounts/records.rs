//! Rows of accounts and tokens: creation, lookup and views.

use a2a_registry_api::{Account, GroupName, Token};
use a2a_registry_domain::identifiers::{Entropy, new_uuid};
use a2a_registry_domain::role::Roles;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{account, account_group, token};
use a2a_registry_store::{Executor, accounts, groups};
use data_encoding::BASE64URL_NOPAD;
use uuid::Uuid;

use crate::accounts::authentication::{
    TOKEN_PREFIX, account_suspended_since, allowed_token_scopes, sha256_hex,
};
use crate::context::AppContext;
use crate::error::{AppError, Result};
use crate::name_rules::check_unreserved_name;

/// The number of leading characters of a token that are shown in lists.
const TOKEN_PREFIX_CHARS: usize = 10;

pub fn new_account_row(
    name: &str,
    roles: &Roles,
    now: Timestamp,
    entropy: &dyn Entropy,
) -> account::Model {
    account::Model {
        id: new_uuid(now, entropy),
        name: name.into(),
        role: roles.main_role().into(),
        roles: Some(roles.to_string()),
        disabled_at: None,
        claims_valid_at: None,
        access_ended_at: None,
        news_seen_at: None,
        created_at: now.0,
    }
}

pub fn set_account_roles(row: &mut account::Model, roles: &Roles) {
    row.role = roles.main_role().into();
    row.roles = Some(roles.to_string());
}

pub fn new_token_row(
    secret: &str,
    account_id: Uuid,
    name: &str,
    bootstrap: bool,
    now: Timestamp,
    entropy: &dyn Entropy,
) -> token::Model {
    // If the operator chose the token, its prefix may be enough to guess the rest; a generated token is random.
    let prefix_chars = if secret.starts_with(TOKEN_PREFIX) {
        TOKEN_PREFIX_CHARS
    } else {
        0
    };
    token::Model {
        id: new_uuid(now, entropy),
        account_id,
        name: name.into(),
        prefix: secret.chars().take(prefix_chars).collect(),
        hash: sha256_hex(secret),
        bootstrap,
        created_at: now.0,
        expires_at: None,
        scopes: None,
        last_used_at: None,
    }
}

pub fn new_token_secret(entropy: &dyn Entropy) -> String {
    let mut random = [0; 32];
    entropy.fill(&mut random);
    format!("{TOKEN_PREFIX}{}", BASE64URL_NOPAD.encode(&random))
}

/// Rejects an invalid name of a new account. In a path, a name that parses as an id could refer to another account.
pub fn check_account_name(pointer: &str, name: &str) -> Result<()> {
    check_unreserved_name(pointer, name)?;
    if Uuid::try_parse(name).is_ok() {
        return Err(AppError::invalid(
            pointer,
            "the name of an account cannot be an id",
        ));
    }
    Ok(())
}

pub fn token_view(context: &AppContext, row: token::Model, account: &account::Model) -> Token {
    let roles = account.account_roles().unwrap_or_default();
    Token {
        id: row.id,
        account: account.name.clone(),
        scopes: allowed_token_scopes(&row, &roles)
            .iter()
            .map(Into::into)
            .collect(),
        name: row.name,
        prefix: row.prefix,
        created_at: Timestamp(row.created_at),
        expires_at: row.expires_at.map(Timestamp),
        last_used_at: row.last_used_at.map(Timestamp),
        suspended_at: account_suspended_since(context, account),
    }
}

pub(super) async fn account_views(
    db: &impl Executor,
    rows: Vec<account::Model>,
) -> Result<Vec<Account>> {
    let ids: Vec<Uuid> = rows.iter().map(|row| row.id).collect();
    let groups = groups::groups_by_account(db, &ids).await?;
    let view = |row: account::Model| {
        let roles = row.account_roles()?;
        let own = groups.iter().filter(|(account, _)| *account == row.id);
        Ok(Account {
            id: row.id,
            name: row.name,
            role: roles.main_role().into(),
            roles: roles.iter().map(Into::into).collect(),
            groups: own.map(|(_, group)| group_name(group)).collect(),
            disabled_at: row.disabled_at.map(Timestamp),
            access_ended_at: row.access_ended_at.map(Timestamp),
            created_at: Timestamp(row.created_at),
        })
    };
    rows.into_iter().map(view).collect()
}

pub(super) async fn account_view(db: &impl Executor, row: account::Model) -> Result<Account> {
    let id = row.id;
    let mut views = account_views(db, vec![row]).await?;
    views.pop().ok_or_else(|| AppError::no_account(id))
}

fn group_name(group: &account_group::Model) -> GroupName {
    GroupName {
        origin: group.origin.clone(),
        name: group.name.clone(),
    }
}

pub(super) async fn find_account(db: &impl Executor, id_or_name: &str) -> Result<account::Model> {
    let by_id = match Uuid::try_parse(id_or_name) {
        Ok(id) => accounts::accounts_by_ids(db, &[id]).await?.pop(),
        Err(_) => None,
    };
    let account = match by_id {
        Some(found) => Some(found),
        // Older names may parse as ids.
        None => accounts::account_by_name(db, id_or_name).await?,
    };
    account.ok_or_else(|| AppError::no_account(id_or_name))
}
