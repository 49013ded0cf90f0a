//! Owner vouches by an admin: for an account as owner of a host that cannot be proved
//! (docs/publish/prove.md#hosts-that-cannot-be-proved).

use a2a_registry_api::limits::{DEFAULT_VOUCH_DAYS, MAX_VOUCH_DAYS};
use a2a_registry_api::{DomainView, NewOwnerVouch};
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::{DAY, Timestamp};
use a2a_registry_store::entity::{account, domain};
use a2a_registry_store::{WriteTransaction, accounts, owner_vouches};
use serde_json::json;

use crate::commit::change_set::ChangeSet;
use crate::commit::decision_maker::check_reason;
use crate::commit::locks::lock_domain;
use crate::commit::publish::commit_and_await_index;
use crate::context::AppContext;
use crate::domains::actions::{find_enabled_account, find_visible_domain};
use crate::domains::view::domain_view;
use crate::error::{AppError, Result};
use crate::ownership::owner_vouches::{remove_owner_vouch, store_owner_vouch};
use crate::visibility::caller::Caller;

/// Vouches for an account as owner of a host. Repeating it for the same account replaces the reason and the expiry.
pub async fn vouch_for_domain_owner(
    context: &AppContext,
    caller: &Caller,
    domain: &str,
    vouch: &NewOwnerVouch,
) -> Result<DomainView> {
    let admin = caller.require_permission(Permission::Administer)?;
    check_reason(&vouch.reason)?;
    let now = context.now();
    let expires_at = owner_vouch_expiry(now, vouch.expires_in_days)?;
    let unlocked = find_visible_domain(context, caller, domain).await?;
    let write = context.store.begin_write().await?;
    let mut row = lock_domain(&write, &unlocked).await?;
    let owner = find_enabled_account(&write, &vouch.account).await?;
    reject_provable_domain(&write, &row).await?;
    reject_other_vouched_owner(&write, &row, &owner, now).await?;
    let mut change_set = ChangeSet::new(now, context.entropy.as_ref());
    if row.vouched_owner != Some(owner.id) {
        let reason = "an admin vouches for another account";
        remove_owner_vouch(&write, &mut change_set, &mut row, &admin.name, reason).await?;
    }
    row.vouched_owner = Some(owner.id);
    row.vouched_since = Some(now.0);
    row.vouched_until = Some(expires_at.0);
    row.vouched_by = Some(admin.name.clone());
    row.vouched_reason = Some(vouch.reason.clone());
    let data = json!({"account": owner.name, "origin": row.domain_origin(),
        "reason": vouch.reason, "until": expires_at});
    change_set.add_event(EventKind::DomainOwnerVouched, &row.name, &admin.name, data);
    store_owner_vouch(context, &write, &mut change_set, &row).await?;
    commit_and_await_index(context, write, change_set).await?;
    domain_view(context, caller, row.id).await
}

/// Ends the vouch for an account as owner of a host, whether or not it has expired.
pub async fn withdraw_owner_vouch(
    context: &AppContext,
    caller: &Caller,
    domain: &str,
) -> Result<()> {
    let admin = caller.require_permission(Permission::Administer)?;
    let unlocked = find_visible_domain(context, caller, domain).await?;
    let write = context.store.begin_write().await?;
    let mut row = lock_domain(&write, &unlocked).await?;
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    let reason = "an admin ended it";
    if !remove_owner_vouch(&write, &mut change_set, &mut row, &admin.name, reason).await? {
        return Err(AppError::not_found(format!(
            "{} has no owner vouch.",
            row.name
        )));
    }
    store_owner_vouch(context, &write, &mut change_set, &row).await?;
    commit_and_await_index(context, write, change_set).await
}

fn owner_vouch_expiry(now: Timestamp, days: Option<u32>) -> Result<Timestamp> {
    match days.unwrap_or(DEFAULT_VOUCH_DAYS) {
        days @ 1..=MAX_VOUCH_DAYS => Ok(now.plus_micros(i64::from(days) * DAY)),
        _ => Err(AppError::invalid(
            "/expires_in_days",
            format!("A vouch must expire after 1 to {MAX_VOUCH_DAYS} days."),
        )),
    }
}

/// Rejects a domain that can be proved, and a host whose name is proved in this registry.
async fn reject_provable_domain(write: &WriteTransaction, row: &domain::Model) -> Result<()> {
    let name = &row.name;
    let why = if row.can_be_proved() {
        format!(
            "{name} can be proved, so an admin cannot vouch for its owner. The account must place a record or a file \
             and run `a2a-registry domain verify {name}`."
        )
    } else if let Some(proved) = owner_vouches::domain_proving_host(write, name).await? {
        format!(
            "{proved} is proved and has the host name of {name}, so an admin cannot vouch for an owner of {name}. Its \
             cards can be published on port 443, over https, and registered there."
        )
    } else {
        return Ok(());
    };
    Err(AppError::conflict(why))
}

/// Refuses to replace the vouched account while its vouch is in force.
async fn reject_other_vouched_owner(
    write: &WriteTransaction,
    row: &domain::Model,
    owner: &account::Model,
    now: Timestamp,
) -> Result<()> {
    let current_owner = row.vouched_owner_at(now).filter(|id| *id != owner.id);
    let current_owner: Vec<_> = current_owner.into_iter().collect();
    let current_owner = accounts::accounts_by_ids(write, &current_owner).await?;
    let (Some(present), Some(until)) = (
        current_owner.iter().find(|one| one.is_account_active()),
        row.vouched_until,
    ) else {
        return Ok(());
    };
    Err(AppError::conflict(format!(
        "An admin vouches for {} as owner of {} until {}. End that vouch first: \
         `a2a-registry domain vouch {1} --end-owner`.",
        present.name,
        row.name,
        Timestamp(until).to_rfc3339()
    )))
}
