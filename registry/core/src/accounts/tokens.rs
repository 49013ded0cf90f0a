//! Access tokens. A secret is shown once and stored as a hash. An account creates and revokes its own tokens; an admin
//! can do so for every account.

use a2a_registry_api::limits::{DEFAULT_TOKEN_DAYS, MAX_TOKEN_DAYS, MAX_TOKENS_PER_ACCOUNT};
use a2a_registry_api::{CreatedToken, NewToken, Token, TokenList};
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::role::{Permission, Roles, Scopes};
use a2a_registry_domain::timestamp::{DAY, Timestamp};
use a2a_registry_store::entity::{account, token};
use a2a_registry_store::{Executor, WriteTransaction, accounts, sessions};
use serde_json::json;
use uuid::Uuid;

use crate::accounts::admin_access::{require_remaining_admin_access, token_grants_admin};
use crate::accounts::authentication::allowed_token_scopes;
use crate::accounts::records::{
    check_account_name, new_account_row, new_token_row, new_token_secret, token_view,
};
use crate::commit::change_set::ChangeSet;
use crate::commit::publish::commit_changes;
use crate::context::AppContext;
use crate::error::{AppError, Result};
use crate::name_rules::check_name;
use crate::paging::{ListPage, PageRequest};
use crate::visibility::caller::{Caller, CallerAccount};

/// Creates a token. An admin may name an account that does not exist yet, which is then created too.
pub async fn token_create(
    context: &AppContext,
    caller: &Caller,
    new: &NewToken,
) -> Result<CreatedToken> {
    let actor = caller.require_permission(Permission::Read)?;
    let days = validate_new_token(new)?;
    let is_own = new.account.is_empty() || new.account == actor.name;
    if !is_own && !actor.has_permission(Permission::Administer) {
        return Err(AppError::forbidden(
            "Only an admin may create tokens for other accounts.",
        ));
    }
    let now = context.now();
    let write = context.store.begin_write().await?;
    write.lock_accounts().await?;
    let mut change_set = ChangeSet::new(now, context.entropy.as_ref());
    let account = find_or_create_account(context, &write, &mut change_set, actor, new).await?;
    let scopes = new_token_scopes(new, &account, is_own.then_some(actor))?;
    enforce_token_limit(&write, &account, now).await?;
    let secret = new_token_secret(context.entropy.as_ref());
    let entropy = context.entropy.as_ref();
    let row = token::Model {
        expires_at: Some(now.plus_micros(i64::from(days) * DAY).0),
        scopes: Some(scopes.to_string()),
        ..new_token_row(&secret, account.id, &new.name, false, now, entropy)
    };
    write.insert_token(row.clone()).await?;
    let data = json!({"account": account.name, "name": row.name, "scopes": row.scopes});
    change_set.add_event(EventKind::TokenCreated, row.id, &actor.name, data);
    commit_changes(context, write, change_set).await?;
    Ok(CreatedToken {
        token: token_view(context, row, &account),
        secret,
    })
}

/// Rejects an invalid request; returns the token's lifetime in days.
fn validate_new_token(new: &NewToken) -> Result<u32> {
    if !new.account.is_empty() {
        check_name("/account", &new.account)?;
    }
    check_name("/name", &new.name)?;
    if new.scopes.as_ref().is_some_and(Vec::is_empty) {
        return Err(AppError::invalid(
            "/scopes",
            "A token must have at least one scope.",
        ));
    }
    let days = new.expires_in_days.unwrap_or(DEFAULT_TOKEN_DAYS);
    if days == 0 || days > MAX_TOKEN_DAYS {
        return Err(AppError::invalid(
            "/expires_in_days",
            format!("A token must expire after 1 to {MAX_TOKEN_DAYS} days."),
        ));
    }
    Ok(days)
}

async fn find_or_create_account(
    context: &AppContext,
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    actor: &CallerAccount,
    new: &NewToken,
) -> Result<account::Model> {
    let name = if new.account.is_empty() {
        &actor.name
    } else {
        &new.account
    };
    let conflict = |text: String| Err(AppError::conflict(text));
    if let Some(account) = accounts::account_by_name(write, name).await? {
        let roles = account.account_roles()?;
        if new.role.is_some_and(|role| !roles.contains(role)) {
            return conflict(format!(
                "The account {name} already exists with the roles {roles}."
            ));
        }
        if account.disabled_at.is_some() {
            return conflict(format!("The account {name} is disabled."));
        }
        if account.access_ended_at.is_some() {
            return conflict(format!(
                "The identity provider no longer admits the account {name}. The account must sign in again first."
            ));
        }
        return Ok(account);
    }
    check_account_name("/account", name)?;
    let role = new.role.ok_or_else(|| {
        AppError::invalid(
            "/role",
            format!("the account {name} does not exist; give a role to create it"),
        )
    })?;
    let roles: Roles = [role].into_iter().collect();
    let account = new_account_row(name, &roles, change_set.now(), context.entropy.as_ref());
    write.insert_account(account.clone()).await?;
    let data = json!({"account": name, "roles": roles.to_string()});
    change_set.add_event(EventKind::AccountCreated, account.id, &actor.name, data);
    Ok(account)
}

