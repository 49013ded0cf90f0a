//! The rate of all planned visits, and when the next one is due.

use sea_orm::sea_query::{Expr, Query};
use sea_orm::{ConnectionTrait, DbBackend, FromQueryResult, QueryTrait as _, Statement};

use super::visit_leases::{VisitCause, select_earliest_visit_time};
use super::{Executor, StoreError};

/// The rate of all planned visits.
#[derive(Debug, Clone, Default)]
pub struct PlannedVisitRates {
    /// Visits per second.
    pub visits_per_second: f64,
    /// Future minutes since 1970, each with the number of visits due in it.
    pub visits_by_minute: Vec<(i64, i64)>,
}

pub async fn planned_visit_rates(
    db: &impl Executor,
    now: i64,
) -> Result<PlannedVisitRates, StoreError> {
    #[derive(FromQueryResult)]
    struct SteadyVisitRateRow {
        steady: Option<f64>,
    }
    #[derive(FromQueryResult)]
    struct MinuteVisitsRow {
        minute: i64,
        visits: i64,
    }
    let backend = db.connection().get_database_backend();
    let statement = |text: &str| Statement::from_string(backend, text);
    // PostgreSQL divides as `numeric`, which no float is read from.
    let million = if backend == DbBackend::Postgres {
        "1000000::float8"
    } else {
        "1000000.0"
    };
    let rate = SteadyVisitRateRow::find_by_statement(statement(&format!(
        "SELECT SUM({million} / visit_interval_us) AS steady FROM domains \
         WHERE deleted_at IS NULL AND visit_due_at IS NOT NULL AND visit_interval_us > 0"
    )))
    .one(db.connection())
    .await?;
    let minutes = MinuteVisitsRow::find_by_statement(statement(&format!(
        "SELECT visit_due_at / 60000000 AS minute, COUNT(*) AS visits FROM domains \
         WHERE deleted_at IS NULL AND visit_due_at >= {now} GROUP BY visit_due_at / 60000000"
    )))
    .all(db.connection())
    .await?;
    Ok(PlannedVisitRates {
        visits_per_second: rate.and_then(|row| row.steady).unwrap_or(0.0),
        visits_by_minute: minutes
            .into_iter()
            .map(|row| (row.minute, row.visits))
            .collect(),
    })
}

/// The earliest time at which an unleased visit is due. It is one statement, because a crawler runs it before every
/// wait.
pub async fn next_visit_due(db: &impl Executor, now: i64) -> Result<Option<i64>, StoreError> {
    let earliest_due = |cause| {
        let oldest = select_earliest_visit_time(now, cause).into_query();
        Expr::SubQuery(None, Box::new(oldest.into()))
    };
    let both = Query::select()
        .expr_as(earliest_due(VisitCause::Requested), "requested")
        .expr_as(earliest_due(VisitCause::Planned), "planned")
        .take();
    let Some(row) = db.connection().query_one(&both).await? else {
        return Ok(None);
    };
    let due = |name: &str| row.try_get::<Option<i64>>("", name);
    let (requested, planned) = (due("requested")?, due("planned")?);
    Ok(requested.into_iter().chain(planned).min())
}
