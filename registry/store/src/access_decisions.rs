//! Decisions by policies that their askers can look up: written in batches, and deleted when they are old or too many.

use sea_orm::sea_query::OnConflict;
use sea_orm::{
    ColumnTrait, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder, QuerySelect, Select,
};
use uuid::Uuid;

use super::entity::access_decision;
use super::{Executor, StoreError, WriteTransaction};

pub async fn access_decision_by_id(
    db: &impl Executor,
    id: Uuid,
) -> Result<Option<access_decision::Model>, StoreError> {
    let row = access_decision::Entity::find_by_id(id);
    Ok(row.one(db.connection()).await?)
}

impl WriteTransaction {
    /// Inserts decisions, except those that are already stored.
    pub async fn insert_access_decisions(
        &self,
        rows: Vec<access_decision::Model>,
    ) -> Result<(), StoreError> {
        let conflict = OnConflict::column(access_decision::Column::Id)
            .do_nothing()
            .to_owned();
        let rows = rows.into_iter().map(IntoActiveModel::into_active_model);
        self.insert_rows(rows, Some(conflict)).await
    }

    /// Deletes the oldest decisions of an asker beyond this many.
    pub async fn trim_access_decisions(
        &self,
        asker: &str,
        max_rows: u64,
    ) -> Result<(), StoreError> {
        use access_decision::Column;
        let own = access_decision::Entity::find().filter(Column::Asker.eq(asker));
        let Some(first_beyond) = self.decision_id_at(own, max_rows).await? else {
            return Ok(());
        };
        let beyond = access_decision::Entity::delete_many()
            .filter(Column::Asker.eq(asker))
            .filter(Column::Id.lte(first_beyond));
        self.delete_rows(beyond).await
    }

    /// Deletes decisions from before this time, and the oldest ones beyond this many, and those beyond a share of them
    /// of askers whose key begins like this.
    pub async fn delete_old_access_decisions(
        &self,
        before: i64,
        max_rows: u64,
        (asker_prefix, max_share): (&str, u64),
    ) -> Result<(), StoreError> {
        use access_decision::Column;
        let old = access_decision::Entity::delete_many().filter(Column::At.lt(before));
        self.delete_rows(old).await?;
        let is_of_share = Column::Asker.starts_with(asker_prefix);
        let share = access_decision::Entity::find().filter(is_of_share.clone());
        if let Some(first_beyond) = self.decision_id_at(share, max_share).await? {
            let beyond = access_decision::Entity::delete_many()
                .filter(is_of_share)
                .filter(Column::Id.lte(first_beyond));
            self.delete_rows(beyond).await?;
        }
        let all = access_decision::Entity::find();
        let Some(first_beyond) = self.decision_id_at(all, max_rows).await? else {
            return Ok(());
        };
        let beyond = access_decision::Entity::delete_many().filter(Column::Id.lte(first_beyond));
        self.delete_rows(beyond).await
    }

    /// The identifier at this position among the newest decisions of a query.
    async fn decision_id_at(
        &self,
        query: Select<access_decision::Entity>,
        position: u64,
    ) -> Result<Option<Uuid>, StoreError> {
        Ok(query
            .select_only()
            .column(access_decision::Column::Id)
            .order_by_desc(access_decision::Column::Id)
            .offset(position)
            .limit(1)
            .into_tuple()
            .one(self.connection())
            .await?)
    }
}
