//! What a policy on a dry run would have changed.

use std::collections::{BTreeMap, BTreeSet};

use a2a_registry_api::{DryRun, DryRunCount, DryRunDay};
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::{DAY, Timestamp};
use a2a_registry_policy::Mode;
use a2a_registry_store::dry_runs::dry_run_changes_of;
use a2a_registry_store::entity::dry_run_change;

use crate::context::Context;
use crate::error::{AppError, Result};
use crate::memory::dry_runs::fingerprint;
use crate::policy_sets::newest_set;
use crate::visibility::caller::Caller;

/// Rows that are read: one for each day, agent and caller.
const MAX_ROWS: usize = 50_000;
/// Agents and callers that are named.
const NAMED: usize = 100;

/// What a policy of the newest set would have changed since it got this text.
pub async fn policy_dry_run(context: &Context, caller: &Caller, policy: &str) -> Result<DryRun> {
    caller.demand(Permission::SeeAll)?;
    let set = newest_set(&context.policies.compiled, &context.store, &context.rules).await?;
    let found = set.policies().iter().find(|one| one.id == policy);
    let found = found.ok_or_else(|| {
        AppError::not_found("There is no policy with this identifier in the newest set.")
    })?;
    let hash = fingerprint(&found.text);
    let limit = MAX_ROWS as u64 + 1;
    let mut rows = dry_run_changes_of(&context.store, &found.id, &hash, limit).await?;
    let truncated = rows.len() > MAX_ROWS;
    rows.truncate(MAX_ROWS);
    Ok(DryRun {
        policy: found.id.clone(),
        running: found.mode == Mode::DryRun,
        answers: rows.iter().map(count).sum(),
        days: days(&rows),
        resources: most(&rows, |row| row.resource.clone()),
        callers: most(&rows, |row| match row.caller.is_empty() {
            true => "anonymous".to_owned(),
            false => row.caller.clone(),
        }),
        truncated,
    })
}

fn count(row: &dry_run_change::Model) -> u64 {
    u64::try_from(row.count).unwrap_or(0)
}

/// The counts of each day, newest first.
fn days(rows: &[dry_run_change::Model]) -> Vec<DryRunDay> {
    let mut days: BTreeMap<i32, Vec<&dry_run_change::Model>> = BTreeMap::new();
    for row in rows {
        days.entry(row.day).or_default().push(row);
    }
    let told = |(day, rows): (i32, Vec<&dry_run_change::Model>)| {
        let of = |allows: bool| rows.iter().filter(move |row| row.allows == allows);
        let midnight = Timestamp(i64::from(day) * DAY).to_rfc3339();
        DryRunDay {
            day: midnight.chars().take(10).collect(),
            denied: of(false).map(|row| count(row)).sum(),
            allowed: of(true).map(|row| count(row)).sum(),
            resources: distinct(rows.iter().map(|row| row.resource.as_str())),
            callers: distinct(rows.iter().map(|row| row.caller.as_str())),
        }
    };
    days.into_iter().rev().map(told).collect()
}

fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> u64 {
    names.collect::<BTreeSet<_>>().len() as u64
}

/// The names with most answers, in descending order.
fn most(
    rows: &[dry_run_change::Model],
    name: impl Fn(&dry_run_change::Model) -> String,
) -> Vec<DryRunCount> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for row in rows {
        *counts.entry(name(row)).or_default() += count(row);
    }
    let counts = counts.into_iter();
    let mut counts: Vec<DryRunCount> = counts
        .map(|(name, answers)| DryRunCount { name, answers })
        .collect();
    counts.sort_by_key(|count| std::cmp::Reverse(count.answers));
    counts.truncate(NAMED);
    counts
}
