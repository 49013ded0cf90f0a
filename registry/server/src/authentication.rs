//! Authentication of callers by the secret of a token. Nothing of it is kept between requests, so that a change of an
//! account or a token acts at the next request, in every process.

use a2a_registry_domain::role::{Roles, Scopes};
use a2a_registry_policy::Principal;
use a2a_registry_store::accounts;
use a2a_registry_store::entity::{account_group, token};
use a2a_registry_store::groups::{self, ADMIN_ORIGIN};
use ring::digest::{SHA256, digest};
use uuid::Uuid;

use crate::caller::{Account, Caller};
use crate::context::Context;
use crate::error::{AppError, ErrorKind};

/// Authenticates a caller by the secret of a token.
///
/// # Errors
/// `Unauthenticated` for a token that is unknown, revoked or expired, or whose account is disabled.
pub async fn authenticate(context: &Context, secret: &str) -> Result<Caller, AppError> {
    let refused = || {
        AppError::new(
            ErrorKind::Unauthenticated,
            "This token is unknown or has ended; ask an admin for another one.",
        )
    };
    let (token, account) = accounts::token_by_hash(&context.store, &hash(secret))
        .await?
        .ok_or_else(refused)?;
    let now = context.now().0;
    if token.expires_at.is_some_and(|end| end <= now) || account.disabled_at.is_some() {
        return Err(refused());
    }
    let roles = account.roles()?;
    let groups = groups::groups_of(&context.store, &[account.id]).await?;
    note_use(context, &token, now);
    Ok(Caller {
        network: None,
        account: Some(Account {
            id: account.id,
            name: account.name,
            scopes: scopes_of(&token, &roles),
            roles,
            groups: in_order(&groups),
            group_names: named_in_policies(&groups),
            token: token.id,
        }),
    })
}

/// The scopes of a token that its account's roles allow now.
pub(crate) fn scopes_of(token: &token::Model, roles: &Roles) -> Scopes {
    match token.scopes() {
        Some(scopes) => scopes.within(&roles.scopes()),
        None => roles.scopes(),
    }
}

fn in_order(groups: &[(Uuid, account_group::Model)]) -> Vec<Uuid> {
    let mut ids: Vec<Uuid> = groups.iter().map(|(_, group)| group.id).collect();
    ids.sort_unstable();
    ids
}

/// The groups as policies name them: two groups of one name, of two origins, are two.
fn named_in_policies(groups: &[(Uuid, account_group::Model)]) -> Vec<String> {
    let named = groups.iter().map(|(_, group)| {
        let issuer = (group.origin != ADMIN_ORIGIN).then_some(group.origin.as_str());
        Principal::group(issuer, &group.name)
    });
    named.collect()
}

/// Notes the hour of a token's use, beside the request and not in it: the request neither waits nor fails for it.
fn note_use(context: &Context, token: &token::Model, now: i64) {
    let Some(hour) = context
        .token_uses
        .to_note(token.id, token.last_used_at, now)
    else {
        return;
    };
    let (store, id) = (context.store.clone(), token.id);
    tokio::spawn(async move {
        let noted = async {
            let write = store.write().await?;
            write.token_used(id, hour).await?;
            write.commit().await
        };
        if let Err(error) = noted.await {
            tracing::debug!(%error, token = %id, "the use of a token is not noted");
        }
    });
}

/// The prefix of every token, by which secret scanners recognise a leaked one.
pub const TOKEN_PREFIX: &str = "a2ar_";

pub(crate) fn hash(secret: &str) -> String {
    digest(&SHA256, secret.as_bytes())
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
