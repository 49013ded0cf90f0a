//! Authenticates callers by the secret of a token or session, or by an access token. Nothing is cached between
//! requests, so a change of an account, a token or a session takes effect at the next request in every process.

use a2a_registry_domain::role::{Roles, Scopes};
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{account, account_group, session, token};
use a2a_registry_store::groups;
use a2a_registry_store::{accounts, feeds, sessions};
use data_encoding::BASE64URL_NOPAD;
use ring::digest::{SHA256, digest};
use uuid::Uuid;

use crate::accounts::identity::resolve_subject_account;
use crate::context::AppContext;
use crate::error::{AppError, CredentialRefusal, Result};
use crate::providers::TokenSubject;
use crate::visibility::audience::policy_group_name;
use crate::visibility::caller::{Caller, CallerAccount, Credential};

/// Authenticates a caller by the secret of a token, or by an access token of an identity provider.
pub async fn authenticate_token(context: &AppContext, secret: &str) -> Result<Caller> {
    if let Some(provider) = context.providers.by_claimed_issuer(secret) {
        let token_subject = provider.verify_access_token(secret).await;
        let token_subject = token_subject
            .map_err(|error| error.with_provider_refusal(CredentialRefusal::AccessToken))?;
        return authenticate_access_token(context, &token_subject).await;
    }
    // The caller gets the same error in each case.
    let token_error = |reason| {
        AppError::unauthenticated(
            "This token is unknown or has expired. Ask an admin for a new one.",
        )
        .with_refusal(reason)
    };
    let (token, account) = accounts::token_by_hash(&context.store, &sha256_hex(secret))
        .await?
        .ok_or_else(|| token_error(CredentialRefusal::UnknownToken))?;
    let now = context.now().0;
    if token.expires_at.is_some_and(|end| end <= now) {
        return Err(token_error(CredentialRefusal::EndedToken));
    }
    if !account.is_account_active() {
        return Err(token_error(CredentialRefusal::DisabledAccount));
    }
    require_unsuspended_account(context, &account)?;
    record_token_use(context, &token, now);
    let roles = account.account_roles()?;
    let credential = Credential::Token(token.id);
    build_caller(context, account, roles, token.token_scopes(), credential).await
}

/// Authenticates like [`authenticate_token`], from memory while nothing about callers has changed, for requests that
/// are answered from memory too. Access tokens of providers are authenticated anew.
pub async fn authenticate_cached_token(context: &AppContext, secret: &str) -> Result<Caller> {
    let key = format!("asker:{}", sha256_hex(secret));
    if let Some(known) = context.decision_callers.get(&key, context.now().0) {
        return Ok(known);
    }
    // Read before the rows, so that a change in between is detected later.
    let generation = context.decision_callers.generation();
    let caller = authenticate_token(context, secret).await?;
    let credential = caller.account.as_ref().map(|account| &account.credential);
    if let Some(Credential::Token(id)) = credential {
        let token = accounts::token_by_id(&context.store, *id).await?;
        let ends_at = token.and_then(|token| token.expires_at);
        context
            .decision_callers
            .insert(key, generation, caller.clone(), ends_at);
    }
    Ok(caller)
}

/// The time since which the tokens, sessions and feed of an account are suspended until its next sign-in, because its
/// identity provider has issued no valid claims about it for too long.
pub fn account_suspended_since(
    context: &AppContext,
    account: &account::Model,
) -> Option<Timestamp> {
    let valid_at = Timestamp(account.claims_valid_at?);
    let end = context.config().identity.absence_end(valid_at)?;
    (end <= context.now()).then_some(end)
}

/// Rejects the tokens of a suspended account, and what was made with them.
pub fn require_unsuspended_account(context: &AppContext, account: &account::Model) -> Result<()> {
    if account_suspended_since(context, account).is_none() {
        return Ok(());
    }
    Err(AppError::unauthenticated(format!(
        "This token is suspended: the identity provider of its account has not confirmed the account for {} days. \
         Sign in with the identity provider to make the token valid again.",
        context.config().identity.max_absence
    ))
    .with_refusal(CredentialRefusal::SuspendedToken))
}

