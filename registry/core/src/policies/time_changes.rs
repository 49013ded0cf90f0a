//! What time alone changes about policies: a policy begins or ends to act, or an agent reaches an age that policies
//! compare. Each is written once for all processes, which follow the events.

use a2a_registry_api::limits::MAX_REASON;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::timestamp::{HOUR, MINUTE, Timestamp};
use a2a_registry_policy::{AgeThreshold, PolicySet};
use a2a_registry_store::agent_moments::{agent_ids_by_moment, earliest_agent_moment};
use a2a_registry_store::policies;
use serde_json::json;

use crate::admission::policy_subject::age_column;
use crate::commit::admission_policies::load_admission_policies;
use crate::commit::change_set::ChangeSet;
use crate::commit::decision_maker::SYSTEM_ACTOR;
use crate::commit::policy_set_numbers::{NewPolicySet, add_policy_set};
use crate::commit::publish::commit_changes;
use crate::context::AppContext;
use crate::error::Result;
use crate::policy_sets::age_progress::AgeProgress;
use crate::policy_sets::{parse_stored_policies, policy_set_number};

/// Agents per transaction.
const BATCH_SIZE: u64 = 500;
/// Minimum time between two searches for agents that reach an age.
const MIN_CHECK_INTERVAL: i64 = MINUTE;
/// Maximum time between two such searches, because an approval can be dated back.
const MAX_CHECK_INTERVAL: i64 = HOUR;
/// The time since the last event of an unfinished search after which another process continues it.
const TAKEOVER_AFTER: i64 = MINUTE;

/// Gives the newest set another number if a policy of it has begun or ended to act since the set was made: the same
/// policies are then another set, which every process puts in force like one that an admin has made.
pub async fn apply_policy_dates(context: &AppContext) -> Result<()> {
    let set = load_admission_policies(context, &context.store).await?;
    if !set.has_dates() {
        return Ok(());
    }
    let now = context.now();
    let newest = policies::policy_set_page(&context.store, None, 1).await?;
    let made_at = newest.first().map(|row| Timestamp(row.created_at));
    let changes = made_at.map(|made_at| set.date_changes(made_at, now));
    if changes.is_none_or(|changes| changes.is_empty()) {
        return Ok(());
    }
    let write = context.store.begin_write().await?;
    write.lock_policy_sets().await?;
    let newest = policies::newest_policy_set(&write).await?;
    // Another process may have done this, or an admin may have made a set.
    let Some(newest) = newest.filter(|row| policy_set_number(row) == set.number()) else {
        return Ok(());
    };
    let changes = set.date_changes(Timestamp(newest.created_at), now);
    let reason: String = changes.join(", ").chars().take(MAX_REASON).collect();
    let mut change_set = ChangeSet::new(now, context.entropy.as_ref());
    let new_set = NewPolicySet {
        policies: &parse_stored_policies(&newest)?,
        depends_on_collections: newest.collections.is_some(),
        author: SYSTEM_ACTOR,
        reason: &reason,
    };
    add_policy_set(&write, &mut change_set, set.number(), new_set).await?;
    commit_changes(context, write, change_set).await
}

/// Writes an event for each agent that has reached an age which a policy of the newest set compares, so that every
/// process evaluates it again. A search that was cancelled or failed is continued later.
pub async fn record_reached_ages(
    context: &AppContext,
    is_cancelled: impl Fn() -> bool,
) -> Result<()> {
    let set = load_admission_policies(context, &context.store).await?;
    let now = context.now();
    let thresholds = countable_thresholds(&set);
    if thresholds.is_empty() || !context.policy_sets.is_age_check_due(set.number(), now) {
        return Ok(());
    }
    let Some(progress) = begin_age_search(context, &thresholds, now).await? else {
        return Ok(());
    };
    if progress.done < progress.as_of {
        for threshold in &thresholds {
            if !record_reached_age(context, *threshold, progress, &is_cancelled).await? {
                return Ok(());
            }
        }
        finish_age_search(context, progress).await?;
    }
    let mut next = now.0.saturating_add(MAX_CHECK_INTERVAL);
    for threshold in &thresholds {
        let latest = threshold.latest_start(progress.as_of);
        let column = age_column(threshold.age);
        if let Some(moment) = earliest_agent_moment(&context.store, column, latest).await? {
            let due = progress
                .as_of
                .0
                .saturating_add(moment.saturating_sub(latest));
            next = next.min(due);
        }
    }
    let next = Timestamp(next.max(now.0.saturating_add(MIN_CHECK_INTERVAL)));
    context.policy_sets.schedule_age_check(set.number(), next);
    Ok(())
}

