//! Daily counts of what policies on a dry run would have changed.

use sea_orm::sea_query::{Expr, ExprTrait, OnConflict};
use sea_orm::{
    ColumnTrait, EntityTrait, IntoActiveModel, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect,
};

use super::entity::dry_run_change;
use super::{Executor, StoreError, WriteTransaction};

/// The dry-run counts of a policy with this text, newest days first.
pub async fn dry_run_changes_by_policy(
    db: &impl Executor,
    policy: &str,
    fingerprint: &str,
    limit: u64,
) -> Result<Vec<dry_run_change::Model>, StoreError> {
    Ok(dry_run_change::Entity::find()
        .filter(dry_run_change::Column::Policy.eq(policy))
        .filter(dry_run_change::Column::Fingerprint.eq(fingerprint))
        .order_by_desc(dry_run_change::Column::Day)
        .order_by_desc(dry_run_change::Column::Count)
        .order_by_asc(dry_run_change::Column::Resource)
        .order_by_asc(dry_run_change::Column::Caller)
        .limit(limit)
        .all(db.connection())
        .await?)
}

impl WriteTransaction {
    /// Adds to the stored counts, unless `day` already has `max_rows` rows. Returns whether it did.
    pub async fn add_policy_dry_run_counts(
        &self,
        rows: &[dry_run_change::Model],
        day: i32,
        max_rows: u64,
    ) -> Result<bool, StoreError> {
        use dry_run_change::Column;
        let kept = dry_run_change::Entity::find().filter(Column::Day.eq(day));
        if kept.count(self.connection()).await? >= max_rows {
            return Ok(false);
        }
        let key = [
            Column::Policy,
            Column::Fingerprint,
            Column::Day,
            Column::Action,
            Column::Resource,
            Column::Caller,
        ];
        let added = Expr::col((dry_run_change::Entity, Column::Count))
            .add(Expr::col(("excluded", Column::Count)));
        let conflict = OnConflict::columns(key)
            .value(Column::Count, added)
            .to_owned();
        let rows = rows.iter().cloned();
        let rows = rows.map(IntoActiveModel::into_active_model);
        self.insert_rows(rows, Some(conflict)).await?;
        Ok(true)
    }

    pub async fn delete_old_dry_run_changes(&self, first_kept_day: i32) -> Result<(), StoreError> {
        let rows = dry_run_change::Entity::delete_many()
            .filter(dry_run_change::Column::Day.lt(first_kept_day));
        self.delete_rows(rows).await
    }
}
