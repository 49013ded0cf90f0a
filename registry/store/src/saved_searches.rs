//! Saved searches of accounts, each under a name.

use sea_orm::sea_query::OnConflict;
use sea_orm::{ColumnTrait, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder};
use uuid::Uuid;

use super::entity::saved_search;
use super::{Executor, StoreError, WriteTransaction};

pub async fn saved_searches_by_account(
    db: &impl Executor,
    account: Uuid,
) -> Result<Vec<saved_search::Model>, StoreError> {
    Ok(saved_search::Entity::find()
        .filter(saved_search::Column::AccountId.eq(account))
        .order_by_asc(saved_search::Column::Name)
        .all(db.connection())
        .await?)
}

impl WriteTransaction {
    /// Adds a saved search, or updates the account's saved search of the same name.
    pub async fn upsert_saved_search(&self, row: saved_search::Model) -> Result<(), StoreError> {
        use saved_search::Column as C;
        let conflict = OnConflict::columns([C::AccountId, C::Name])
            .update_columns([C::Query])
            .to_owned();
        self.insert_rows([row.into_active_model()], Some(conflict))
            .await
    }

    pub async fn delete_saved_search(&self, account: Uuid, id: Uuid) -> Result<bool, StoreError> {
        let outcome = saved_search::Entity::delete_many()
            .filter(saved_search::Column::AccountId.eq(account))
            .filter(saved_search::Column::Id.eq(id))
            .exec(self.connection())
            .await?;
        Ok(outcome.rows_affected > 0)
    }
}