/// Authenticates the account of an access token, with every scope that its roles allow.
async fn authenticate_access_token(
    context: &AppContext,
    token_subject: &TokenSubject,
) -> Result<Caller> {
    let account = resolve_subject_account(context, token_subject).await?;
    if account.disabled_at.is_some() {
        return Err(
            AppError::unauthenticated("The account of this access token is disabled.")
                .with_refusal(CredentialRefusal::DisabledAccount),
        );
    }
    let roles = account.account_roles()?;
    let credential = Credential::AccessToken(token_subject.issuer.clone());
    build_caller(context, account, roles, None, credential).await
}

async fn build_caller(
    context: &AppContext,
    account: account::Model,
    roles: Roles,
    scopes: Option<Scopes>,
    credential: Credential,
) -> Result<Caller> {
    let groups = groups::groups_by_account(&context.store, &[account.id]).await?;
    Ok(Caller {
        network: None,
        account: Some(CallerAccount {
            id: account.id,
            name: account.name,
            scopes: effective_scopes(scopes, &roles),
            roles,
            groups: sorted_group_ids(&groups),
            group_names: policy_group_names(&groups),
            credential,
        }),
    })
}

/// The scopes of a token that the roles of its account currently allow.
pub fn allowed_token_scopes(token: &token::Model, roles: &Roles) -> Scopes {
    effective_scopes(token.token_scopes(), roles)
}

/// The given scopes as far as the roles allow them; every allowed scope if none are given.
pub fn effective_scopes(scopes: Option<Scopes>, roles: &Roles) -> Scopes {
    match scopes {
        Some(scopes) => scopes.intersection(&roles.scopes()),
        None => roles.scopes(),
    }
}

fn sorted_group_ids(groups: &[(Uuid, account_group::Model)]) -> Vec<Uuid> {
    let mut ids: Vec<Uuid> = groups.iter().map(|(_, group)| group.id).collect();
    ids.sort_unstable();
    ids
}

/// Groups as policies name them: groups with the same name but different origins are different.
pub fn policy_group_names(groups: &[(Uuid, account_group::Model)]) -> Vec<String> {
    groups
        .iter()
        .map(|(_, group)| policy_group_name(group))
        .collect()
}

/// Authenticates the reader of a feed by its secret; `None` if the secret is unknown or the account is disabled or
/// suspended. The caller may only read the feed, with at most the rights of the token or session that created it.
pub async fn authenticate_feed_reader(
    context: &AppContext,
    secret: &str,
) -> Result<Option<Caller>> {
    let feed_and_account = feeds::feed_by_hash(&context.store, &sha256_hex(secret)).await?;
    let feed_and_account = feed_and_account.filter(|(_, account)| {
        account.is_account_active() && account_suspended_since(context, account).is_none()
    });
    let Some((Some(scopes), account)) =
        feed_and_account.map(|(feed, account)| (feed.feed_scopes(), account))
    else {
        return Ok(None);
    };
    let roles = account.account_roles()?;
    let caller = build_caller(context, account, roles, Some(scopes), Credential::Feed).await?;
    Ok(Some(caller))
}

/// Maximum delay of a session's stored time of last use, in microseconds.
const LAST_SEEN_INTERVAL: i64 = 5 * 60 * 1_000_000;

#[derive(Debug)]
pub struct SessionCaller {
    pub caller: Caller,
    /// The new secret, if the roles of the account have changed.
    pub new_secret: Option<String>,
}

