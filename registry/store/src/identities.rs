//! The accounts of people at identity providers, and used attempts to sign in.

use sea_orm::sea_query::{Expr, OnConflict};
use sea_orm::{
    ColumnTrait, EntityTrait, IntoActiveModel, PaginatorTrait, QueryFilter, TryInsertResult,
};
use uuid::Uuid;

use super::entity::{identity, used_attempt};
use super::rows::can_be_stored;
use super::{Handle, StoreError, Write};

pub async fn identity_of(
    on: &impl Handle,
    issuer: &str,
    subject: &str,
) -> Result<Option<identity::Model>, StoreError> {
    if !can_be_stored(subject) {
        return Ok(None);
    }
    let key = (issuer.to_owned(), subject.to_owned());
    Ok(identity::Entity::find_by_id(key)
        .one(on.connection())
        .await?)
}

pub async fn issuers_of(on: &impl Handle, account: Uuid) -> Result<Vec<String>, StoreError> {
    let found = identity::Entity::find()
        .filter(identity::Column::AccountId.eq(account))
        .all(on.connection())
        .await?;
    Ok(found.into_iter().map(|known| known.issuer).collect())
}

pub async fn identity_count(on: &impl Handle, issuer: &str) -> Result<u64, StoreError> {
    Ok(identity::Entity::find()
        .filter(identity::Column::Issuer.eq(issuer))
        .count(on.connection())
        .await?)
}

pub async fn attempt_is_used(on: &impl Handle, state: &str) -> Result<bool, StoreError> {
    let found = used_attempt::Entity::find_by_id(state)
        .one(on.connection())
        .await?;
    Ok(found.is_some())
}

pub async fn used_attempt_count(on: &impl Handle) -> Result<u64, StoreError> {
    Ok(used_attempt::Entity::find().count(on.connection()).await?)
}

impl Write {
    pub async fn identity_insert(&self, row: identity::Model) -> Result<(), StoreError> {
        self.insert_rows([row.into_active_model()], None).await
    }

    pub async fn identity_update(&self, row: &identity::Model) -> Result<(), StoreError> {
        let rows = identity::Entity::update_many()
            .col_expr(identity::Column::Roles, Expr::value(row.roles.as_str()))
            .col_expr(identity::Column::ClaimsAt, Expr::value(row.claims_at))
            .filter(identity::Column::Issuer.eq(row.issuer.as_str()))
            .filter(identity::Column::Subject.eq(row.subject.as_str()));
        self.update_rows(rows).await
    }

    /// Records that an attempt to sign in was used. Returns whether this was its first use: of two concurrent
    /// transactions, the second waits for the first.
    pub async fn used_attempt_insert(&self, row: used_attempt::Model) -> Result<bool, StoreError> {
        let outcome = used_attempt::Entity::insert(row.into_active_model())
            .on_conflict(OnConflict::new().do_nothing().to_owned())
            .try_insert()
            .exec_without_returning(self.connection())
            .await?;
        Ok(matches!(outcome, TryInsertResult::Inserted(rows) if rows > 0))
    }

    pub async fn used_attempts_forget(&self, now: i64) -> Result<(), StoreError> {
        let rows =
            used_attempt::Entity::delete_many().filter(used_attempt::Column::ExpiresAt.lte(now));
        self.delete_rows(rows).await
    }
}
