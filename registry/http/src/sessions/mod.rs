//! Sessions: begun by signing in to the pages, and ended by signing out, by revoking them, or with the credential that
//! they were made by.

pub mod attempts;

use std::net::IpAddr;

use a2a_registry_api::limits::MAX_SESSIONS;
use a2a_registry_api::{Session, SessionList};
use a2a_registry_core::accounts::authentication::{hash, session_secret, within};
use a2a_registry_core::accounts::last_way_in::{refuse_without_way_in, session_lets_in};
use a2a_registry_core::commit::ledger::Ledger;
use a2a_registry_core::commit::publish::commit_ledger;
use a2a_registry_core::context::Context;
use a2a_registry_core::error::{AppError, Result};
use a2a_registry_core::paging::{ListPage, PageRequest};
use a2a_registry_core::visibility::caller::{Account, Caller, Credential};
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::ids::new_id;
use a2a_registry_domain::role::{Permission, Roles, Scopes};
use a2a_registry_domain::timestamp::{HOUR, Timestamp};
use a2a_registry_store::entity::{account, session};
use a2a_registry_store::{Write, accounts, sessions};
use actix_web::HttpRequest;
use actix_web::http::header::USER_AGENT;
use serde_json::json;
use uuid::Uuid;

use crate::limits::client_address::client_address;
use crate::sessions::attempts::{AnsweredAttempt, use_attempt};

/// The maximum duration of a session.
const LONGEST: i64 = 24 * HOUR;
/// Characters of the description of a browser.
const BROWSER: usize = 60;

/// What a session is begun with, and without which it ends.
enum Proof<'a> {
    Token(Uuid),
    Attempt(&'a AnsweredAttempt),
}

#[derive(Debug, Clone, Copy, Default)]
pub struct SessionClient<'a> {
    pub user_agent: &'a str,
    pub address: Option<IpAddr>,
}

impl<'a> SessionClient<'a> {
    pub(super) fn of(request: &'a HttpRequest, context: &Context) -> Self {
        let name = request.headers().get(USER_AGENT);
        Self {
            user_agent: name.and_then(|name| name.to_str().ok()).unwrap_or_default(),
            address: client_address(request, &context.config().server.trusted_proxies),
        }
    }
}

/// Begins a session of a caller with a token; returns its secret. The session unused for longest makes way if the
/// account has too many. An access token begins none: it is for services.
pub async fn session_begin(
    context: &Context,
    caller: &Caller,
    client: &SessionClient<'_>,
) -> Result<String> {
    let by = caller.account()?;
    let Credential::Token(token) = by.credential else {
        return Err(AppError::unauthenticated(
            "Nobody signs in with an access token: sign in with its identity provider.",
        ));
    };
    begin(context, by.id, &Proof::Token(token), client).await
}

/// Begins a session for someone who has signed in with an identity provider, as [`session_begin`] does, and uses up the
/// attempt.
pub async fn session_begin_with_provider(
    context: &Context,
    account: Uuid,
    attempt: &AnsweredAttempt,
    client: &SessionClient<'_>,
) -> Result<String> {
    begin(context, account, &Proof::Attempt(attempt), client).await
}

async fn begin(
    context: &Context,
    account: Uuid,
    proof: &Proof<'_>,
    client: &SessionClient<'_>,
) -> Result<String> {
    let refused = || AppError::unauthenticated("This token has ended.");
    let now = context.now();
    let write = context.store.write().await?;
    write.accounts_lock().await?;
    // Both are checked again under the lock: a revoked token or a disabled account has ended all its sessions by then.
    let (token, issuer) = match proof {
        Proof::Token(id) => {
            let token = accounts::token_by_id(&write, *id).await?;
            (Some(token.ok_or_else(refused)?), None)
        }
        Proof::Attempt(attempt) => {
            use_attempt(&write, attempt, now.0).await?;
            (None, Some(attempt.issuer.as_str()))
        }
    };
    let account = account_enabled(&write, account)
        .await?
        .ok_or_else(refused)?;
    make_way(&write, account.id, now).await?;
    let secret = session_secret(context);
    let longest = now.plus(LONGEST).0;
    let token_end = token.as_ref().and_then(|token| token.expires_at);
    let row = session::Model {
        id: new_id(now, context.entropy.as_ref()),
        account_id: account.id,
        hash: hash(&secret),
        token_id: token.as_ref().map(|token| token.id),
        issuer: issuer.map(str::to_owned),
        roles: account.roles()?.to_string(),
        browser: browser(client.user_agent),
        created_at: now.0,
        last_seen_at: now.0,
        expires_at: token_end.map_or(longest, |end| end.min(longest)),
        scopes: token.and_then(|token| token.scopes),
    };
    write.session_insert(row.clone()).await?;
    let mut ledger = Ledger::new(now, context.entropy.as_ref());
    let name = account.name.as_str();
    let data = json!({
        "account": name, "token": row.token_id, "issuer": issuer, "address": client.address,
    });
    ledger.event(EventKind::SessionBegun, row.id, name, data);
    commit_ledger(context, write, ledger).await?;
    Ok(secret)
}

