//! Access tokens. A secret is shown once and stored as a hash. An account makes and revokes its own, an admin
//! everyone's.

use a2a_registry_api::limits::{DEFAULT_TOKEN_DAYS, MAX_TOKEN_DAYS, MAX_TOKENS};
use a2a_registry_api::{CreatedToken, NewToken, Token, TokenList};
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::role::{Permission, Roles, Scopes};
use a2a_registry_domain::timestamp::{DAY, Timestamp};
use a2a_registry_store::entity::{account, token};
use a2a_registry_store::{Handle, Write, accounts, sessions};
use serde_json::json;
use uuid::Uuid;

use crate::accounts::authentication::scopes_of;
use crate::accounts::last_way_in::{refuse_without_way_in, token_lets_in};
use crate::accounts::records::{
    account_row, check_account_name, new_secret, token_row, token_view,
};
use crate::commit::ledger::Ledger;
use crate::commit::publish::commit_ledger;
use crate::context::Context;
use crate::error::{AppError, Result};
use crate::names::check_name;
use crate::paging::{ListPage, PageRequest};
use crate::visibility::caller::{Account, Caller};

/// Makes a token. An admin may name an account that does not exist yet, which is created too.
pub async fn token_create(
    context: &Context,
    caller: &Caller,
    new: &NewToken,
) -> Result<CreatedToken> {
    let by = caller.demand(Permission::Read)?;
    let days = check(new)?;
    let is_own = new.account.is_empty() || new.account == by.name;
    if !is_own && !by.may(Permission::Administer) {
        return Err(AppError::forbidden(
            "Only an admin may make tokens of other accounts.",
        ));
    }
    let now = context.now();
    let write = context.store.write().await?;
    write.accounts_lock().await?;
    let mut ledger = Ledger::new(now, context.entropy.as_ref());
    let account = account_for(context, &write, &mut ledger, by, new).await?;
    let scopes = scopes_for(new, &account, is_own.then_some(by))?;
    admit(&write, &account, now).await?;
    let secret = new_secret(context.entropy.as_ref());
    let entropy = context.entropy.as_ref();
    let row = token::Model {
        expires_at: Some(now.plus(i64::from(days) * DAY).0),
        scopes: Some(scopes.to_string()),
        ..token_row(&secret, account.id, &new.name, false, now, entropy)
    };
    write.token_insert(row.clone()).await?;
    let data = json!({"account": account.name, "name": row.name, "scopes": row.scopes});
    ledger.event(EventKind::TokenCreated, row.id, &by.name, data);
    commit_ledger(context, write, ledger).await?;
    Ok(CreatedToken {
        token: token_view(context, row, &account),
        secret,
    })
}

/// Refuses an invalid request; returns the days that the token will last.
fn check(new: &NewToken) -> Result<u32> {
    if !new.account.is_empty() {
        check_name("/account", &new.account)?;
    }
    check_name("/name", &new.name)?;
    if new.scopes.as_ref().is_some_and(Vec::is_empty) {
        return Err(AppError::invalid(
            "/scopes",
            "a token has one scope at least",
        ));
    }
    let days = new.expires_in_days.unwrap_or(DEFAULT_TOKEN_DAYS);
    if days == 0 || days > MAX_TOKEN_DAYS {
        return Err(AppError::invalid(
            "/expires_in_days",
            format!("A token ends after 1 to {MAX_TOKEN_DAYS} days."),
        ));
    }
    Ok(days)
}

async fn account_for(
    context: &Context,
    write: &Write,
    ledger: &mut Ledger<'_>,
    by: &Account,
    new: &NewToken,
) -> Result<account::Model> {
    let name = if new.account.is_empty() {
        &by.name
    } else {
        &new.account
    };
    let conflict = |text: String| Err(AppError::conflict(text));
    if let Some(account) = accounts::account_by_name(write, name).await? {
        let roles = account.roles()?;
        if new.role.is_some_and(|role| !roles.has(role)) {
            return conflict(format!("The account {name} has the roles {roles}."));
        }
        if account.disabled_at.is_some() {
            return conflict(format!("The account {name} is disabled."));
        }
        if account.access_ended_at.is_some() {
            return conflict(format!(
                "The identity provider of the account {name} does not let it in any more: it needs to sign in first."
            ));
        }
        return Ok(account);
    }
    check_account_name("/account", name)?;
    let role = new.role.ok_or_else(|| {
        AppError::invalid(
            "/role",
            format!("there is no account {name}; name its role"),
        )
    })?;
    let roles: Roles = [role].into_iter().collect();
    let account = account_row(name, &roles, ledger.now(), context.entropy.as_ref());
    write.account_insert(account.clone()).await?;
    let data = json!({"account": name, "roles": roles.to_string()});
    ledger.event(EventKind::AccountCreated, account.id, &by.name, data);
    Ok(account)
}

