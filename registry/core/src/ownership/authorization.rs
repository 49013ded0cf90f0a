//! Who may change a domain: its owner, proved or vouched for, and curators.

use a2a_registry_domain::role::Permission;
use a2a_registry_domain::source::SourceKind;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{domain, source};
use a2a_registry_store::{Executor, domains};

use crate::admission::coverage::url_origin;
use crate::error::{AppError, Result};
use crate::ownership::dispute::{dispute_error, is_caller_dispute_party, is_disputed_domain};
use crate::visibility::caller::{Caller, CallerAccount};

/// Returns the caller's account if it currently owns the domain or is a curator's. While a domain is disputed only
/// curators may change it: a party to the dispute, and the account that registered the domain, get a conflict.
pub async fn require_owner_or_curator<'a>(
    db: &impl Executor,
    caller: &'a Caller,
    row: &domain::Model,
    now: Timestamp,
) -> Result<&'a CallerAccount> {
    require_owner_or(db, caller, row, now, Permission::Curate).await
}

/// Like [`require_owner_or_curator`] with admins instead of curators, for what is between an owner and the operator.
pub async fn require_owner_or_admin<'a>(
    db: &impl Executor,
    caller: &'a Caller,
    row: &domain::Model,
    now: Timestamp,
) -> Result<&'a CallerAccount> {
    require_owner_or(db, caller, row, now, Permission::Administer).await
}

async fn require_owner_or<'a>(
    db: &impl Executor,
    caller: &'a Caller,
    row: &domain::Model,
    now: Timestamp,
    permission: Permission,
) -> Result<&'a CallerAccount> {
    let account = caller.require_permission(Permission::Register)?;
    if caller.has_permission(permission) || row.domain_owner_at(now) == Some(account.id) {
        return Ok(account);
    }
    let registered = is_disputed_domain(row)? && row.account_id == Some(account.id);
    if registered || is_caller_dispute_party(db, caller, row).await? {
        return Err(dispute_error(row));
    }
    let name = &row.name;
    let needed = if row.can_be_proved() {
        format!(
            "This requires a proof that you own {name}: run `a2a-registry domain verify {name}`."
        )
    } else {
        format!(
            "{name} cannot be proved, so an admin must vouch for you as its owner: `a2a-registry domain vouch {name} \
             --owner NAME`."
        )
    };
    Err(AppError::forbidden(needed))
}

/// Like [`require_owner_or_curator`], for actions on a whole domain. Plain HTTP and HTTPS on their default ports are
/// one domain, but an owner vouch is for only one of the two: while cards at the other origin are registered, the
/// vouched owner is refused.
pub async fn require_whole_domain_owner<'a>(
    db: &impl Executor,
    caller: &'a Caller,
    row: &domain::Model,
    now: Timestamp,
) -> Result<&'a CallerAccount> {
    let account = require_owner_or_curator(db, caller, row, now).await?;
    if caller.has_permission(Permission::Curate) || row.vouched_owner_at(now).is_none() {
        return Ok(account);
    }
    let origin = row.domain_origin();
    let sources = domains::live_sources_by_domain(db, &[row.id]).await?;
    let is_elsewhere =
        |one: &source::Model| one.kind == SourceKind::Url && url_origin(&one.url) != origin;
    if !sources.iter().any(is_elsewhere) {
        return Ok(account);
    }
    Err(AppError::forbidden(format!(
        "An admin vouches only for the owner of {origin}, but the domain {} also has cards at another origin. Retire \
         the agents of {origin} and withdraw their card URLs one by one, or ask a curator.",
        row.name
    )))
}
