//! Which visits are due, who makes them, and what came of them.

use sea_orm::{
    ActiveValue::{NotSet, Set},
    ColumnTrait, ConnectionTrait, DbBackend, EntityTrait, FromQueryResult, IntoActiveModel,
    QueryFilter, QueryOrder, QuerySelect, Statement,
    sea_query::{Condition, LockBehavior, LockType, OnConflict},
};

use super::entity::{attempt, domain, source};
use super::{Handle, Store, StoreError, Write};

/// Attempts kept for one source; older ones go.
pub const ATTEMPTS_PER_SOURCE: i64 = 20;

impl Store {
    /// Leases up to `limit` due domains until `leased_until`, oldest first. No two callers ever get the
    /// same one while its lease lasts, in one process or in many.
    ///
    /// # Errors
    /// Where the database fails.
    pub async fn visits_lease(
        &self,
        now: i64,
        leased_until: i64,
        lease: i64,
        limit: u64,
    ) -> Result<Vec<domain::Model>, StoreError> {
        let write = self.write().await?;
        let mut query = domain::Entity::find()
            .filter(due(now))
            .order_by_asc(domain::Column::VisitDueAt)
            .limit(limit);
        if self.is_postgres() {
            query = query.lock_with_behavior(LockType::Update, LockBehavior::SkipLocked);
        }
        let mut rows = query.all(write.connection()).await?;
        if rows.is_empty() {
            return Ok(rows);
        }
        domain::Entity::update_many()
            .set(domain::ActiveModel {
                lease: Set(Some(lease)),
                leased_until: Set(Some(leased_until)),
                ..Default::default()
            })
            .filter(domain::Column::Id.is_in(rows.iter().map(|row| row.id)))
            .exec(write.connection())
            .await?;
        write.commit().await?;
        for row in &mut rows {
            row.lease = Some(lease);
            row.leased_until = Some(leased_until);
        }
        Ok(rows)
    }

    /// Visits a domain no more until something makes its visit due again.
    ///
    /// # Errors
    /// Where the database fails.
    pub async fn visits_end(&self, id: i64) -> Result<(), StoreError> {
        let write = self.write().await?;
        domain::Entity::update_many()
            .set(domain::ActiveModel {
                visit_due_at: Set(None),
                lease: Set(None),
                leased_until: Set(None),
                ..Default::default()
            })
            .filter(domain::Column::Id.eq(id))
            .exec(write.connection())
            .await?;
        write.commit().await
    }

    /// Gives leased domains back, unvisited; leases that are no longer held are left alone. `rest` is the
    /// moment until which they are not asked again, where they are to rest.
    ///
    /// # Errors
    /// Where the database fails.
    pub async fn visits_give_back(
        &self,
        held: &[(i64, i64)],
        rest: Option<i64>,
    ) -> Result<(), StoreError> {
        if held.is_empty() {
            return Ok(());
        }
        let mut any = Condition::any();
        for (id, lease) in held {
            any = any.add(
                Condition::all()
                    .add(domain::Column::Id.eq(*id))
                    .add(domain::Column::Lease.eq(*lease)),
            );
        }
        let write = self.write().await?;
        let mut change = domain::ActiveModel {
            lease: Set(None),
            leased_until: Set(None),
            ..Default::default()
        };
        if let Some(rest) = rest {
            change.visit_due_at = Set(Some(rest));
            change.not_before = Set(rest);
        }
        domain::Entity::update_many()
            .set(change)
            .filter(any)
            .exec(write.connection())
            .await?;
        write.commit().await
    }

    /// Forgets every lease. For a database that belongs to one process, when that process starts: whoever
    /// held a lease was killed and will not come back for it. Answers how many there were.
    ///
    /// # Errors
    /// Where the database fails.
    pub async fn visits_forget_leases(&self) -> Result<u64, StoreError> {
        let write = self.write().await?;
        let forgotten = domain::Entity::update_many()
            .set(domain::ActiveModel {
                lease: Set(None),
                leased_until: Set(None),
                ..Default::default()
            })
            .filter(domain::Column::Lease.is_not_null())
            .exec(write.connection())
            .await?;
        write.commit().await?;
        Ok(forgotten.rows_affected)
    }
}

fn due(now: i64) -> Condition {
    Condition::all()
        .add(domain::Column::VisitDueAt.lte(now))
        .add(domain::Column::DeletedAt.is_null())
        .add(
            Condition::any()
                .add(domain::Column::LeasedUntil.is_null())
                .add(domain::Column::LeasedUntil.lt(now)),
        )
}

