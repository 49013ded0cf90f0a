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
use a2a_registry_store::{WriteTransaction, agents, events, settings};
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use crate::accounts::subject_callers::load_known_callers;
use crate::agents::policy_hiding::{AgentHiding, caller_kinds, is_hidden_from_any};
use crate::agents::records::load_agent_records;
use crate::commit::change_set::ChangeSet;
use crate::commit::decision_maker::POLICY_ACTOR;
use crate::commit::publish::commit_changes;
use crate::context::AppContext;
use crate::error::{AppError, Result};
use crate::visibility::caller::Caller;
use crate::visibility::policy_labels::is_unrestricted_policy_set;

/// The setting with the progress of the checks, which also serialises the changes.
const CHECK_SETTING: &str = "hidden_agents_check";
/// Agents, or events, per transaction.
const BATCH_SIZE: u64 = 200;
/// How long the process that checks agents keeps others from doing so, unless it renews this.
const LEASE: i64 = MINUTE;

/// How far agents are checked. One process does it, and another one continues where it stops or is killed.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct CheckProgress {
    /// The policy set under which agents are checked.
    set: u64,
    /// The digest of the kinds of callers for which they are checked.
    kinds: String,
    /// While all agents are checked, the last one that was.
    last_checked: Option<Uuid>,
    /// The last event whose agent is checked otherwise.
    seq: i64,
    holder: Option<Uuid>,
    until: i64,
}

impl CheckProgress {
    /// One that this build cannot read begins anew.
    fn parse(text: Option<String>) -> Self {
        let parsed = text.and_then(|text| serde_json::from_str(&text).ok());
        parsed.unwrap_or_default()
    }

    async fn lock(write: &WriteTransaction) -> Result<Self> {
        Ok(Self::parse(
            settings::lock_setting(write, CHECK_SETTING).await?,
        ))
    }

    async fn store(&self, write: &WriteTransaction) -> Result<()> {
        let text = serde_json::to_string(self);
        let text = text.map_err(|error| AppError::internal(error.to_string()))?;
        Ok(write.set_setting(CHECK_SETTING, &text).await?)
    }
}

/// A check by this process: which kinds of callers find which agents under a set.
struct HiddenAgentCheck<'a> {
    context: &'a AppContext,
    set: Arc<PolicySet>,
    /// None if policies hide no agent from anybody.
    kinds: Vec<Caller>,
    digest: String,
    /// The last event that this process had applied before it read the callers.
    applied_seq: i64,
}

/// Checks the agents that policies may hide now, or hide no longer: all of them under another set or for other kinds
/// of callers, and otherwise those that have an event since the last check.
pub async fn update_hidden_agents(
    context: &AppContext,
    is_cancelled: impl Fn() -> bool,
) -> Result<()> {
    let applied_seq = context.index.applied_seq();
    let set = context.policy_sets.enforced_set();
    let kinds = match is_unrestricted_policy_set(&set) {
        true => Vec::new(),
        false => caller_kinds(load_known_callers(context).await?.as_ref(), &set),
    };
    let check = HiddenAgentCheck {
        context,
        set,
        digest: a2a_card::bytes_digest(format!("{kinds:?}").as_bytes()),
        kinds,
        applied_seq,
    };
    let Some(mut progress) = check.begin().await? else {
        return Ok(());
    };
    loop {
        let is_done = check.check_next_agents(&mut progress).await?;
        let is_over = is_done || is_cancelled();
        if !check.store_progress(&progress, is_over).await? || is_over {
            return Ok(());
        }
    }
}