/// The ages that a passage of time reaches.
fn countable_thresholds(set: &PolicySet) -> Vec<AgeThreshold> {
    let thresholds = set.age_thresholds().iter();
    thresholds.filter(|one| one.days > 0).copied().collect()
}

/// Begins a search up to now if any agent reaches an age, or continues one in which no event has been written for a
/// while. `None` while another process is at it.
async fn begin_age_search(
    context: &AppContext,
    thresholds: &[AgeThreshold],
    now: Timestamp,
) -> Result<Option<AgeProgress>> {
    let progress = AgeProgress::load(&context.store).await?;
    if progress.done < progress.as_of {
        // In either direction: the clock may have been set back.
        let is_left = now.0.abs_diff(progress.worked_at.0) >= TAKEOVER_AFTER.unsigned_abs();
        let taken_over = AgeProgress {
            worked_at: now,
            ..progress
        };
        return match is_left {
            true => claim_age_search(context, progress, taken_over).await,
            false => Ok(None),
        };
    }
    let until_now = AgeProgress {
        as_of: now,
        worked_at: now,
        ..progress
    };
    let mut is_any_reached = false;
    for threshold in thresholds {
        let found = reached_agent_ids(context, *threshold, until_now, None, 1).await?;
        is_any_reached = is_any_reached || !found.is_empty();
    }
    if !is_any_reached {
        return Ok(Some(progress));
    }
    claim_age_search(context, progress, until_now).await
}

/// Stores that this process is at a search; `None` if another one was faster.
async fn claim_age_search(
    context: &AppContext,
    before: AgeProgress,
    claimed: AgeProgress,
) -> Result<Option<AgeProgress>> {
    let write = context.store.begin_write().await?;
    if AgeProgress::lock(&write).await? != before {
        return Ok(None);
    }
    claimed.store(&write).await?;
    write.commit().await?;
    Ok(Some(claimed))
}

async fn reached_agent_ids(
    context: &AppContext,
    threshold: AgeThreshold,
    progress: AgeProgress,
    cursor: Option<uuid::Uuid>,
    limit: u64,
) -> Result<Vec<uuid::Uuid>> {
    let moments = (
        threshold.latest_start(progress.done),
        threshold.latest_start(progress.as_of),
    );
    let column = age_column(threshold.age);
    Ok(agent_ids_by_moment(&context.store, column, moments, cursor, limit).await?)
}

/// Writes the events of the agents that have reached one age; returns whether all are written. Another process may
/// have taken the search over and finished it.
async fn record_reached_age(
    context: &AppContext,
    threshold: AgeThreshold,
    progress: AgeProgress,
    is_cancelled: &impl Fn() -> bool,
) -> Result<bool> {
    let mut cursor = None;
    loop {
        if is_cancelled() {
            return Ok(false);
        }
        let ids = reached_agent_ids(context, threshold, progress, cursor, BATCH_SIZE).await?;
        let Some(last) = ids.last() else {
            return Ok(true);
        };
        cursor = Some(*last);
        let write = context.store.begin_write().await?;
        if !AgeProgress::lock(&write).await?.is_same_search(progress) {
            return Ok(false);
        }
        let worked = AgeProgress {
            worked_at: context.now(),
            ..progress
        };
        worked.store(&write).await?;
        let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
        for id in &ids {
            let data = json!({"age": threshold.age.as_str(), "days": threshold.days});
            change_set.add_agent_event(EventKind::AgentUpdated, *id, SYSTEM_ACTOR, data);
        }
        commit_changes(context, write, change_set).await?;
    }
}

/// Stores that a search is finished, unless another process has done so, or a set was made meanwhile, under which all
/// agents are evaluated anyway.
async fn finish_age_search(context: &AppContext, progress: AgeProgress) -> Result<()> {
    let write = context.store.begin_write().await?;
    if AgeProgress::lock(&write).await?.is_same_search(progress) {
        let finished = AgeProgress::finished(progress.as_of);
        finished.store(&write).await?;
    }
    write.commit().await?;
    Ok(())
}
