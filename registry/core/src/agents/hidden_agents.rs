//! Notices which agents policies hide from some callers: owners find them in `waiting`, and events say when it begins
//! and ends. From whom an agent is hidden is counted when somebody looks.

use std::collections::BTreeSet;
use std::sync::Arc;

use a2a_registry_api::HiddenAgent;
use a2a_registry_api::limits::MAX_INBOX_ENTRIES;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::timestamp::{MINUTE, Timestamp};
use a2a_registry_policy::PolicySet;
use a2a_registry_store::entity::{agent, hidden_agent};
use a2a_registry_store::hidden_agents::{hidden_agent_page, hidden_agents_by_ids};
use a2a_registry_store::{WriteTransaction, agents, settings};
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use crate::accounts::subject_callers::load_known_callers;
use crate::agents::policy_hiding::{
    AgentHiding, MAX_COUNTED_ACCOUNTS, is_hidden_from_any, load_caller_kinds,
};
use crate::agents::records::load_agent_records;
use crate::commit::change_set::ChangeSet;
use crate::commit::decision_maker::POLICY_ACTOR;
use crate::commit::publish::commit_changes;
use crate::context::AppContext;
use crate::error::{AppError, Result};
use crate::process_state::hidden_agents::QueuedAgents;
use crate::visibility::caller::Caller;
use crate::visibility::policy_labels::is_unrestricted_policy_set;

/// The setting with the last check of all agents, which also serialises the changes.
const CHECK_SETTING: &str = "hidden_agents_check";
/// Agents per transaction.
const BATCH_SIZE: usize = 200;
/// How long a process that checks all agents keeps others from doing so, unless it renews this.
const LEASE: i64 = MINUTE;

/// The check of all agents under a policy set, by one process.
#[derive(Debug, Default, Serialize, Deserialize)]
struct StoredCheck {
    set: u64,
    is_done: bool,
    holder: Option<Uuid>,
    until: i64,
}

impl StoredCheck {
    async fn lock(write: &WriteTransaction) -> Result<Self> {
        let text = settings::lock_setting(write, CHECK_SETTING).await?;
        // One that this build cannot read is made again.
        Ok(text
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default())
    }

    async fn store(&self, write: &WriteTransaction) -> Result<()> {
        let text = serde_json::to_string(self);
        let text = text.map_err(|error| AppError::internal(error.to_string()))?;
        Ok(write.set_setting(CHECK_SETTING, &text).await?)
    }
}

/// Checks the agents that policies may hide now, or hide no longer. What fails is checked again in the next round.
pub async fn update_hidden_agents(
    context: &AppContext,
    is_cancelled: impl Fn() -> bool,
) -> Result<()> {
    let set = context.policy_sets.enforced_set();
    match context.hidden_agents.take(set.number()) {
        QueuedAgents::Some(ids) if ids.is_empty() || is_unrestricted_policy_set(&set) => Ok(()),
        QueuedAgents::Some(ids) => {
            let ids: Vec<Uuid> = ids.into_iter().collect();
            let checked = check_agents(context, &set, &ids).await;
            if checked.is_err() {
                context.hidden_agents.queue_agents(&ids);
            }
            checked
        }
        QueuedAgents::All => {
            let checked = check_all_agents(context, &set, is_cancelled).await;
            if !matches!(checked, Ok(true)) {
                context.hidden_agents.queue_all_agents();
            }
            checked.map(drop)
        }
    }
}

/// Checks all agents, unless another process has done so or does so now; returns whether it is done.
async fn check_all_agents(
    context: &AppContext,
    set: &Arc<PolicySet>,
    is_cancelled: impl Fn() -> bool,
) -> Result<bool> {
    match begin_check(context, set.number()).await? {
        CheckStart::Done => return Ok(true),
        CheckStart::Elsewhere => return Ok(false),
        CheckStart::Here => {}
    }
    if is_unrestricted_policy_set(set) {
        return forget_all_agents(context, set.number()).await;
    }
    let kinds = load_caller_kinds(context, set).await?;
    let mut after = None;
    loop {
        let rows = agents::agents_page_by_id(&context.store, after, BATCH_SIZE as u64).await?;
        let Some(last) = rows.last() else {
            return end_check(context, set.number()).await;
        };
        after = Some(last.id);
        check_batch(context, set, rows, &kinds).await?;
        if is_cancelled() {
            return Ok(false);
        }
        match begin_check(context, set.number()).await? {
            CheckStart::Done => return Ok(true),
            CheckStart::Elsewhere => return Ok(false),
            CheckStart::Here => {}
        }
    }
}

enum CheckStart {
    /// All agents were checked under this set or a newer one.
    Done,
    /// Another process checks them.
    Elsewhere,
    /// This process checks them, and others wait for it.
    Here,
}

/// Takes or renews the lease for a check of all agents.
async fn begin_check(context: &AppContext, set: u64) -> Result<CheckStart> {
    let own = Some(context.rules_progress.lease_owner);
    let write = context.store.begin_write().await?;
    let stored = StoredCheck::lock(&write).await?;
    let (is_same, now) = (stored.set == set, context.now().0);
    if stored.set > set || (is_same && stored.is_done) {
        return Ok(CheckStart::Done);
    }
    if is_same && stored.holder != own && stored.until > now {
        return Ok(CheckStart::Elsewhere);
    }
    let check = StoredCheck {
        set,
        is_done: false,
        holder: own,
        until: now.saturating_add(LEASE),
    };
    check.store(&write).await?;
    write.commit().await?;
    Ok(CheckStart::Here)
}

