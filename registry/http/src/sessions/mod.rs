//! Sessions: started by signing in to the pages, and ended by signing out, by revoking the session or the credential
//! that created it.

pub mod sign_in_attempts;
pub mod sign_in_links;

use std::net::IpAddr;

use a2a_registry_api::limits::MAX_SESSIONS_PER_ACCOUNT;
use a2a_registry_api::{Session, SessionList};
use a2a_registry_core::accounts::admin_access::{
    require_remaining_admin_access, session_grants_admin,
};
use a2a_registry_core::accounts::authentication::{effective_scopes, random_secret, sha256_hex};
use a2a_registry_core::commit::change_set::ChangeSet;
use a2a_registry_core::commit::publish::commit_changes;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::{AppError, Result};
use a2a_registry_core::paging::{ListPage, PageRequest};
use a2a_registry_core::visibility::caller::{Caller, CallerAccount, Credential};
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::identifiers::new_uuid;
use a2a_registry_domain::role::{Permission, Roles, Scopes};
use a2a_registry_domain::timestamp::{HOUR, Timestamp};
use a2a_registry_store::entity::{account, session};
use a2a_registry_store::{WriteTransaction, accounts, sessions};
use actix_web::HttpRequest;
use actix_web::http::header::USER_AGENT;
use serde_json::json;
use uuid::Uuid;

use crate::limits::client_address::client_address;
use crate::sessions::sign_in_attempts::{CompletedSignIn, record_used_sign_in};
use crate::sessions::sign_in_links::SignInLink;

/// Maximum duration of a session.
const MAX_SESSION_DURATION: i64 = 24 * HOUR;
/// Maximum number of characters of a browser description.
const MAX_BROWSER_CHARS: usize = 60;

/// Credential that creates a session; the session ends with the credential.
enum SessionCredential<'a> {
    Token(Uuid),
    Attempt(&'a CompletedSignIn),
    Link(&'a SignInLink),
}

#[derive(Debug, Clone, Copy, Default)]
pub struct SessionClient<'a> {
    pub user_agent: &'a str,
    pub address: Option<IpAddr>,
}

impl<'a> SessionClient<'a> {
    pub(super) fn from_request(request: &'a HttpRequest, context: &AppContext) -> Self {
        let user_agent = request.headers().get(USER_AGENT);
        Self {
            user_agent: user_agent
                .and_then(|name| name.to_str().ok())
                .unwrap_or_default(),
            address: client_address(request, &context.config().server.trusted_proxies),
        }
    }
}

/// Creates a session for a caller with a token and returns the secret. If the account has too many sessions, the least
/// recently used one is deleted. Access tokens cannot create sessions, because they are for services.
pub async fn begin_session_with_token(
    context: &AppContext,
    caller: &Caller,
    client: &SessionClient<'_>,
) -> Result<String> {
    let actor = caller.require_account()?;
    let Credential::Token(token) = actor.credential else {
        return Err(AppError::unauthenticated(
            "You cannot sign in with an access token. Sign in with its identity provider.",
        ));
    };
    create_session(context, actor.id, &SessionCredential::Token(token), client).await
}

/// Creates a session after sign-in with an identity provider, like [`begin_session_with_token`], and marks the attempt
/// as used.
pub async fn begin_session_with_provider(
    context: &AppContext,
    account: Uuid,
    attempt: &CompletedSignIn,
    client: &SessionClient<'_>,
) -> Result<String> {
    create_session(
        context,
        account,
        &SessionCredential::Attempt(attempt),
        client,
    )
    .await
}

/// Creates a session with the token of a sign-in link, like [`begin_session_with_token`], and uses the link up.
pub async fn begin_session_with_link(
    context: &AppContext,
    account: Uuid,
    link: &SignInLink,
    client: &SessionClient<'_>,
) -> Result<String> {
    create_session(context, account, &SessionCredential::Link(link), client).await
}

