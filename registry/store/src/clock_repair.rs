//! Repairs times that a fast clock has set in the future: until they are reached, no visit is made, no proof lapses
//! and no lease ends.

use a2a_crawler::schedule::{JITTER, MAX_INTERVAL, MAX_RETRY_AFTER, ON_TIME_SLACK};
use a2a_registry_domain::ownership::{CHALLENGE_VALIDITY, CHECK_INTERVAL};
use a2a_registry_domain::timestamp::{HOUR, MINUTE};
use sea_orm::{ConnectionTrait, DbBackend, Statement};

use super::{Executor, Store, StoreError};

/// The tolerated difference between the clocks of replicas, including the delay since the clock was read.
const MAX_CLOCK_SKEW: i64 = 5 * MINUTE;
const MAX_LEASE: i64 = HOUR;

struct FutureTimeRepair {
    table: &'static str,
    changes: String,
    broken: String,
}

impl Store {
    /// Repairs all such times: planned times move into their own interval, so that they stay spread; past times become
    /// the present. Returns the number of repaired rows.
    pub async fn repair_future_times(&self, now: i64) -> Result<u64, StoreError> {
        let mut repaired = 0;
        for repair in future_time_repairs(now) {
            // Usually there is nothing to repair: these reads take no lock.
            let FutureTimeRepair {
                table,
                changes,
                broken,
            } = repair;
            let any = format!("SELECT 1 AS found FROM {table} WHERE {broken} LIMIT 1");
            let statement = |backend: DbBackend, text: &str| Statement::from_string(backend, text);
            let read = self.connection();
            let found = read
                .query_one_raw(statement(read.get_database_backend(), &any))
                .await?;
            if found.is_none() {
                continue;
            }
            let write = self.begin_write().await?;
            write.pending_changes.mark_everything();
            let on = write.connection();
            let update = format!("UPDATE {table} SET {changes} WHERE {broken}");
            let changed = on
                .execute_raw(statement(on.get_database_backend(), &update))
                .await?;
            repaired += changed.rows_affected();
            write.commit().await?;
        }
        Ok(repaired)
    }
}

/// The repairs of each table. Sources come before domains, so that a visit finds its sources due.
fn future_time_repairs(now: i64) -> [FutureTimeRepair; 7] {
    let clock = ClockBounds::new(now);
    let (changes, broken) = clock.past_time_expressions(&["proved_at", "held_at", "absent_since"]);
    let proofs = FutureTimeRepair::new("proofs", "ended_at IS NULL", &changes, &broken);
    let (changes, broken) = clock.past_time_expressions(&["at"]);
    let checks = FutureTimeRepair::new("proof_checks", "TRUE", &changes, &broken);
    let (change, late) = end_time_expressions("expires_at", clock.present + CHALLENGE_VALIDITY);
    let challenges = FutureTimeRepair::new("challenges", "nonce <> ''", &[change], &[late]);
    let (changes, broken) = clock.past_time_expressions(&["gone_since", "last_seen_at"]);
    let agents = FutureTimeRepair::new("agents", "retired_at IS NULL", &changes, &broken);
    let (changes, broken) = clock.past_time_expressions(&["claims_valid_at"]);
    let accounts = FutureTimeRepair::new("accounts", "TRUE", &changes, &broken);
    [
        clock.source_repair(),
        clock.domain_repair(),
        proofs,
        checks,
        challenges,
        agents,
        accounts,
    ]
}

/// The present by this process's clock, with the limits that follow from it.
#[derive(Clone, Copy)]
struct ClockBounds {
    now: i64,
    /// The latest plausible present: replicas' clocks differ, and another one may have written since this was read.
    present: i64,
    /// The latest time to which an origin's headers or failures may delay a visit.
    put_off: i64,
}

impl ClockBounds {
    fn new(now: i64) -> Self {
        Self {
            now,
            present: now + MAX_CLOCK_SKEW,
            put_off: now + to_microseconds(MAX_RETRY_AFTER + ON_TIME_SLACK),
        }
    }

    /// Changes and conditions for columns that hold past times.
    fn past_time_expressions(self, columns: &[&str]) -> (Vec<String>, Vec<String>) {
        let Self { now, present, .. } = self;
        columns
            .iter()
            .map(|column| {
                let broken = format!("{column} > {present}");
                (
                    format!("{column} = CASE WHEN {broken} THEN {now} ELSE {column} END"),
                    broken,
                )
            })
            .unzip()
    }

    fn source_repair(self) -> FutureTimeRepair {
        let Self { now, put_off, .. } = self;
        let interval = to_microseconds(MAX_INTERVAL);
        let planned = now + to_microseconds(MAX_INTERVAL * (1.0 + JITTER) + ON_TIME_SLACK);
        let (mut changes, mut broken) = self.past_time_expressions(&[
            "last_success_at",
            "last_full_at",
            "failing_since",
            "cause_since",
            "cause_latest",
            "unlisted_since",
        ]);
        for column in ["next_due_at", "planned_at"] {
            // A failing source and a missing catalog may be delayed for a week; all others are fetched every day.
            let late = format!(
                "({column} > {put_off} OR ({column} > {planned} AND failures = 0 AND liveness <> 'absent'))"
            );
            changes.push(format!(
                "{column} = CASE WHEN {late} THEN {now} + ({column} - {now}) % {interval} ELSE {column} END"
            ));
            broken.push(late);
        }
        FutureTimeRepair::new("sources", "ended_at IS NULL", &changes, &broken)
    }

    fn domain_repair(self) -> FutureTimeRepair {
        let Self {
            now,
            present,
            put_off,
        } = self;
        // A planned visit is never further away than its interval was when it was planned.
        let visit_late =
            format!("(visit_interval_us > 0 AND visit_due_at > {present} + visit_interval_us)");
        let awaited_late = format!("(visit_interval_us IS NULL AND visit_due_at > {put_off})");
        let rests = format!(
            "(not_before > {put_off} OR (not_before > {present} + visit_interval_us AND visit_interval_us > 0))"
        );
        let (lease_change, lease_broken) =
            end_time_expressions("leased_until", present + MAX_LEASE);
        let checked = now + CHECK_INTERVAL + CHECK_INTERVAL / 4;
        let (check_change, check_broken) = end_time_expressions("check_due_at", checked);
        let (mut changes, mut broken) = self.past_time_expressions(&["lapsed_at", "wanted_at"]);
        changes.extend([
        format!(
            "visit_due_at = CASE WHEN {visit_late} THEN {now} + (visit_due_at - {now}) % visit_interval_us \
             WHEN {awaited_late} THEN {now} ELSE visit_due_at END"
        ),
        format!("not_before = CASE WHEN {rests} THEN {now} ELSE not_before END"),
        lease_change,
        check_change,
    ]);
        broken.extend([visit_late, awaited_late, rests, lease_broken, check_broken]);
        FutureTimeRepair::new("domains", "deleted_at IS NULL", &changes, &broken)
    }
}

fn to_microseconds(duration: time::Duration) -> i64 {
    i64::try_from(duration.whole_microseconds()).unwrap_or(i64::MAX)
}

/// The change and the condition for a column that holds an end time.
fn end_time_expressions(column: &str, most: i64) -> (String, String) {
    let broken = format!("{column} > {most}");
    (
        format!("{column} = CASE WHEN {broken} THEN {most} ELSE {column} END"),
        broken,
    )
}

impl FutureTimeRepair {
    fn new(table: &'static str, live: &str, changes: &[String], broken: &[String]) -> Self {
        Self {
            table,
            changes: changes.join(", "),
            broken: format!("{live} AND ({})", broken.join(" OR ")),
        }
    }
}
