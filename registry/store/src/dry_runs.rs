//! What policies on a dry run would have changed, counted by day.

use sea_orm::sea_query::{Expr, ExprTrait, OnConflict};
use sea_orm::{
    ColumnTrait, EntityTrait, IntoActiveModel, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect,
};

use super::entity::dry_run_change;
use super::{Handle, StoreError, Write};

/// What a policy with that text would have changed, newest days first.
pub async fn dry_run_changes_of(
    on: &impl Handle,
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
        .all(on.connection())
        .await?)
}

impl Write {
    /// Adds to the stored counts, unless `day` already has `most` rows. Returns whether it did.
    pub async fn dry_run_changes_add(
        &self,
        rows: &[dry_run_change::Model],
        day: i32,
        most: u64,
    ) -> Result<bool, StoreError> {
        use dry_run_change::Column;
        let kept = dry_run_change::Entity::find().filter(Column::Day.eq(day));
        if kept.count(self.connection()).await? >= most {
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
        let known = OnConflict::columns(key)
            .value(Column::Count, added)
            .to_owned();
        let rows = rows.iter().cloned();
        let rows = rows.map(IntoActiveModel::into_active_model);
        self.insert_rows(rows, Some(known)).await?;
        Ok(true)
    }

    pub async fn dry_run_changes_forget(&self, day: i32) -> Result<(), StoreError> {
        let rows =
            dry_run_change::Entity::delete_many().filter(dry_run_change::Column::Day.lt(day));
        self.delete_rows(rows).await
    }
}
