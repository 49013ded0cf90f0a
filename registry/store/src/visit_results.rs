//! The results of visits: sources, attempts and daily totals.

use sea_orm::sea_query::{Expr, ExprTrait as _, LockType, OnConflict, Query};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbBackend, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder,
    QuerySelect,
};

use super::bulk_rows::pad_keys;
use super::entity::{domain, fetch_attempt, source, source_day};
use super::{Executor, StoreError, WriteTransaction};

/// Maximum number of stored attempts of one source; each further one replaces the oldest.
pub const MAX_ATTEMPTS_PER_SOURCE: i64 = 20;
/// Maximum number of days for which a source's totals are stored.
pub const MAX_DAYS_PER_SOURCE: i32 = 90;
/// The daily totals of sources, the newest day first.
pub async fn daily_totals_by_source(
    db: &impl Executor,
    source_ids: &[i64],
) -> Result<Vec<source_day::Model>, StoreError> {
    if source_ids.is_empty() {
        return Ok(Vec::new());
    }
    Ok(source_day::Entity::find()
        .filter(source_day::Column::SourceId.is_in(source_ids.iter().copied()))
        .order_by_desc(source_day::Column::Day)
        .all(db.connection())
        .await?)
}

impl WriteTransaction {
    /// Adds these fetches to the totals of their days.
    pub async fn add_daily_source_totals(
        &self,
        rows: Vec<source_day::Model>,
    ) -> Result<(), StoreError> {
        use source_day::Column as C;
        let add_to_stored = |column: C| {
            (
                column,
                Expr::col((source_day::Entity, column)).add(Expr::col(("excluded", column))),
            )
        };
        let conflict = OnConflict::columns([C::SourceId, C::Day])
            .values([add_to_stored(C::Looks), add_to_stored(C::Good)])
            .to_owned();
        self.insert_rows(
            rows.into_iter().map(IntoActiveModel::into_active_model),
            Some(conflict),
        )
        .await
    }

    /// Deletes the totals of these sources that are older than [`MAX_DAYS_PER_SOURCE`] today.
    pub async fn trim_daily_source_totals(
        &self,
        sources: &[i64],
        today: i32,
    ) -> Result<(), StoreError> {
        use source_day::Column as C;
        if sources.is_empty() {
            return Ok(());
        }
        source_day::Entity::delete_many()
            .filter(C::SourceId.is_in(pad_keys(sources)))
            .filter(C::Day.lte(today.saturating_sub(MAX_DAYS_PER_SOURCE)))
            .exec(self.connection())
            .await?;
        Ok(())
    }

    /// Deletes the totals of ended sources up to and including this day. For live sources the first fetch of a day
    /// does that.
    pub async fn delete_ended_source_totals(&self, day: i32) -> Result<(), StoreError> {
        let ended = Query::select()
            .column(source::Column::Id)
            .from(source::Entity)
            .and_where(source::Column::EndedAt.is_not_null())
            .take();
        source_day::Entity::delete_many()
            .filter(source_day::Column::Day.lte(day))
            .filter(source_day::Column::SourceId.in_subquery(ended))
            .exec(self.connection())
            .await?;
        Ok(())
    }

    /// Updates all columns of these sources that a fetch can change.
    pub async fn update_sources(&self, rows: Vec<source::Model>) -> Result<(), StoreError> {
        use source::Column as C;
        if rows.is_empty() {
            return Ok(());
        }
        self.pending_changes
            .mark_domains(rows.iter().map(|row| row.domain_id));
        let conflict = OnConflict::column(C::Id)
            .update_columns([
                C::Identifier,
                C::CatalogId,
                C::EntryDigest,
                C::UnlistedSince,
                C::UnlistedLooks,
                C::AgentId,
                C::ApproveAs,
                C::ValidatorUrl,
                C::Etag,
                C::LastModified,
                C::Vary,
                C::MaxAge,
                C::NextDueAt,
                C::PlannedAt,
                C::IntervalUs,
                C::FullWanted,
                C::Attempts,
                C::LastSuccessAt,
                C::LastFullAt,
                C::AnsweredFrom,
                C::FailingAs,
                C::FailingSince,
                C::Failures,
                C::CauseSince,
                C::CauseLatest,
                C::CauseLooks,
                C::Liveness,
                C::LivenessReason,
                C::EndedAt,
                C::AnsweredBy,
                C::LimitMet,
            ])
            .to_owned();
        self.insert_rows(
            rows.into_iter().map(IntoActiveModel::into_active_model),
            Some(conflict),
        )
        .await
    }

    /// Updates the next visit of these domains and ends their leases.
    pub async fn finish_visits(&self, rows: Vec<domain::Model>) -> Result<(), StoreError> {
        use domain::Column as C;
        if rows.is_empty() {
            return Ok(());
        }
        let conflict = OnConflict::column(C::Id)
            .update_columns([
                C::VisitDueAt,
                C::VisitIntervalUs,
                C::Network,
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

    /// Inserts attempts, each of which replaces the oldest one of its source.
    pub async fn upsert_fetch_attempts(
        &self,
        rows: Vec<fetch_attempt::Model>,
    ) -> Result<(), StoreError> {
        use fetch_attempt::Column as C;
        let conflict = OnConflict::columns([C::SourceId, C::Place])
            .update_columns([
                C::Number,
                C::At,
                C::Url,
                C::Outcome,
                C::Status,
                C::Address,
                C::Detail,
                C::Conditional,
                C::ElapsedMs,
            ])
            .to_owned();
        self.insert_rows(
            rows.into_iter().map(IntoActiveModel::into_active_model),
            Some(conflict),
        )
        .await
    }

    /// Locks the domains with these keys, so that the caller can check whether its leases are still held.
    pub async fn lock_leased_domains(&self, ids: &[i64]) -> Result<Vec<domain::Model>, StoreError> {
        let mut query = domain::Entity::find()
            .filter(domain::Column::Id.is_in(pad_keys(ids)))
            .filter(domain::Column::DeletedAt.is_null())
            .filter(domain::Column::Lease.is_not_null())
            .order_by_asc(domain::Column::Id);
        if self.connection().get_database_backend() == DbBackend::Postgres {
            query = query.lock(LockType::Update);
        }
        Ok(query.all(self.connection()).await?)
    }
}
