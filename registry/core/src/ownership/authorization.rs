//! Who may change a domain: its owner, proved or vouched for, and curators.

use a2a_registry_domain::role::Permission;
use a2a_registry_domain::source::SourceKind;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{domain, source};
use a2a_registry_store::{Handle, domains};

use crate::admission::coverage::origin_of;
use crate::error::{AppError, Result};
use crate::ownership::dispute::{disputed, is_caller_party, is_disputed};
use crate::ownership::is_provable;
use crate::visibility::caller::{Account, Caller};

/// The caller's account, if it owns the domain at this time or curates. While a domain is disputed only curators may
/// change it: a party to the dispute, and the account that registered the domain, get a conflict.
pub async fn require_owner_or_curator<'a>(
    on: &impl Handle,
    caller: &'a Caller,
    row: &domain::Model,
    now: Timestamp,
) -> Result<&'a Account> {
    let account = caller.demand(Permission::Register)?;
    if caller.may(Permission::Curate) || row.owner_at(now) == Some(account.id) {
        return Ok(account);
    }
    let registered = is_disputed(row)? && row.account_id == Some(account.id);
    if registered || is_caller_party(on, caller, row).await? {
        return Err(disputed(row));
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
    on: &impl Handle,
    caller: &'a Caller,
    row: &domain::Model,
    now: Timestamp,
) -> Result<&'a Account> {
    let account = require_owner_or_curator(on, caller, row, now).await?;
    if caller.may(Permission::Curate) || row.vouched_owner_at(now).is_none() {
        return Ok(account);
    }
    let origin = row.origin();
    let sources = domains::sources_of(on, &[row.id]).await?;
    let is_elsewhere =
        |one: &source::Model| one.kind == SourceKind::Url && origin_of(&one.url) != origin;
    if !sources.iter().any(is_elsewhere) {
        return Ok(account);
    }
    Err(AppError::forbidden(format!(
        "An admin vouches for the owner of {origin}, and the domain {} has cards at another origin too. Retire the agents \
             of {origin} and withdraw their card URLs one by one, or ask a curator.",
        row.name
    )))
}
