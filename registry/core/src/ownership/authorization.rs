//! Who may change a domain: its owner, proved or vouched for, and curators.

use a2a_registry_domain::role::Permission;
use a2a_registry_domain::source::SourceKind;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{domain, source};
use a2a_registry_store::{Executor, domains};

use crate::admission::coverage::url_origin;
use crate::error::{AppError, Result};
use crate::ownership::dispute::{dispute_error, is_caller_party, is_disputed};
use crate::ownership::is_provable;
use crate::visibility::caller::{Caller, CallerAccount};

/// The caller's account, if it owns the domain at this time or curates. While a domain is disputed only curators may
/// change it: a party to the dispute, and the account that registered the domain, get a conflict.
pub async fn require_owner_or_curator<'a>(
    db: &impl Executor,
    caller: &'a Caller,
    row: &domain::Model,
    now: Timestamp,
) -> Result<&'a CallerAccount> {
    let account = caller.require(Permission::Register)?;
    if caller.has_permission(Permission::Curate) || row.owner_at(now) == Some(account.id) {
        return Ok(account);
    }
    let registered = is_disputed(row)? && row.account_id == Some(account.id);
    if registered || is_caller_party(db, caller, row).await? {
        return Err(dispute_error(row));
    }
    let name = &row.name;
    let needed = if is_provable(row) {
        format!("This needs a proof that {name} is yours: `a2a-registry domain verify {name}`.")
    } else {
        format!(
            "{name} cannot be proved, so this needs an admin who vouches for you as its owner: `a2a-registry domain vouch {name} \
             --owner NAME`."
        )
    };
    Err(AppError::forbidden(needed))
}

/// As [`require_owner_or_curator`], for an act on everything that a domain has. Plain HTTP and HTTPS on their usual
/// ports are one domain, and an owner vouch is for one of the two: while cards at the other one are registered, the
/// vouched owner is refused.
pub async fn require_whole_domain<'a>(
    db: &impl Executor,
    caller: &'a Caller,
    row: &domain::Model,
    now: Timestamp,
) -> Result<&'a CallerAccount> {
    let account = require_owner_or_curator(db, caller, row, now).await?;
    if caller.has_permission(Permission::Curate) || row.vouched_owner_at(now).is_none() {
        return Ok(account);
    }
    let origin = row.origin();
    let sources = domains::live_sources_by_domain(db, &[row.id]).await?;
    let is_elsewhere =
        |one: &source::Model| one.kind == SourceKind::Url && url_origin(&one.url) != origin;
    if !sources.iter().any(is_elsewhere) {
        return Ok(account);
    }
    Err(AppError::forbidden(format!(
        "An admin vouches for the owner of {origin}, and the domain {} has cards at another origin too. Retire the agents \
             of {origin} and withdraw their card URLs one by one, or ask a curator.",
        row.name
    )))
}
