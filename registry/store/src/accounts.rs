//! Accounts and their tokens.

use sea_orm::ActiveValue::NotSet;
use sea_orm::{ColumnTrait, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use super::connect::advisory_lock;
use super::entity::{account, token};
use super::rows::can_be_stored;
use super::{Handle, StoreError, Write};

/// The PostgreSQL advisory lock under which the first account and its token are made.
const BOOTSTRAP_LOCK: i64 = 0x6132_6172_0003;

/// The account of that name.
pub async fn account_by_name(
    on: &impl Handle,
    name: &str,
) -> Result<Option<account::Model>, StoreError> {
    if !can_be_stored(name) {
        return Ok(None);
    }
    Ok(account::Entity::find()
        .filter(account::Column::Name.eq(name))
        .one(on.connection())
        .await?)
}

/// The accounts with these ids, in no order.
pub async fn accounts_by_ids(
    on: &impl Handle,
    ids: &[Uuid],
) -> Result<Vec<account::Model>, StoreError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    Ok(account::Entity::find()
        .filter(account::Column::Id.is_in(ids.iter().copied()))
        .all(on.connection())
        .await?)
}

/// The token with this hash, with its account. The caller checks whether it has expired.
pub async fn token_by_hash(
    on: &impl Handle,
    hash: &str,
) -> Result<Option<(token::Model, account::Model)>, StoreError> {
    let Some(token) = token::Entity::find()
        .filter(token::Column::Hash.eq(hash))
        .one(on.connection())
        .await?
    else {
        return Ok(None);
    };
    let account = account::Entity::find_by_id(token.account_id)
        .one(on.connection())
        .await?;
    Ok(account.map(|account| (token, account)))
}

/// Tokens with ids below `before`, newest first.
pub async fn token_page(
    on: &impl Handle,
    before: Option<Uuid>,
    limit: u64,
) -> Result<Vec<token::Model>, StoreError> {
    let mut query = token::Entity::find()
        .order_by_desc(token::Column::Id)
        .limit(limit);
    if let Some(before) = before {
        query = query.filter(token::Column::Id.lt(before));
    }
    Ok(query.all(on.connection()).await?)
}

impl Write {
    /// Locks the creation of the first account and token, so that processes that start together make them once.
    pub async fn accounts_lock(&self) -> Result<(), StoreError> {
        if self.locks_rows() {
            advisory_lock(self.connection(), BOOTSTRAP_LOCK).await?;
        }
        Ok(())
    }

    /// Adds an account.
    ///
    /// # Errors
    /// Where the database fails or the name is taken.
    pub async fn account_insert(&self, row: account::Model) -> Result<(), StoreError> {
        account::Entity::insert(row.into_active_model())
            .exec_without_returning(self.connection())
            .await?;
        Ok(())
    }

    /// Adds a token.
    pub async fn token_insert(&self, row: token::Model) -> Result<(), StoreError> {
        token::Entity::insert(row.into_active_model())
            .exec_without_returning(self.connection())
            .await?;
        Ok(())
    }

    /// Removes a token; returns whether there was one.
    pub async fn token_delete(&self, id: Uuid) -> Result<bool, StoreError> {
        let outcome = token::Entity::delete_by_id(id)
            .exec(self.connection())
            .await?;
        Ok(outcome.rows_affected > 0)
    }

    /// Removes every bootstrap token but the one with this hash.
    pub async fn token_delete_bootstrap(&self, keep_hash: &str) -> Result<(), StoreError> {
        token::Entity::delete_many()
            .filter(token::Column::Bootstrap.eq(true))
            .filter(token::Column::Hash.ne(keep_hash))
            .exec(self.connection())
            .await?;
        Ok(())
    }
}

/// Whether any bootstrap token exists.
pub async fn token_has_bootstrap(on: &impl Handle) -> Result<bool, StoreError> {
    let row = token::Entity::find()
        .filter(token::Column::Bootstrap.eq(true))
        .one(on.connection())
        .await?;
    Ok(row.is_some())
}

/// The row without its key, for a table whose keys the database assigns.
pub(super) fn unnumbered<M, A>(row: M, unset: impl FnOnce(&mut A)) -> A
where
    M: IntoActiveModel<A>,
    A: sea_orm::ActiveModelTrait,
{
    let mut active = row.into_active_model();
    unset(&mut active);
    active
}

/// A key that the database assigns.
pub(super) fn unset() -> sea_orm::ActiveValue<i64> {
    NotSet
}