/// Authenticates a caller by the secret of a session; `None` if it is unknown or expired, which is not an error
/// because a browser sends it to every page. With `may_rotate`, a session whose account's roles have changed gets a
/// new secret.
pub async fn authenticate_session(
    context: &AppContext,
    secret: &str,
    may_rotate: bool,
) -> Result<Option<SessionCaller>> {
    let now = context.now().0;
    let session_and_account =
        sessions::session_by_hash(&context.store, &sha256_hex(secret), now).await?;
    let Some((session, account)) = session_and_account else {
        return Ok(None);
    };
    if !is_session_valid(context, &session, &account) {
        return Ok(None);
    }
    let roles = account.account_roles()?;
    let new_secret = match may_rotate && session.roles != roles.to_string() {
        true => rotate_session_secret(context, &session, &roles).await?,
        false => None,
    };
    record_session_use(context, &session, now);
    let credential = Credential::Session(session.id);
    Ok(Some(SessionCaller {
        new_secret,
        caller: build_caller(
            context,
            account,
            roles,
            session.stored_session_scopes(),
            credential,
        )
        .await?,
    }))
}

/// The caller of a session that has not ended.
pub async fn caller_by_session(context: &AppContext, id: Uuid) -> Result<Option<Caller>> {
    let session = sessions::session_by_id(&context.store, id, context.now().0).await?;
    let Some(session) = session else {
        return Ok(None);
    };
    let account = accounts::accounts_by_ids(&context.store, &[session.account_id]).await?;
    let account = account
        .into_iter()
        .find(|account| is_session_valid(context, &session, account));
    let Some(account) = account else {
        return Ok(None);
    };
    let roles = account.account_roles()?;
    let scopes = session.stored_session_scopes();
    let credential = Credential::Session(session.id);
    build_caller(context, account, roles, scopes, credential)
        .await
        .map(Some)
}

/// Whether a session that has not expired may be used. Sessions of a provider that the operator has removed may not.
fn is_session_valid(
    context: &AppContext,
    session: &session::Model,
    account: &account::Model,
) -> bool {
    let issuer = session.issuer.as_deref();
    issuer.is_none_or(|issuer| context.providers.by_issuer(issuer).is_some())
        && account.is_account_active()
        && account_suspended_since(context, account).is_none()
}

/// Gives a session a new secret. Of two concurrent requests only one rotates it; the other gets no secret.
async fn rotate_session_secret(
    context: &AppContext,
    session: &session::Model,
    roles: &Roles,
) -> Result<Option<String>> {
    let secret = random_secret(context);
    let write = context.store.begin_write().await?;
    let roles = roles.to_string();
    let was_rotated = write
        .rotate_session(session.id, &session.hash, &sha256_hex(&secret), &roles)
        .await?;
    write.commit().await?;
    Ok(was_rotated.then_some(secret))
}

pub fn random_secret(context: &AppContext) -> String {
    let mut random = [0; 32];
    context.entropy.fill(&mut random);
    BASE64URL_NOPAD.encode(&random)
}

/// Records the use of a session, outside the request and at most once per interval.
fn record_session_use(context: &AppContext, session: &session::Model, now: i64) {
    if now.saturating_sub(session.last_seen_at) < LAST_SEEN_INTERVAL {
        return;
    }
    let (store, id) = (context.store.clone(), session.id);
    tokio::spawn(async move {
        let recording = async {
            let write = store.begin_write().await?;
            write.record_session_use(id, now).await?;
            write.commit().await
        };
        if let Err(error) = recording.await {
            tracing::debug!(%error, session = %id, "the last use of a session was not recorded");
        }
    });
}

/// Records the hour of a token's last use outside the request, which neither waits for it nor fails with it.
fn record_token_use(context: &AppContext, token: &token::Model, now: i64) {
    let Some(hour) = context
        .token_uses
        .hour_to_record(token.id, token.last_used_at, now)
    else {
        return;
    };
    let (store, id) = (context.store.clone(), token.id);
    tokio::spawn(async move {
        let recording = async {
            let write = store.begin_write().await?;
            write.record_token_use(id, hour).await?;
            write.commit().await
        };
        if let Err(error) = recording.await {
            tracing::debug!(%error, token = %id, "the last use of a token was not recorded");
        }
    });
}

/// The prefix of every token, by which secret scanners recognise a leaked one.
pub const TOKEN_PREFIX: &str = "a2ar_";

pub fn sha256_hex(secret: &str) -> String {
    digest(&SHA256, secret.as_bytes())
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