/// The scopes of the new token: at most those of the account's roles, and of the token that makes one for its own
/// account.
fn scopes_for(new: &NewToken, account: &account::Model, own: Option<&Account>) -> Result<Scopes> {
    let of_roles = account.roles()?.scopes();
    let most = own.map_or_else(|| of_roles.clone(), |by| by.scopes.within(&of_roles));
    let Some(wanted) = &new.scopes else {
        return Ok(most);
    };
    let wanted: Scopes = wanted.iter().copied().collect();
    if let Some(scope) = wanted.beyond(&of_roles) {
        return Err(AppError::conflict(format!(
            "The roles of the account {} do not allow the scope {scope}.",
            account.name
        )));
    }
    if let Some(scope) = wanted.beyond(&most) {
        return Err(AppError::forbidden(format!(
            "A token without the scope {scope} cannot make one with it."
        )));
    }
    Ok(wanted)
}

/// Refuses a token beyond the account's limit. Expired ones make way.
async fn admit(write: &Write, account: &account::Model, now: Timestamp) -> Result<()> {
    write.tokens_end(account.id, Some(now.0)).await?;
    if accounts::token_count(write, account.id, now.0).await? < MAX_TOKENS {
        return Ok(());
    }
    Err(AppError::limit_reached(format!(
        "The account {} has {MAX_TOKENS} tokens; revoke some first.",
        account.name
    )))
}

/// Tokens, newest first, without their secrets: all for an admin, else the caller's own.
pub async fn token_list(
    context: &Context,
    caller: &Caller,
    page: &PageRequest,
) -> Result<TokenList> {
    let by = caller.demand(Permission::Read)?;
    let of = (!by.may(Permission::Administer)).then_some(by.id);
    let list = ListPage::new(&context.signer, caller, "tokens", page)?;
    let mut rows = accounts::token_page(&context.store, of, list.start()?, list.limit()).await?;
    let next_page_token = list.cut(&mut rows, |last| last.id);
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

pub async fn tokens_own(context: &Context, by: &Account) -> Result<Vec<Token>> {
    let rows = accounts::token_page(&context.store, Some(by.id), None, MAX_TOKENS + 1).await?;
    let owner = accounts::accounts_by_ids(&context.store, &[by.id])
        .await?
        .pop();
    let owner = owner.ok_or_else(|| AppError::no_account(by.id))?;
    Ok(rows
        .into_iter()
        .map(|row| token_view(context, row, &owner))
        .collect())
}

pub struct RevocableToken {
    pub token: Token,
    pub sessions: Vec<Uuid>,
}

pub async fn revocable_token(
    context: &Context,
    caller: &Caller,
    id: Uuid,
) -> Result<RevocableToken> {
    let by = caller.demand(Permission::Read)?;
    let (row, owner) = revocable_row(&context.store, by, id).await?;
    let sessions = sessions::sessions_of(&context.store, owner.id, context.now().0).await?;
    let sessions = sessions.iter().filter(|one| one.token_id == Some(id));
    Ok(RevocableToken {
        sessions: sessions.map(|one| one.id).collect(),
        token: token_view(context, row, &owner),
    })
}

async fn revocable_row(
    on: &impl Handle,
    by: &Account,
    id: Uuid,
) -> Result<(token::Model, account::Model)> {
    let row = accounts::token_by_id(on, id).await?;
    let row = row.filter(|row| row.account_id == by.id || by.may(Permission::Administer));
    let row = row.ok_or_else(|| AppError::no_token(id))?;
    let is_wider = || scopes_of(&row, &by.roles).beyond(&by.scopes);
    if !by.may(Permission::Administer)
        && let Some(scope) = is_wider()
    {
        return Err(AppError::forbidden(format!(
            "A token without the scope {scope} cannot revoke one with it."
        )));
    }
    let owner = accounts::accounts_by_ids(on, &[row.account_id])
        .await?
        .pop();
    let owner = owner.ok_or_else(|| AppError::no_token(id))?;
    Ok((row, owner))
}

/// Refuses one of the caller's own that may do more than the token of the request, and the last way in of an admin.
pub async fn token_revoke(context: &Context, caller: &Caller, id: Uuid) -> Result<()> {
    let by = caller.demand(Permission::Read)?;
    let write = context.store.write().await?;
    write.accounts_lock().await?;
    let (row, owner) = revocable_row(&write, by, id).await?;
    write.token_delete(id).await?;
    if token_lets_in(context, &owner, &row)? {
        refuse_without_way_in(context, &write).await?;
    }
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    let data = json!({"account": owner.name, "name": row.name});
    ledger.event(EventKind::TokenRevoked, id, &by.name, data);
    commit_ledger(context, write, ledger).await
}
