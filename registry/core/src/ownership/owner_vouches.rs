//! Owner vouches: an admin's statement that an account may act as owner of a host that cannot be proved
//! (docs/publish/prove.md#hosts-that-cannot-be-proved). [`domain_owner_at`](domain::Model::domain_owner_at) decides
//! whether a vouch is in force; this module ends vouches and updates the agents of their hosts.

use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::domain;
use a2a_registry_store::{Executor, WriteTransaction, accounts, owner_vouches};
use serde_json::json;
use uuid::Uuid;

use crate::commit::change_set::ChangeSet;
use crate::commit::committed_changes::CommittedChanges;
use crate::commit::decision_maker::SYSTEM_ACTOR;
use crate::commit::locks::lock_domain;
use crate::commit::publish::commit_and_await_index;
use crate::context::AppContext;
use crate::error::{ErrorKind, Result};
use crate::ownership::apply_check::update_domain_agents;
use crate::secrets::source_credentials::remove_ended_credentials;

const VOUCHES_PER_PAGE: u64 = 100;

/// Stores a domain's owner vouch or its removal, and updates the domain's agents.
pub async fn store_owner_vouch(
    context: &AppContext,
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    row: &domain::Model,
) -> Result<()> {
    write.set_domain_ownership(row).await?;
    remove_ended_credentials(write, change_set, row, SYSTEM_ACTOR).await?;
    let state = row.state()?;
    update_domain_agents(context, write, change_set, row, state).await
}

/// Removes the owner vouch from the row of a domain and appends the event; the caller stores the row. Returns whether
/// there was a vouch.
pub async fn remove_owner_vouch(
    db: &impl Executor,
    change_set: &mut ChangeSet<'_>,
    row: &mut domain::Model,
    actor: &str,
    reason: &str,
) -> Result<bool> {
    let Some(owner) = row.vouched_owner else {
        return Ok(false);
    };
    let account = accounts::accounts_by_ids(db, &[owner]).await?.pop();
    let data = json!({"account": account.map(|account| account.name), "reason": reason});
    change_set.add_event(EventKind::DomainOwnerVouchEnded, &row.name, actor, data);
    row.clear_owner_vouch();
    Ok(true)
}

/// Whether an account exists and is enabled.
async fn is_account_usable(db: &impl Executor, account: Uuid) -> Result<bool> {
    let account_rows = accounts::accounts_by_ids(db, &[account]).await?;
    Ok(account_rows
        .iter()
        .any(|account| account.is_account_active()))
}

/// Explains why the owner vouch of a domain ends; `None` while it stays, and for a domain without one.
async fn vouch_end_reason(
    db: &impl Executor,
    row: &domain::Model,
    now: Timestamp,
) -> Result<Option<String>> {
    let Some(owner) = row.vouched_owner else {
        return Ok(None);
    };
    if row.vouched_owner_at(now).is_none() {
        return Ok(Some("it has expired".to_owned()));
    }
    if !is_account_usable(db, owner).await? {
        return Ok(Some("its account cannot be used".to_owned()));
    }
    let proved = owner_vouches::domain_proving_host(db, &row.name).await?;
    Ok(proved.map(|proved| format!("{proved} is proved")))
}

/// Ends the owner vouches of hosts that a proof of another domain supersedes. The caller has locked these domains and
/// already written its changes to their agents.
pub async fn end_superseded_vouches(
    context: &AppContext,
    write: &WriteTransaction,
    hosts: &[domain::Model],
) -> Result<CommittedChanges> {
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    for host in hosts {
        end_vouch_if_due(context, write, &mut change_set, host.clone()).await?;
    }
    change_set.write(write).await
}

async fn end_vouch_if_due(
    context: &AppContext,
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    mut row: domain::Model,
) -> Result<()> {
    let now = change_set.now();
    if let Some(reason) = vouch_end_reason(write, &row, now).await? {
        remove_owner_vouch(write, change_set, &mut row, SYSTEM_ACTOR, &reason).await?;
        store_owner_vouch(context, write, change_set, &row).await?;
    }
    Ok(())
}

/// Ends every owner vouch that has expired, whose account is disabled, or whose host is proved. An expired vouch
/// permits nothing even before this, which only updates what is shown and found. A failure does not stop the others;
/// the first one is returned at the end.
pub async fn end_owner_vouches(context: &AppContext) -> Result<()> {
    let (mut after_id, mut first_error) = (0, Ok(()));
    loop {
        let page =
            owner_vouches::domains_with_owner_vouch(&context.store, after_id, VOUCHES_PER_PAGE)
                .await?;
        let Some(last) = page.last() else {
            return first_error;
        };
        after_id = last.id;
        for row in &page {
            match expire_owner_vouch(context, row).await {
                Err(error) if error.is_database_failure() => return Err(error),
                Err(error) => {
                    let text = error.log_message();
                    tracing::error!(error = text, domain = row.name, "cannot end an owner vouch");
                    first_error = first_error.and(Err(error));
                }
                Ok(()) => {}
            }
        }
    }
}

/// Ends the owner vouch of this domain if it is due to end, in its own transaction.
async fn expire_owner_vouch(context: &AppContext, unlocked: &domain::Model) -> Result<()> {
    if vouch_end_reason(&context.store, unlocked, context.now())
        .await?
        .is_none()
    {
        return Ok(());
    }
    let write = context.store.begin_write().await?;
    // Another process may have ended the vouch or deleted the domain.
    let row = match lock_domain(&write, unlocked).await {
        Err(error) if error.kind == ErrorKind::NotFound => return Ok(()),
        row => row?,
    };
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    end_vouch_if_due(context, &write, &mut change_set, row).await?;
    commit_and_await_index(context, write, change_set).await
}
