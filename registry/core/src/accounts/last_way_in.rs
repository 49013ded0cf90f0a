//! The last way in: an act of a person never leaves a registry that no admin can enter.
//!
//! A way in is a token or a session of an enabled admin that may administer, or an identity provider that can sign one
//! in. Expiry and signing out are not prevented.

use a2a_registry_api::limits::MAX_TOKENS;
use a2a_registry_domain::role::{Permission, Role, Roles, Scopes};
use a2a_registry_store::entity::{account, session, token};
use a2a_registry_store::{Write, accounts, identities, sessions};

use crate::accounts::authentication::{scopes_of, suspended_at, within};
use crate::context::Context;
use crate::error::{AppError, Result};

pub(super) fn token_lets_in(
    context: &Context,
    account: &account::Model,
    token: &token::Model,
) -> Result<bool> {
    let is_valid = token.expires_at.is_none_or(|end| end > context.now().0);
    let roles = account.roles()?;
    Ok(is_valid && administers(context, account, &roles, &scopes_of(token, &roles)))
}

pub fn session_lets_in(
    context: &Context,
    account: &account::Model,
    session: &session::Model,
) -> Result<bool> {
    let issuer = session.issuer.as_deref();
    let is_trusted = issuer.is_none_or(|issuer| context.providers.by_issuer(issuer).is_some());
    let roles = account.roles()?;
    Ok(is_trusted && administers(context, account, &roles, &within(session.scopes(), &roles)))
}

fn administers(
    context: &Context,
    account: &account::Model,
    roles: &Roles,
    scopes: &Scopes,
) -> bool {
    account.may_be_used()
        && suspended_at(context, account).is_none()
        && roles.may(scopes, Permission::Administer)
}

/// Refuses a change after which no admin could get in. It is called after the change, in its transaction and under the
/// lock of accounts: of two processes that each end one of the last two ways in, the second finds none.
pub async fn refuse_without_way_in(context: &Context, write: &Write) -> Result<()> {
    if context.providers.can_make_admins() {
        return Ok(());
    }
    for admin in accounts::accounts_enabled_as(write, Role::Admin).await? {
        if lets_in(context, write, &admin).await? {
            return Ok(());
        }
    }
    Err(AppError::conflict(
        "This is the last way in for an admin: no other valid token or session may administer, and no identity provider \
         signs an admin in. Create another token with the scope admin first.",
    ))
}

async fn lets_in(context: &Context, write: &Write, admin: &account::Model) -> Result<bool> {
    // The bootstrap token does not count towards the limit of tokens.
    let limit = MAX_TOKENS + 1;
    for token in accounts::token_page(write, Some(admin.id), None, limit).await? {
        if token_lets_in(context, admin, &token)? {
            return Ok(true);
        }
    }
    for session in sessions::sessions_of(write, admin.id, context.now().0).await? {
        if session_lets_in(context, admin, &session)? {
            return Ok(true);
        }
    }
    let issuers = identities::issuers_of(write, admin.id).await?;
    let mut issuers = issuers.iter();
    Ok(issuers.any(|issuer| context.providers.admits(issuer)))
}