async fn account_enabled(write: &Write, id: Uuid) -> Result<Option<account::Model>> {
    let found = accounts::accounts_by_ids(write, &[id]).await?.pop();
    Ok(found.filter(account::Model::may_be_used))
}

async fn make_way(write: &Write, account: Uuid, now: Timestamp) -> Result<()> {
    let live = sessions::sessions_of(write, account, now.0).await?;
    let surplus = (live.len() + 1).saturating_sub(MAX_SESSIONS);
    for session in live.into_iter().take(surplus) {
        write.session_delete(session.id).await?;
    }
    Ok(())
}

fn browser(user_agent: &str) -> String {
    let named = |names: &[(&str, &'static str)]| {
        let mut names = names.iter();
        names
            .find(|(mark, _)| user_agent.contains(mark))
            .map(|(_, name)| *name)
    };
    let program = named(&[
        ("Edg/", "Edge"),
        ("OPR/", "Opera"),
        ("Firefox/", "Firefox"),
        ("Chrome/", "Chrome"),
        ("Safari/", "Safari"),
    ]);
    let system = named(&[
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
            .take(BROWSER)
            .collect(),
    }
}

pub async fn session_end(context: &Context, caller: &Caller) -> Result<()> {
    let Some(Account {
        credential: Credential::Session(id),
        ..
    }) = caller.account
    else {
        return Ok(());
    };
    let write = context.store.write().await?;
    write.session_delete(id).await?;
    write.commit().await?;
    Ok(())
}

/// Sessions, newest first: all for an admin, else the caller's own.
pub async fn session_list(
    context: &Context,
    caller: &Caller,
    page: &PageRequest,
) -> Result<SessionList> {
    let by = caller.demand(Permission::Read)?;
    let of = (!by.may(Permission::Administer)).then_some(by.id);
    let list = ListPage::new(&context.signer, caller, "sessions", page)?;
    let (before, limit) = (list.start()?, list.limit());
    let now = context.now().0;
    let mut rows = sessions::session_page(&context.store, of, before, limit, now).await?;
    let next_page_token = list.cut(&mut rows, |last| last.id);
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

/// One session: any for an admin, else the caller's own. Another account's session is not found, like one that does not
/// exist.
pub async fn session_show(context: &Context, caller: &Caller, id: Uuid) -> Result<Session> {
    let by = caller.demand(Permission::Read)?;
    let row = sessions::session_by_id(&context.store, id, context.now().0).await?;
    let row = row.filter(|row| row.account_id == by.id || by.may(Permission::Administer));
    let row = row.ok_or_else(|| AppError::no_session(id))?;
    let owner = accounts::accounts_by_ids(&context.store, &[row.account_id]).await?;
    let owner = owner.first().ok_or_else(|| AppError::no_session(id))?;
    Ok(session_view(row, &owner.name))
}

pub async fn sessions_own(context: &Context, by: &Account) -> Result<Vec<Session>> {
    let mut rows = sessions::sessions_of(&context.store, by.id, context.now().0).await?;
    rows.sort_by_key(|row| std::cmp::Reverse(row.id));
    let rows = rows.into_iter();
    Ok(rows.map(|row| session_view(row, &by.name)).collect())
}

/// Refuses one of the caller's own that may do more than what revokes it, and the last way in of an admin.
pub async fn session_revoke(context: &Context, caller: &Caller, id: Uuid) -> Result<()> {
    let by = caller.demand(Permission::Read)?;
    let now = context.now();
    let write = context.store.write().await?;
    write.accounts_lock().await?;
    let row = sessions::session_by_id(&write, id, now.0).await?;
    let row = row.filter(|row| row.account_id == by.id || by.may(Permission::Administer));
    let row = row.ok_or_else(|| AppError::no_session(id))?;
    if !by.may(Permission::Administer)
        && let Some(scope) = own_scopes(&row, &by.roles).beyond(&by.scopes)
    {
        return Err(AppError::forbidden(format!(
            "Without the scope {scope} no session with it can be revoked."
        )));
    }
    let owner = accounts::accounts_by_ids(&write, &[row.account_id]).await?;
    let owner = owner.first().ok_or_else(|| AppError::no_session(id))?;
    write.session_delete(id).await?;
    if session_lets_in(context, owner, &row)? {
        refuse_without_way_in(context, &write).await?;
    }
    let mut ledger = Ledger::new(now, context.entropy.as_ref());
    let data = json!({"account": owner.name});
    ledger.event(EventKind::SessionRevoked, id, &by.name, data);
    commit_ledger(context, write, ledger).await
}

fn own_scopes(row: &session::Model, roles: &Roles) -> Scopes {
    within(row.scopes(), roles)
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
        assert_eq!(browser(chrome), "Chrome on Linux");
        assert_eq!(browser("curl/8.14"), "curl/8.14");
        assert_eq!(browser("\u{202e}<b>\u{7}"), "<b>");
        assert_eq!(browser(&"x".repeat(9000)).len(), BROWSER);
    }
}
