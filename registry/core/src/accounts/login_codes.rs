//! Tokens for `a2a-registry login`: an account allows one in the browser, and the command that asked exchanges the
//! code for it. The code is worth nothing without the verifier, which only that command has (PKCE, RFC 7636).

use a2a_registry_api::{CreatedToken, LoginExchange, NewToken};
use a2a_registry_domain::role::Scope;
use data_encoding::BASE64URL_NOPAD;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::accounts::authentication::caller_by_session;
use crate::accounts::one_time_codes::{issue_code, open_code, use_code};
use crate::accounts::tokens::token_create;
use crate::context::AppContext;
use crate::error::{AppError, CredentialRefusal, Result};
use crate::visibility::caller::{Caller, Credential};

const CODE_PURPOSE: &str = "a2a-registry login code";
/// Name of the tokens.
const TOKEN_NAME: &str = "login";

/// A token that an account has allowed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AllowedLogin {
    /// SHA-256 of the verifier in base64url.
    pub challenge: String,
    pub scopes: Vec<Scope>,
    pub days: u32,
}

#[derive(Debug, Serialize, Deserialize)]
struct LoginCode {
    /// The session that allowed it: the code is void once it has ended.
    session: Uuid,
    login: AllowedLogin,
}

/// Issues a code for a token that the caller allows in its session.
pub fn issue_login_code(
    context: &AppContext,
    caller: &Caller,
    login: AllowedLogin,
) -> Result<String> {
    let actor = caller.require_account()?;
    let Credential::Session(session) = actor.credential else {
        return Err(AppError::unauthenticated(
            "A login can be allowed only in a browser that is signed in to this registry. Open the address that \
             `a2a-registry login` prints.",
        ));
    };
    issue_code(context, CODE_PURPOSE, LoginCode { session, login })
}

/// Creates the token that a code stands for.
pub async fn exchange_login_code(
    context: &AppContext,
    exchange: &LoginExchange,
) -> Result<CreatedToken> {
    let rejected = || {
        AppError::unauthenticated(
            "This code is unknown, was used, or is older than ten minutes. Run `a2a-registry login` again.",
        )
        .with_refusal(CredentialRefusal::Attempt)
    };
    let code = open_code::<LoginCode>(context, CODE_PURPOSE, &exchange.code);
    let code = code.ok_or_else(rejected)?;
    let challenge = digest(&SHA256, exchange.verifier.as_bytes());
    if BASE64URL_NOPAD.encode(challenge.as_ref()) != code.content.login.challenge {
        return Err(rejected());
    }
    let write = context.store.begin_write().await?;
    write.lock_accounts().await?;
    let is_first_use = use_code(&write, &code, context.now().0).await?;
    write.commit().await?;
    if !is_first_use {
        return Err(rejected());
    }
    let LoginCode { session, login } = code.content;
    let caller = caller_by_session(context, session).await?;
    let new = NewToken {
        name: TOKEN_NAME.to_owned(),
        scopes: Some(login.scopes),
        expires_in_days: Some(login.days),
        ..NewToken::default()
    };
    token_create(context, &caller.ok_or_else(rejected)?, &new).await
}
