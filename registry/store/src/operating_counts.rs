//! Counts of what waits: due visits, open reviews, holds, and approvals that end. Each is one statement, which counts
//! at most as many rows of each kind as its caller permits.

use a2a_registry_domain::hook::{DeliveryState, HookState};
use a2a_registry_domain::lifecycle::Lifecycle;
use a2a_registry_domain::review::ReviewState;
use sea_orm::{ConnectionTrait, FromQueryResult, Statement};

use super::{Executor, StoreError};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromQueryResult)]
pub struct DueVisits {
    pub due: i64,
    /// How many of them were due by an earlier time.
    pub overdue: i64,
    /// The earliest due time.
    pub oldest: Option<i64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromQueryResult)]
pub struct OpenReviews {
    pub open: i64,
    /// When the oldest one was opened.
    pub oldest: Option<i64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromQueryResult)]
pub struct EndingApprovals {
    /// Approvals that end by the sooner time.
    pub sooner: i64,
    /// Approvals that end by the later time, those that end sooner included.
    pub later: i64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromQueryResult)]
pub struct HookCounts {
    /// Active hooks whose last deliveries have failed.
    pub failing: i64,
    /// Deliveries that wait.
    pub waiting: i64,
    /// Deliveries that were given up.
    pub dead: i64,
}

/// Counts the visits that are due and not under way, requested and planned ones up to `limit` each.
pub async fn count_due_visits(
    db: &impl Executor,
    now: i64,
    overdue_by: i64,
    limit: u64,
) -> Result<DueVisits, StoreError> {
    // Each half has the condition of its partial index.
    let half = |cause: &str| {
        format!(
            "SELECT * FROM (SELECT visit_due_at FROM domains \
             WHERE deleted_at IS NULL AND visit_interval_us {cause} AND visit_due_at <= {now} \
             AND (leased_until IS NULL OR leased_until < {now}) \
             ORDER BY visit_due_at LIMIT {limit}) AS counted"
        )
    };
    let (requested, planned) = (half("IS NULL"), half("IS NOT NULL"));
    let text = format!(
        "SELECT COUNT(*) AS due, COUNT(CASE WHEN visit_due_at <= {overdue_by} THEN 1 END) AS overdue, \
         MIN(visit_due_at) AS oldest FROM ({requested} UNION ALL {planned}) AS visits"
    );
    single_row(db, text).await
}

/// Counts the open reviews, up to `limit`.
pub async fn count_open_reviews(db: &impl Executor, limit: u64) -> Result<OpenReviews, StoreError> {
    let state = ReviewState::Open.as_str();
    // Identifiers increase with time, so the oldest review is among the counted ones.
    let text = format!(
        "SELECT COUNT(*) AS open, MIN(created_at) AS oldest FROM \
         (SELECT created_at FROM reviews WHERE state = '{state}' ORDER BY id LIMIT {limit}) AS counted"
    );
    single_row(db, text).await
}

/// The number of holds of each kind on agents that are not retired, up to `limit` of all kinds together.
pub async fn count_holds_by_kind(
    db: &impl Executor,
    limit: u64,
) -> Result<Vec<(String, i64)>, StoreError> {
    #[derive(FromQueryResult)]
    struct HoldCountRow {
        hold: String,
        agents: i64,
    }
    let text = format!(
        "SELECT hold, COUNT(*) AS agents FROM (SELECT holds.hold FROM holds \
         INNER JOIN agents ON agents.id = holds.agent_id \
         WHERE agents.retired_at IS NULL LIMIT {limit}) AS counted GROUP BY hold"
    );
    let rows = HoldCountRow::find_by_statement(statement(db, text))
        .all(db.connection())
        .await?;
    Ok(rows.into_iter().map(|row| (row.hold, row.agents)).collect())
}

/// The number of agents with a checked endpoint by its last result, up to `limit` of all results together.
pub async fn count_agents_by_endpoint(
    db: &impl Executor,
    limit: u64,
) -> Result<Vec<(String, i64)>, StoreError> {
    #[derive(FromQueryResult)]
    struct EndpointCountRow {
        endpoint: String,
        agents: i64,
    }
    let text = format!(
        "SELECT endpoint, COUNT(*) AS agents FROM (SELECT endpoint FROM agents \
         WHERE endpoint_check_id IS NOT NULL LIMIT {limit}) AS counted GROUP BY endpoint"
    );
    let rows = EndpointCountRow::find_by_statement(statement(db, text))
        .all(db.connection())
        .await?;
    let counts = rows.into_iter().map(|row| (row.endpoint, row.agents));
    Ok(counts.collect())
}

/// Counts the hooks that fail, and the deliveries that wait and that were given up, up to `limit` each.
pub async fn count_hooks(db: &impl Executor, limit: u64) -> Result<HookCounts, StoreError> {
    // By hook, for which there is an index.
    let deliveries = |state: DeliveryState| {
        format!(
            "SELECT COUNT(*) FROM (SELECT hook_deliveries.id FROM hooks \
             INNER JOIN hook_deliveries ON hook_deliveries.hook_id = hooks.id \
             AND hook_deliveries.state = '{}' LIMIT {limit}) AS counted",
            state.as_str()
        )
    };
    let (waiting, dead) = (
        deliveries(DeliveryState::Waiting),
        deliveries(DeliveryState::Dead),
    );
    let active = HookState::Active.as_str();
    let text = format!(
        "SELECT COUNT(*) AS failing, ({waiting}) AS waiting, ({dead}) AS dead FROM hooks \
         WHERE state = '{active}' AND failing_since IS NOT NULL"
    );
    single_row(db, text).await
}

/// Counts the approvals of served agents whose term of this length ends after `now` and by these times, up to `limit`
/// announced and as many others.
pub async fn count_ending_approvals(
    db: &impl Executor,
    term: i64,
    now: i64,
    [sooner, later]: [i64; 2],
    limit: u64,
) -> Result<EndingApprovals, StoreError> {
    let [approved, deprecated] =
        [Lifecycle::Approved, Lifecycle::Deprecated].map(Lifecycle::as_str);
    let served = format!(
        "retired_at IS NULL AND approved_version IS NOT NULL AND lifecycle IN ('{approved}', '{deprecated}')"
    );
    let (begun_after, begun_by) = (now.saturating_sub(term), later.saturating_sub(term));
    let text = format!(
        "SELECT COUNT(CASE WHEN ends_at <= {sooner} THEN 1 END) AS sooner, COUNT(*) AS later FROM (\
         SELECT * FROM (SELECT recertify_at AS ends_at FROM agents \
         WHERE {served} AND recertify_at > {now} AND recertify_at <= {later} \
         ORDER BY recertify_at LIMIT {limit}) AS announced \
         UNION ALL \
         SELECT * FROM (SELECT certified_at + {term} AS ends_at FROM agents \
         WHERE {served} AND recertify_at IS NULL AND certified_at > {begun_after} AND certified_at <= {begun_by} \
         ORDER BY certified_at LIMIT {limit}) AS unannounced) AS approvals"
    );
    single_row(db, text).await
}

fn statement(db: &impl Executor, text: String) -> Statement {
    Statement::from_string(db.connection().get_database_backend(), text)
}

/// The row of a statement that always has one.
async fn single_row<R: FromQueryResult>(db: &impl Executor, text: String) -> Result<R, StoreError> {
    let row = R::find_by_statement(statement(db, text))
        .one(db.connection())
        .await?;
    row.ok_or_else(|| StoreError::other("a count has no row"))
}
