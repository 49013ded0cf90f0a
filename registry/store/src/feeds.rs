//! Feeds of accounts, each found by the hash of its secret.

use sea_orm::sea_query::OnConflict;
use sea_orm::{ColumnTrait, EntityTrait, IntoActiveModel, QueryFilter};
use uuid::Uuid;

use super::accounts::pair_with_account;
use super::entity::{account, feed};
use super::{Executor, StoreError, WriteTransaction};

pub async fn feed_by_hash(
    db: &impl Executor,
    hash: &str,
) -> Result<Option<(feed::Model, account::Model)>, StoreError> {
    let feed = feed::Entity::find()
        .filter(feed::Column::Hash.eq(hash))
        .one(db.connection())
        .await?;
    pair_with_account(db, feed, |feed| feed.account_id).await
}

pub async fn feed_by_account(
    db: &impl Executor,
    account: Uuid,
) -> Result<Option<feed::Model>, StoreError> {
    Ok(feed::Entity::find_by_id(account)
        .one(db.connection())
        .await?)
}

impl WriteTransaction {
    /// Creates an account's feed, or replaces its secret.
    pub async fn upsert_feed(&self, row: feed::Model) -> Result<(), StoreError> {
        use feed::Column as C;
        let conflict = OnConflict::column(C::AccountId)
            .update_columns([C::Hash, C::CreatedAt, C::Scopes])
            .to_owned();
        self.insert_rows([row.into_active_model()], Some(conflict))
            .await
    }

    pub async fn delete_feed(&self, account: Uuid) -> Result<bool, StoreError> {
        let outcome = feed::Entity::delete_by_id(account)
            .exec(self.connection())
            .await?;
        Ok(outcome.rows_affected > 0)
    }
}