async fn end_check(context: &AppContext, set: u64) -> Result<bool> {
    let write = context.store.begin_write().await?;
    let stored = StoredCheck::lock(&write).await?;
    if stored.set == set {
        let done = StoredCheck {
            is_done: true,
            holder: None,
            ..stored
        };
        done.store(&write).await?;
    }
    write.commit().await?;
    Ok(true)
}

async fn check_agents(context: &AppContext, set: &Arc<PolicySet>, ids: &[Uuid]) -> Result<()> {
    let kinds = load_caller_kinds(context, set).await?;
    for some in ids.chunks(BATCH_SIZE) {
        let rows = agents::agents_by_ids(&context.store, some).await?;
        check_batch(context, set, rows, &kinds).await?;
    }
    Ok(())
}

async fn check_batch(
    context: &AppContext,
    set: &Arc<PolicySet>,
    rows: Vec<agent::Model>,
    kinds: &[Caller],
) -> Result<()> {
    let ids: Vec<Uuid> = rows.iter().map(|row| row.id).collect();
    let mut hidden = BTreeSet::new();
    for record in load_agent_records(&context.store, rows).await? {
        if is_hidden_from_any(context, set, &record, kinds) {
            hidden.insert(record.agent.id);
        }
        // An evaluation takes up to a millisecond.
        tokio::task::yield_now().await;
    }
    store_hidden_agents(context, set.number(), &ids, &hidden).await
}

/// Stores which of these agents are hidden, with an event for each change. The events do not name the agents as
/// changed: nothing of them is indexed again.
async fn store_hidden_agents(
    context: &AppContext,
    set: u64,
    ids: &[Uuid],
    hidden: &BTreeSet<Uuid>,
) -> Result<()> {
    let stored = |rows: Vec<hidden_agent::Model>| -> BTreeSet<Uuid> {
        rows.into_iter().map(|row| row.agent_id).collect()
    };
    if stored(hidden_agents_by_ids(&context.store, ids, ids.len()).await?) == *hidden {
        return Ok(());
    }
    let write = context.store.begin_write().await?;
    // Of two processes that notice the same change, one makes it.
    let check = StoredCheck::lock(&write).await?;
    // A process with a newer set has checked these agents, or is about to.
    if check.set > set {
        return Ok(());
    }
    let before = stored(hidden_agents_by_ids(&write, ids, ids.len()).await?);
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    let added: Vec<Uuid> = hidden.difference(&before).copied().collect();
    let removed: Vec<Uuid> = before.difference(hidden).copied().collect();
    for (kind, changed) in [
        (EventKind::AgentHidden, &added),
        (EventKind::AgentUnhidden, &removed),
    ] {
        for id in changed {
            let data = json!({"agent": id, "policy_set": set});
            change_set.add_event(kind, id, POLICY_ACTOR, data);
        }
    }
    let since = context.now().0;
    let rows = added
        .into_iter()
        .map(|agent_id| hidden_agent::Model { agent_id, since });
    write.insert_hidden_agents(rows.collect()).await?;
    write.delete_hidden_agents(&removed).await?;
    commit_changes(context, write, change_set).await
}

/// Forgets all hidden agents, because policies hide none any more.
async fn forget_all_agents(context: &AppContext, set: u64) -> Result<bool> {
    loop {
        let rows = hidden_agent_page(&context.store, None, BATCH_SIZE as u64).await?;
        if rows.is_empty() {
            return end_check(context, set).await;
        }
        let ids: Vec<Uuid> = rows.iter().map(|row| row.agent_id).collect();
        store_hidden_agents(context, set, &ids, &BTreeSet::new()).await?;
    }
}

/// Those of these agents that policies hide from some callers, the newest first, with the counts of today.
pub async fn load_hidden_agents(
    context: &AppContext,
    own: &[Uuid],
    sees_policies: bool,
) -> Result<Vec<HiddenAgent>> {
    let rows = hidden_agents_by_ids(&context.store, own, MAX_INBOX_ENTRIES).await?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<Uuid> = rows.iter().map(|row| row.agent_id).collect();
    let agents = agents::agents_by_ids(&context.store, &ids).await?;
    let records = load_agent_records(&context.store, agents).await?;
    let known = load_known_callers(&context.store, MAX_COUNTED_ACCOUNTS).await?;
    let known = Arc::new(known);
    let set = context.policy_sets.enforced_set();
    let mut hidden = Vec::new();
    for row in rows {
        let record = records.iter().find(|one| one.agent.id == row.agent_id);
        let hiding = record.and_then(|record| AgentHiding::new(context, &set, record));
        let Some(hiding) = hiding else { continue };
        if let Some(hidden_from) = hiding
            .count_among(Arc::clone(&known), sees_policies)
            .await?
        {
            hidden.push(HiddenAgent {
                agent: row.agent_id,
                since: Timestamp(row.since),
                hidden_from,
            });
        }
    }
    Ok(hidden)
}