/// The scopes of the new token: at most those that the account's roles allow, and those of the calling token if that
/// creates one for its own account.
fn new_token_scopes(
    new: &NewToken,
    account: &account::Model,
    actor: Option<&CallerAccount>,
) -> Result<Scopes> {
    let role_scopes = account.account_roles()?.scopes();
    let max_scopes = actor.map_or_else(
        || role_scopes.clone(),
        |by| by.scopes.intersection(&role_scopes),
    );
    let Some(requested) = &new.scopes else {
        return Ok(max_scopes);
    };
    let requested: Scopes = requested.iter().copied().collect();
    if let Some(scope) = requested.first_not_in(&role_scopes) {
        return Err(AppError::conflict(format!(
            "The roles of the account {} do not allow the scope {scope}.",
            account.name
        )));
    }
    if let Some(scope) = requested.first_not_in(&max_scopes) {
        return Err(AppError::forbidden(format!(
            "A token without the scope {scope} cannot create a token with that scope."
        )));
    }
    Ok(requested)
}

/// Rejects a token beyond the account's limit. Expired tokens are deleted to make room.
async fn enforce_token_limit(
    write: &WriteTransaction,
    account: &account::Model,
    now: Timestamp,
) -> Result<()> {
    write.delete_account_tokens(account.id, Some(now.0)).await?;
    if accounts::live_account_token_count(write, account.id, now.0).await? < MAX_TOKENS_PER_ACCOUNT
    {
        return Ok(());
    }
    Err(AppError::limit_reached(format!(
        "The account {} has {MAX_TOKENS_PER_ACCOUNT} tokens, the maximum. Revoke some first.",
        account.name
    )))
}

/// Lists tokens, newest first, without their secrets: all of them for an admin, else the caller's own.
pub async fn token_list(
    context: &AppContext,
    caller: &Caller,
    page: &PageRequest,
) -> Result<TokenList> {
    let actor = caller.require_permission(Permission::Read)?;
    let account_filter = (!actor.has_permission(Permission::Administer)).then_some(actor.id);
    let list = ListPage::new(&context.page_token_signer, caller, "tokens", page)?;
    let mut rows = accounts::token_page(
        &context.store,
        account_filter,
        list.start_position()?,
        list.row_limit(),
    )
    .await?;
    let next_page_token = list.truncate_rows(&mut rows, |last| last.id);
    let ids: Vec<Uuid> = rows.iter().map(|row| row.account_id).collect();
    let owners = accounts::accounts_by_ids(&context.store, &ids).await?;
    let view = |row: token::Model| {
        let owner = owners.iter().find(|owner| owner.id == row.account_id)?;
        Some(token_view(context, row, owner))
    };
    Ok(TokenList {
        tokens: rows.into_iter().filter_map(view).collect(),
        next_page_token,
    })
}

pub async fn own_tokens(context: &AppContext, actor: &CallerAccount) -> Result<Vec<Token>> {
    let rows = accounts::token_page(
        &context.store,
        Some(actor.id),
        None,
        MAX_TOKENS_PER_ACCOUNT + 1,
    )
    .await?;
    let owner = accounts::accounts_by_ids(&context.store, &[actor.id])
        .await?
        .pop();
    let owner = owner.ok_or_else(|| AppError::no_account(actor.id))?;
    Ok(rows
        .into_iter()
        .map(|row| token_view(context, row, &owner))
        .collect())
}

pub struct RevocableToken {
    pub token: Token,
    pub sessions: Vec<Uuid>,
}

pub async fn load_revocable_token(
    context: &AppContext,
    caller: &Caller,
    id: Uuid,
) -> Result<RevocableToken> {
    let actor = caller.require_permission(Permission::Read)?;
    let (row, owner) = find_revocable_token(&context.store, actor, id).await?;
    let sessions =
        sessions::live_sessions_by_account(&context.store, owner.id, context.now().0).await?;
    let sessions = sessions.iter().filter(|one| one.token_id == Some(id));
    Ok(RevocableToken {
        sessions: sessions.map(|one| one.id).collect(),
        token: token_view(context, row, &owner),
    })
}

async fn find_revocable_token(
    db: &impl Executor,
    actor: &CallerAccount,
    id: Uuid,
) -> Result<(token::Model, account::Model)> {
    let row = accounts::token_by_id(db, id).await?;
    let row = row
        .filter(|row| row.account_id == actor.id || actor.has_permission(Permission::Administer));
    let row = row.ok_or_else(|| AppError::no_token(id))?;
    let missing_scope = || allowed_token_scopes(&row, &actor.roles).first_not_in(&actor.scopes);
    if !actor.has_permission(Permission::Administer)
        && let Some(scope) = missing_scope()
    {
        return Err(AppError::forbidden(format!(
            "A token without the scope {scope} cannot revoke a token with that scope."
        )));
    }
    let owner = accounts::accounts_by_ids(db, &[row.account_id])
        .await?
        .pop();
    let owner = owner.ok_or_else(|| AppError::no_token(id))?;
    Ok((row, owner))
}

/// Revokes a token. Rejects one of the caller's own that has more scopes than the calling token, and the last admin
/// access.
pub async fn token_revoke(context: &AppContext, caller: &Caller, id: Uuid) -> Result<()> {
    let actor = caller.require_permission(Permission::Read)?;
    let write = context.store.begin_write().await?;
    write.lock_accounts().await?;
    let (row, owner) = find_revocable_token(&write, actor, id).await?;
    write.delete_token(id).await?;
    if token_grants_admin(context, &owner, &row)? {
        require_remaining_admin_access(context, &write).await?;
    }
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    let data = json!({"account": owner.name, "name": row.name});
    change_set.add_event(EventKind::TokenRevoked, id, &actor.name, data);
    commit_changes(context, write, change_set).await
}