async fn create_session(
    context: &AppContext,
    account: Uuid,
    credential: &SessionCredential<'_>,
    client: &SessionClient<'_>,
) -> Result<String> {
    let ended_token = || AppError::unauthenticated("This token has expired or was revoked.");
    let now = context.now();
    let write = context.store.begin_write().await?;
    write.lock_accounts().await?;
    // Check both again under the lock: sessions of a token revoked or an account disabled meanwhile have already
    // ended.
    let (token, issuer) = match credential {
        SessionCredential::Token(id) => {
            let token = accounts::token_by_id(&write, *id).await?;
            (Some(token.ok_or_else(ended_token)?), None)
        }
        SessionCredential::Attempt(attempt) => {
            record_used_sign_in(&write, attempt, now.0).await?;
            (None, Some(attempt.issuer.as_str()))
        }
        SessionCredential::Link(link) => {
            link.record_use(&write, now.0).await?;
            (Some(link.load_account(context, &write).await?.1), None)
        }
    };
    let account = find_enabled_account(&write, account)
        .await?
        .ok_or_else(ended_token)?;
    delete_surplus_sessions(&write, account.id, now).await?;
    let secret = random_secret(context);
    let max_end = now.plus_micros(MAX_SESSION_DURATION).0;
    let token_end = token.as_ref().and_then(|token| token.expires_at);
    let row = session::Model {
        id: new_uuid(now, context.entropy.as_ref()),
        account_id: account.id,
        hash: sha256_hex(&secret),
        token_id: token.as_ref().map(|token| token.id),
        issuer: issuer.map(str::to_owned),
        roles: account.account_roles()?.to_string(),
        browser: describe_browser(client.user_agent),
        created_at: now.0,
        last_seen_at: now.0,
        expires_at: token_end.map_or(max_end, |end| end.min(max_end)),
        scopes: token.and_then(|token| token.scopes),
    };
    write.insert_session(row.clone()).await?;
    let mut change_set = ChangeSet::new(now, context.entropy.as_ref());
    let name = account.name.as_str();
    let data = json!({
        "account": name, "token": row.token_id, "issuer": issuer, "address": client.address,
    });
    change_set.add_event(EventKind::SessionBegun, row.id, name, data);
    commit_changes(context, write, change_set).await?;
    Ok(secret)
}

async fn find_enabled_account(
    write: &WriteTransaction,
    id: Uuid,
) -> Result<Option<account::Model>> {
    let account = accounts::accounts_by_ids(write, &[id]).await?.pop();
    Ok(account.filter(account::Model::is_account_active))
}

async fn delete_surplus_sessions(
    write: &WriteTransaction,
    account: Uuid,
    now: Timestamp,
) -> Result<()> {
    let active = sessions::live_sessions_by_account(write, account, now.0).await?;
    let surplus = (active.len() + 1).saturating_sub(MAX_SESSIONS_PER_ACCOUNT);
    for session in active.into_iter().take(surplus) {
        write.delete_session(session.id).await?;
    }
    Ok(())
}