/// The earliest moment at which an unleased visit is due.
///
/// # Errors
/// Where the database fails.
pub async fn visits_next_due(on: &impl Handle, now: i64) -> Result<Option<i64>, StoreError> {
    #[derive(FromQueryResult)]
    struct Earliest {
        due_at: Option<i64>,
    }
    let row = domain::Entity::find()
        .select_only()
        .column_as(domain::Column::VisitDueAt.min(), "due_at")
        .filter(domain::Column::DeletedAt.is_null())
        .filter(
            Condition::any()
                .add(domain::Column::LeasedUntil.is_null())
                .add(domain::Column::LeasedUntil.lt(now)),
        )
        .into_model::<Earliest>()
        .one(on.connection())
        .await?;
    Ok(row.and_then(|row| row.due_at))
}

impl Write {
    /// Writes what became of these sources, all columns that a look can change.
    ///
    /// # Errors
    /// Where the database fails.
    pub async fn sources_update(&self, rows: Vec<source::Model>) -> Result<(), StoreError> {
        use source::Column as C;
        if rows.is_empty() {
            return Ok(());
        }
        let conflict = OnConflict::column(C::Id)
            .update_columns([
                C::AgentId,
                C::ValidatorUrl,
                C::Etag,
                C::LastModified,
                C::NextDueAt,
                C::IntervalUs,
                C::FullWanted,
                C::LastSuccessAt,
                C::LastFullAt,
                C::FailingAs,
                C::FailingSince,
                C::Failures,
                C::CauseSince,
                C::CauseLatest,
                C::CauseLooks,
                C::Liveness,
                C::LivenessReason,
                C::EndedAt,
            ])
            .to_owned();
        self.insert_rows(
            rows.into_iter().map(IntoActiveModel::into_active_model),
            Some(conflict),
        )
        .await
    }

    /// Writes these domains' next visit and ends their leases.
    ///
    /// # Errors
    /// Where the database fails.
    pub async fn domains_visited(&self, rows: Vec<domain::Model>) -> Result<(), StoreError> {
        use domain::Column as C;
        if rows.is_empty() {
            return Ok(());
        }
        let conflict = OnConflict::column(C::Id)
            .update_columns([
                C::VisitDueAt,
                C::NotBefore,
                C::WantedAt,
                C::Lease,
                C::LeasedUntil,
            ])
            .to_owned();
        self.insert_rows(
            rows.into_iter().map(IntoActiveModel::into_active_model),
            Some(conflict),
        )
        .await
    }

    /// Records attempts, and drops the oldest beyond [`ATTEMPTS_PER_SOURCE`] of the sources named.
    ///
    /// # Errors
    /// Where the database fails.
    pub async fn attempts_insert(&self, rows: Vec<attempt::Model>) -> Result<(), StoreError> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut sources: Vec<i64> = rows.iter().map(|row| row.source_id).collect();
        sources.sort_unstable();
        sources.dedup();
        let rows = rows.into_iter().map(|row| {
            let mut active = row.into_active_model();
            active.id = NotSet;
            active
        });
        self.insert_rows(rows, None).await?;
        self.attempts_trim(&sources).await
    }

    async fn attempts_trim(&self, sources: &[i64]) -> Result<(), StoreError> {
        let backend = self.connection().get_database_backend();
        let list = sources
            .iter()
            .map(i64::to_string)
            .collect::<Vec<_>>()
            .join(",");
        // Only sources that are over the bound are ranked, so that the common case reads one index.
        let statement = format!(
            "DELETE FROM attempts WHERE id IN (SELECT id FROM (SELECT id, ROW_NUMBER() OVER \
             (PARTITION BY source_id ORDER BY id DESC) AS place FROM attempts WHERE source_id IN \
             (SELECT source_id FROM attempts WHERE source_id IN ({list}) GROUP BY source_id \
             HAVING COUNT(*) > {ATTEMPTS_PER_SOURCE})) AS ranked WHERE place > {ATTEMPTS_PER_SOURCE})"
        );
        self.connection()
            .execute_raw(Statement::from_string(backend, statement))
            .await?;
        Ok(())
    }

    /// Which of these leases still hold: domain key, and whether the lease is the one given.
    ///
    /// # Errors
    /// Where the database fails.
    pub async fn leased_domains(&self, ids: &[i64]) -> Result<Vec<domain::Model>, StoreError> {
        let mut query = domain::Entity::find()
            .filter(domain::Column::Id.is_in(ids.iter().copied()))
            .filter(domain::Column::DeletedAt.is_null())
            .filter(domain::Column::Lease.is_not_null())
            .order_by_asc(domain::Column::Id);
        if self.connection().get_database_backend() == DbBackend::Postgres {
            query = query.lock(LockType::Update);
        }
        Ok(query.all(self.connection()).await?)
    }
}
