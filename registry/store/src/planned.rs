//! The rate of all planned visits, and when the next one is due.

use sea_orm::sea_query::{Expr, Query};
use sea_orm::{ConnectionTrait, DbBackend, FromQueryResult, QueryTrait as _, Statement};

use super::visit_leases::{VisitCause, oldest};
use super::{Handle, StoreError};

/// The rate of all planned visits.
#[derive(Debug, Clone, Default)]
pub struct PlannedVisits {
    /// Visits per second.
    pub steady: f64,
    /// Future minutes since 1970, each with the number of visits due in it.
    pub minutes: Vec<(i64, i64)>,
}

pub async fn visits_planned(on: &impl Handle, now: i64) -> Result<PlannedVisits, StoreError> {
    #[derive(FromQueryResult)]
    struct Steady {
        steady: Option<f64>,
    }
    #[derive(FromQueryResult)]
    struct Minute {
        minute: i64,
        visits: i64,
    }
    let backend = on.connection().get_database_backend();
    let query = |text: &str| Statement::from_string(backend, text);
    // PostgreSQL divides as `numeric`, which no float is read from.
    let million = if backend == DbBackend::Postgres {
        "1000000::float8"
    } else {
        "1000000.0"
    };
    let steady = Steady::find_by_statement(query(&format!(
        "SELECT SUM({million} / visit_interval_us) AS steady FROM domains \
         WHERE deleted_at IS NULL AND visit_due_at IS NOT NULL AND visit_interval_us > 0"
    )))
    .one(on.connection())
    .await?;
    let minutes = Minute::find_by_statement(query(&format!(
        "SELECT visit_due_at / 60000000 AS minute, COUNT(*) AS visits FROM domains \
         WHERE deleted_at IS NULL AND visit_due_at >= {now} GROUP BY visit_due_at / 60000000"
    )))
    .all(on.connection())
    .await?;
    Ok(PlannedVisits {
        steady: steady.and_then(|row| row.steady).unwrap_or(0.0),
        minutes: minutes
            .into_iter()
            .map(|row| (row.minute, row.visits))
            .collect(),
    })
}

/// The earliest time at which an unleased visit is due. It is one statement, since a crawler asks before every wait.
pub async fn visits_next_due(on: &impl Handle, now: i64) -> Result<Option<i64>, StoreError> {
    let first = |cause| {
        let oldest = oldest(now, cause).into_query();
        Expr::SubQuery(None, Box::new(oldest.into()))
    };
    let both = Query::select()
        .expr_as(first(VisitCause::Requested), "requested")
        .expr_as(first(VisitCause::Planned), "planned")
        .take();
    let Some(row) = on.connection().query_one(&both).await? else {
        return Ok(None);
    };
    let due = |name: &str| row.try_get::<Option<i64>>("", name);
    let (requested, planned) = (due("requested")?, due("planned")?);
    Ok(requested.into_iter().chain(planned).min())
}
