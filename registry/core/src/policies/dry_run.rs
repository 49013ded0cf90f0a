//! The results of dry runs: the changes that a policy would have made.

use std::collections::{BTreeMap, BTreeSet};

use a2a_registry_api::{DryRun, DryRunCount, DryRunDay};
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::{DAY, Timestamp};
use a2a_registry_policy::PolicyMode;
use a2a_registry_store::dry_runs::dry_run_changes_by_policy;
use a2a_registry_store::entity::dry_run_change;

use crate::context::AppContext;
use crate::error::{AppError, Result};
use crate::policy_sets::load_newest_policy_set;
use crate::process_state::dry_runs::policy_fingerprint;
use crate::visibility::caller::Caller;

/// Maximum number of rows that are read: one for each day, agent and caller.
const MAX_ROWS: usize = 50_000;
/// Maximum number of agents and callers that a result names.
const MAX_NAMED: usize = 100;

/// Returns the changes that a policy of the newest set would have made since it got its current text.
pub async fn load_policy_dry_run(
    context: &AppContext,
    caller: &Caller,
    policy: &str,
) -> Result<DryRun> {
    caller.require_permission(Permission::SeeAll)?;
    let set = load_newest_policy_set(
        &context.policy_sets.compiled,
        &context.store,
        &context.rules(),
    )
    .await?;
    let selected = set.policies().iter().find(|one| one.id == policy);
    let selected = selected
        .ok_or_else(|| AppError::not_found("The newest set has no policy with this identifier."))?;
    let text_hash = policy_fingerprint(&selected.text);
    let limit = MAX_ROWS as u64 + 1;
    let mut rows =
        dry_run_changes_by_policy(&context.store, &selected.id, &text_hash, limit).await?;
    let truncated = rows.len() > MAX_ROWS;
    rows.truncate(MAX_ROWS);
    Ok(DryRun {
        policy: selected.id.clone(),
        running: selected.mode == PolicyMode::DryRun,
        answers: rows.iter().map(dry_run_change_count).sum(),
        days: daily_dry_run_counts(&rows),
        resources: top_dry_run_counts(&rows, |row| row.resource.clone()),
        callers: top_dry_run_counts(&rows, |row| match row.caller.is_empty() {
            true => "anonymous".to_owned(),
            false => row.caller.clone(),
        }),
        truncated,
    })
}

fn dry_run_change_count(row: &dry_run_change::Model) -> u64 {
    u64::try_from(row.count).unwrap_or(0)
}

/// Sums the counts of each day, newest first.
fn daily_dry_run_counts(rows: &[dry_run_change::Model]) -> Vec<DryRunDay> {
    let mut days: BTreeMap<i32, Vec<&dry_run_change::Model>> = BTreeMap::new();
    for row in rows {
        days.entry(row.day).or_default().push(row);
    }
    let to_day = |(day, rows): (i32, Vec<&dry_run_change::Model>)| {
        let rows_allowing = |allows: bool| rows.iter().filter(move |row| row.allows == allows);
        let midnight = Timestamp(i64::from(day) * DAY).to_rfc3339();
        DryRunDay {
            day: midnight.chars().take(10).collect(),
            denied: rows_allowing(false)
                .map(|row| dry_run_change_count(row))
                .sum(),
            allowed: rows_allowing(true)
                .map(|row| dry_run_change_count(row))
                .sum(),
            resources: count_distinct(rows.iter().map(|row| row.resource.as_str())),
            callers: count_distinct(rows.iter().map(|row| row.caller.as_str())),
        }
    };
    days.into_iter().rev().map(to_day).collect()
}

fn count_distinct<'a>(names: impl Iterator<Item = &'a str>) -> u64 {
    names.collect::<BTreeSet<_>>().len() as u64
}

/// Returns the names with the most answers, in descending order.
fn top_dry_run_counts(
    rows: &[dry_run_change::Model],
    name: impl Fn(&dry_run_change::Model) -> String,
) -> Vec<DryRunCount> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for row in rows {
        *counts.entry(name(row)).or_default() += dry_run_change_count(row);
    }
    let counts = counts.into_iter();
    let mut counts: Vec<DryRunCount> = counts
        .map(|(name, answers)| DryRunCount { name, answers })
        .collect();
    counts.sort_by_key(|count| std::cmp::Reverse(count.answers));
    counts.truncate(MAX_NAMED);
    counts
}