impl HiddenAgentCheck<'_> {
    fn is_complete(&self, stored: &CheckProgress) -> bool {
        let is_followed = self.kinds.is_empty() || stored.seq >= self.applied_seq;
        self.is_same(stored) && stored.last_checked.is_none() && is_followed
    }

    fn is_same(&self, stored: &CheckProgress) -> bool {
        stored.set == self.set.number() && stored.kinds == self.digest
    }

    /// The progress of this check, for this process alone. `None` if there is nothing to check, or another process
    /// does it.
    async fn begin(&self) -> Result<Option<CheckProgress>> {
        let number = self.set.number();
        let is_idle = |stored: &CheckProgress| {
            // A process that is behind does not know the callers yet for which another one checks.
            let is_behind = stored.set == number && stored.seq > self.applied_seq;
            stored.set > number || is_behind || self.is_complete(stored)
        };
        let stored = settings::setting_value(&self.context.store, CHECK_SETTING).await?;
        if is_idle(&CheckProgress::parse(stored)) {
            return Ok(None);
        }
        let (own, now) = (
            Some(self.context.rules_progress.lease_owner),
            self.context.now(),
        );
        let write = self.context.store.begin_write().await?;
        let stored = CheckProgress::lock(&write).await?;
        let is_elsewhere = stored.set == number && stored.holder != own && stored.until > now.0;
        if is_idle(&stored) || is_elsewhere {
            return Ok(None);
        }
        let mut progress = match self.is_same(&stored) {
            true => stored,
            false => CheckProgress {
                set: number,
                kinds: self.digest.clone(),
                last_checked: Some(Uuid::nil()),
                // What agents look like after later events is not known here yet.
                seq: self.applied_seq,
                ..CheckProgress::default()
            },
        };
        progress.holder = own;
        progress.until = now.plus_micros(LEASE).0;
        progress.store(&write).await?;
        write.commit().await?;
        Ok(Some(progress))
    }

    /// Checks the next agents; returns whether none is left.
    async fn check_next_agents(&self, progress: &mut CheckProgress) -> Result<bool> {
        let store = &self.context.store;
        if self.kinds.is_empty() {
            // Policies hide none any more.
            let rows = hidden_agent_page(store, None, BATCH_SIZE).await?;
            let ids: Vec<Uuid> = rows.iter().map(|row| row.agent_id).collect();
            store_hidden_agents(self.context, self.set.number(), &ids, &BTreeSet::new()).await?;
            progress.last_checked = progress.last_checked.filter(|_| !ids.is_empty());
            return Ok(ids.is_empty());
        }
        let rows = if progress.last_checked.is_some() {
            let rows = agents::agents_page_by_id(store, progress.last_checked, BATCH_SIZE).await?;
            progress.last_checked = rows.last().map(|last| last.id);
            rows
        } else {
            let mut events = events::events_after(store, progress.seq, BATCH_SIZE).await?;
            events.retain(|row| row.seq <= self.context.index.applied_seq());
            let Some(last) = events.last() else {
                return Ok(true);
            };
            progress.seq = last.seq;
            let changed: BTreeSet<Uuid> = events.iter().filter_map(|row| row.agent_id).collect();
            let changed: Vec<Uuid> = changed.into_iter().collect();
            agents::agents_by_ids(store, &changed).await?
        };
        check_batch(self.context, &self.set, rows, &self.kinds).await?;
        Ok(false)
    }

    /// Stores the progress, and lets others continue if it `is_over`; returns whether this process still holds the
    /// check.
    async fn store_progress(&self, progress: &CheckProgress, is_over: bool) -> Result<bool> {
        let write = self.context.store.begin_write().await?;
        let stored = CheckProgress::lock(&write).await?;
        if stored.holder != progress.holder || stored.set != progress.set {
            return Ok(false);
        }
        let until = self.context.now().plus_micros(LEASE).0;
        let progress = CheckProgress {
            holder: progress.holder.filter(|_| !is_over),
            until: if is_over { 0 } else { until },
            ..progress.clone()
        };
        progress.store(&write).await?;
        write.commit().await?;
        Ok(true)
    }
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
    let check = CheckProgress::lock(&write).await?;
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
    let known = load_known_callers(context).await?;
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