fn describe_browser(user_agent: &str) -> String {
    let find_name = |names: &[(&str, &'static str)]| {
        let mut names = names.iter();
        names
            .find(|(mark, _)| user_agent.contains(mark))
            .map(|(_, name)| *name)
    };
    let program = find_name(&[
        ("Edg/", "Edge"),
        ("OPR/", "Opera"),
        ("Firefox/", "Firefox"),
        ("Chrome/", "Chrome"),
        ("Safari/", "Safari"),
    ]);
    let system = find_name(&[
        ("Android", "Android"),
        ("iPhone", "iPhone"),
        ("iPad", "iPad"),
        ("Windows", "Windows"),
        ("Mac OS X", "macOS"),
        ("Linux", "Linux"),
    ]);
    match (program, system) {
        (Some(program), Some(system)) => format!("{program} on {system}"),
        (Some(program), None) => program.to_owned(),
        _ => user_agent
            .chars()
            .filter(char::is_ascii_graphic)
            .take(MAX_BROWSER_CHARS)
            .collect(),
    }
}

pub async fn end_session(context: &AppContext, caller: &Caller) -> Result<()> {
    let Some(CallerAccount {
        credential: Credential::Session(id),
        ..
    }) = caller.account
    else {
        return Ok(());
    };
    let write = context.store.begin_write().await?;
    write.delete_session(id).await?;
    write.commit().await?;
    Ok(())
}

/// Lists sessions, newest first: all for an admin, otherwise the caller's own.
pub async fn session_list(
    context: &AppContext,
    caller: &Caller,
    page: &PageRequest,
) -> Result<SessionList> {
    let actor = caller.require_permission(Permission::Read)?;
    let account_filter = (!actor.has_permission(Permission::Administer)).then_some(actor.id);
    let list = ListPage::new(&context.page_token_signer, caller, "sessions", page)?;
    let (before, limit) = (list.start_position()?, list.row_limit());
    let now = context.now().0;
    let mut rows =
        sessions::session_page(&context.store, account_filter, before, limit, now).await?;
    let next_page_token = list.truncate_rows(&mut rows, |last| last.id);
    let ids: Vec<Uuid> = rows.iter().map(|row| row.account_id).collect();
    let owners = accounts::accounts_by_ids(&context.store, &ids).await?;
    let view = |row: session::Model| {
        let owner = owners.iter().find(|owner| owner.id == row.account_id)?;
        Some(session_view(row, &owner.name))
    };
    Ok(SessionList {
        sessions: rows.into_iter().filter_map(view).collect(),
        next_page_token,
    })
}

/// Returns a session: any for an admin, otherwise one of the caller's own. Sessions of other accounts are not found,
/// like sessions that do not exist.
pub async fn session_show(context: &AppContext, caller: &Caller, id: Uuid) -> Result<Session> {
    let actor = caller.require_permission(Permission::Read)?;
    let row = sessions::session_by_id(&context.store, id, context.now().0).await?;
    let row = row
        .filter(|row| row.account_id == actor.id || actor.has_permission(Permission::Administer));
    let row = row.ok_or_else(|| AppError::no_session(id))?;
    let owner = accounts::accounts_by_ids(&context.store, &[row.account_id]).await?;
    let owner = owner.first().ok_or_else(|| AppError::no_session(id))?;
    Ok(session_view(row, &owner.name))
}

pub async fn own_sessions(context: &AppContext, actor: &CallerAccount) -> Result<Vec<Session>> {
    let mut rows =
        sessions::live_sessions_by_account(&context.store, actor.id, context.now().0).await?;
    rows.sort_by_key(|row| std::cmp::Reverse(row.id));
    let rows = rows.into_iter();
    Ok(rows.map(|row| session_view(row, &actor.name)).collect())
}

/// Revokes a session. Rejects a session of the caller with more scopes than the caller has now, and the last admin
/// access.
pub async fn session_revoke(context: &AppContext, caller: &Caller, id: Uuid) -> Result<()> {
    let actor = caller.require_permission(Permission::Read)?;
    let now = context.now();
    let write = context.store.begin_write().await?;
    write.lock_accounts().await?;
    let row = sessions::session_by_id(&write, id, now.0).await?;
    let row = row
        .filter(|row| row.account_id == actor.id || actor.has_permission(Permission::Administer));
    let row = row.ok_or_else(|| AppError::no_session(id))?;
    if !actor.has_permission(Permission::Administer)
        && let Some(scope) = session_scopes(&row, &actor.roles).first_not_in(&actor.scopes)
    {
        return Err(AppError::forbidden(format!(
            "The session has the scope {scope}, which your token lacks, so it cannot revoke the session."
        )));
    }
    let owner = accounts::accounts_by_ids(&write, &[row.account_id]).await?;
    let owner = owner.first().ok_or_else(|| AppError::no_session(id))?;
    write.delete_session(id).await?;
    if session_grants_admin(context, owner, &row)? {
        require_remaining_admin_access(context, &write).await?;
    }
    let mut change_set = ChangeSet::new(now, context.entropy.as_ref());
    let data = json!({"account": owner.name});
    change_set.add_event(EventKind::SessionRevoked, id, &actor.name, data);
    commit_changes(context, write, change_set).await
}

fn session_scopes(row: &session::Model, roles: &Roles) -> Scopes {
    effective_scopes(row.stored_session_scopes(), roles)
}

fn session_view(row: session::Model, account: &str) -> Session {
    Session {
        id: row.id,
        account: account.to_owned(),
        token: row.token_id,
        issuer: row.issuer,
        browser: row.browser,
        created_at: Timestamp(row.created_at),
        last_seen_at: Timestamp(row.last_seen_at),
        expires_at: Timestamp(row.expires_at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_is_told_in_a_few_words() {
        let chrome = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0 Safari/537.36";
        assert_eq!(describe_browser(chrome), "Chrome on Linux");
        assert_eq!(describe_browser("curl/8.14"), "curl/8.14");
        assert_eq!(describe_browser("\u{202e}<b>\u{7}"), "<b>");
        assert_eq!(describe_browser(&"x".repeat(9000)).len(), MAX_BROWSER_CHARS);
    }
}
