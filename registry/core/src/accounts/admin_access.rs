//! Admin access: no action may leave a registry that no admin can enter.
//!
//! Admin access is a token or session of an enabled admin that has admin rights, or an identity provider that can sign
//! an admin in. Expiry and signing out are not prevented.

use a2a_registry_api::limits::MAX_TOKENS_PER_ACCOUNT;
use a2a_registry_domain::role::{Permission, Role, Roles, Scopes};
use a2a_registry_store::entity::{account, session, token};
use a2a_registry_store::{WriteTransaction, accounts, identities, sessions};

use crate::accounts::authentication::{
    account_suspended_since, allowed_token_scopes, effective_scopes,
};
use crate::context::AppContext;
use crate::error::{AppError, Result};

pub(super) fn token_grants_admin(
    context: &AppContext,
    account: &account::Model,
    token: &token::Model,
) -> Result<bool> {
    let is_valid = token.expires_at.is_none_or(|end| end > context.now().0);
    let roles = account.account_roles()?;
    Ok(is_valid
        && can_administer(
            context,
            account,
            &roles,
            &allowed_token_scopes(token, &roles),
        ))
}

pub fn session_grants_admin(
    context: &AppContext,
    account: &account::Model,
    session: &session::Model,
) -> Result<bool> {
    let issuer = session.issuer.as_deref();
    let is_trusted = issuer.is_none_or(|issuer| context.providers.by_issuer(issuer).is_some());
    let roles = account.account_roles()?;
    Ok(is_trusted
        && can_administer(
            context,
            account,
            &roles,
            &effective_scopes(session.stored_session_scopes(), &roles),
        ))
}

fn can_administer(
    context: &AppContext,
    account: &account::Model,
    roles: &Roles,
    scopes: &Scopes,
) -> bool {
    account.is_account_active()
        && account_suspended_since(context, account).is_none()
        && roles.has_permission(scopes, Permission::Administer)
}

/// Rejects a change after which no admin could get in. The caller makes the change first and calls this in the same
/// transaction, under the lock of accounts: if two processes each end one of the last two ways in, the second fails.
pub async fn require_remaining_admin_access(
    context: &AppContext,
    write: &WriteTransaction,
) -> Result<()> {
    if context.providers.can_make_admins() {
        return Ok(());
    }
    for admin in accounts::enabled_accounts_by_role(write, Role::Admin).await? {
        if admin_has_usable_login(context, write, &admin).await? {
            return Ok(());
        }
    }
    Err(AppError::conflict(
        "This is the last admin access: no other valid token or session has admin rights, and no identity provider \
         signs an admin in. Create another token with the scope admin first.",
    ))
}

async fn admin_has_usable_login(
    context: &AppContext,
    write: &WriteTransaction,
    admin: &account::Model,
) -> Result<bool> {
    // The bootstrap token does not count towards the limit of tokens.
    let limit = MAX_TOKENS_PER_ACCOUNT + 1;
    for token in accounts::token_page(write, Some(admin.id), None, limit).await? {
        if token_grants_admin(context, admin, &token)? {
            return Ok(true);
        }
    }
    for session in sessions::live_sessions_by_account(write, admin.id, context.now().0).await? {
        if session_grants_admin(context, admin, &session)? {
            return Ok(true);
        }
    }
    let issuers = identities::issuers_by_account(write, admin.id).await?;
    let mut issuers = issuers.iter();
    Ok(issuers.any(|issuer| context.providers.issuer_can_admit_accounts(issuer)))
}
