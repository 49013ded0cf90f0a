//! Owner vouches: an admin's statement that an account may act as owner of a host that cannot be proved
//! (docs/ownership.md#vouches). Whether one is in force is decided by [`owner_at`](domain::Model::owner_at); here it
//! ends, and the agents of its host are updated.

use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::domain;
use a2a_registry_store::{Handle, Write, accounts, owner_vouches};
use serde_json::json;
use uuid::Uuid;

use crate::commit::approver::SYSTEM;
use crate::commit::ledger::Ledger;
use crate::commit::locks::domain_locked;
use crate::commit::publish::commit_act;
use crate::commit::touched::Touched;
use crate::context::Context;
use crate::error::{ErrorKind, Result};
use crate::ownership::apply_check::update_agents;

const PAGE: u64 = 100;

/// Stores a domain's owner vouch or its removal, and updates the domain's agents for it.
pub async fn follow_owner_vouch(
    context: &Context,
    write: &Write,
    ledger: &mut Ledger<'_>,
    row: &domain::Model,
) -> Result<()> {
    write.domain_update(row).await?;
    let state = row.state()?;
    update_agents(context, write, ledger, row, state).await
}

/// Removes the owner vouch from the row of a domain, with its event; the caller stores the row. Returns whether there
/// was one.
pub async fn remove_owner_vouch(
    on: &impl Handle,
    ledger: &mut Ledger<'_>,
    row: &mut domain::Model,
    actor: &str,
    reason: &str,
) -> Result<bool> {
    let Some(owner) = row.vouched_owner else {
        return Ok(false);
    };
    let account = accounts::accounts_by_ids(on, &[owner]).await?.pop();
    let data = json!({"account": account.map(|account| account.name), "reason": reason});
    ledger.event(EventKind::DomainOwnerVouchEnded, &row.name, actor, data);
    row.clear_owner_vouch();
    Ok(true)
}

/// Whether an account exists and is enabled.
async fn is_usable(on: &impl Handle, account: Uuid) -> Result<bool> {
    let found = accounts::accounts_by_ids(on, &[account]).await?;
    Ok(found.iter().any(|account| account.may_be_used()))
}

/// Why the owner vouch of a domain ends; `None` while it stays, and for a domain without one.
async fn end_reason(
    on: &impl Handle,
    row: &domain::Model,
    now: Timestamp,
) -> Result<Option<String>> {
    let Some(owner) = row.vouched_owner else {
        return Ok(None);
    };
    if row.vouched_owner_at(now).is_none() {
        return Ok(Some("it has expired".to_owned()));
    }
    if !is_usable(on, owner).await? {
        return Ok(Some("its account may not be used".to_owned()));
    }
    let proved = owner_vouches::proving_domain(on, &row.name).await?;
    Ok(proved.map(|proved| format!("{proved} is proved")))
}

/// Ends the owner vouches of hosts that a proof of another domain supersedes. The caller has locked them, and has
/// already written its changes to their agents.
pub async fn end_superseded(
    context: &Context,
    write: &Write,
    hosts: &[domain::Model],
) -> Result<Touched> {
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    for host in hosts {
        end_if_due(context, write, &mut ledger, host.clone()).await?;
    }
    ledger.write(write).await
}

async fn end_if_due(
    context: &Context,
    write: &Write,
    ledger: &mut Ledger<'_>,
    mut row: domain::Model,
) -> Result<()> {
    let now = ledger.now();
    if let Some(reason) = end_reason(write, &row, now).await? {
        remove_owner_vouch(write, ledger, &mut row, SYSTEM, &reason).await?;
        follow_owner_vouch(context, write, ledger, &row).await?;
    }
    Ok(())
}

/// Ends every owner vouch that has expired, whose account is disabled, or whose host is proved. An expired one permits
/// nothing even before this, which only updates what is shown and found. A failure does not stop the others, and the
/// first is returned after them.
pub async fn end_owner_vouches(context: &Context) -> Result<()> {
    let (mut after, mut failed) = (0, Ok(()));
    loop {
        let page = owner_vouches::domains_with_owner_vouch(&context.store, after, PAGE).await?;
        let Some(last) = page.last() else {
            return failed;
        };
        after = last.id;
        for row in &page {
            match check_owner_vouch(context, row).await {
                Err(error) if error.is_of_database() => return Err(error),
                Err(error) => {
                    let text = error.for_log();
                    tracing::error!(
                        error = text,
                        domain = row.name,
                        "an owner vouch could not be ended"
                    );
                    failed = failed.and(Err(error));
                }
                Ok(()) => {}
            }
        }
    }
}

/// Ends the owner vouch of this domain if it is due to end, in a transaction of its own.
async fn check_owner_vouch(context: &Context, seen: &domain::Model) -> Result<()> {
    if end_reason(&context.store, seen, context.now())
        .await?
        .is_none()
    {
        return Ok(());
    }
    let write = context.store.write().await?;
    // Another process may have ended it, or the domain.
    let row = match domain_locked(&write, seen).await {
        Err(error) if error.kind == ErrorKind::NotFound => return Ok(()),
        row => row?,
    };
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    end_if_due(context, &write, &mut ledger, row).await?;
    commit_act(context, write, ledger).await
}
