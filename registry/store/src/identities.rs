//! Identities of accounts at identity providers, and used sign-in attempts.

use sea_orm::sea_query::{Expr, OnConflict};
use sea_orm::{
    ColumnTrait, EntityTrait, IntoActiveModel, PaginatorTrait, QueryFilter, TryInsertResult,
};
use uuid::Uuid;

use super::bulk_rows::is_storable_text;
use super::entity::{identity, used_sign_in_attempt};
use super::{Executor, StoreError, WriteTransaction};

pub async fn identity_by_subject(
    db: &impl Executor,
    issuer: &str,
    subject: &str,
) -> Result<Option<identity::Model>, StoreError> {
    if !is_storable_text(subject) {
        return Ok(None);
    }
    let key = (issuer.to_owned(), subject.to_owned());
    Ok(identity::Entity::find_by_id(key)
        .one(db.connection())
        .await?)
}

pub async fn issuers_by_account(
    db: &impl Executor,
    account: Uuid,
) -> Result<Vec<String>, StoreError> {
    let found = identity::Entity::find()
        .filter(identity::Column::AccountId.eq(account))
        .all(db.connection())
        .await?;
    Ok(found.into_iter().map(|known| known.issuer).collect())
}

pub async fn identity_count_by_issuer(db: &impl Executor, issuer: &str) -> Result<u64, StoreError> {
    Ok(identity::Entity::find()
        .filter(identity::Column::Issuer.eq(issuer))
        .count(db.connection())
        .await?)
}

pub async fn is_sign_in_attempt_used(db: &impl Executor, state: &str) -> Result<bool, StoreError> {
    let found = used_sign_in_attempt::Entity::find_by_id(state)
        .one(db.connection())
        .await?;
    Ok(found.is_some())
}

pub async fn used_sign_in_attempt_count(db: &impl Executor) -> Result<u64, StoreError> {
    Ok(used_sign_in_attempt::Entity::find()
        .count(db.connection())
        .await?)
}

impl WriteTransaction {
    pub async fn insert_identity(&self, row: identity::Model) -> Result<(), StoreError> {
        self.insert_rows([row.into_active_model()], None).await
    }

    pub async fn update_identity(&self, row: &identity::Model) -> Result<(), StoreError> {
        let rows = identity::Entity::update_many()
            .col_expr(identity::Column::Roles, Expr::value(row.roles.as_str()))
            .col_expr(identity::Column::ClaimsAt, Expr::value(row.claims_at))
            .filter(identity::Column::Issuer.eq(row.issuer.as_str()))
            .filter(identity::Column::Subject.eq(row.subject.as_str()));
        self.update_rows(rows).await
    }

    /// Records that a sign-in attempt was used. Returns whether this was its first use: of two concurrent
    /// transactions, the second waits for the first.
    pub async fn mark_sign_in_attempt_used(
        &self,
        row: used_sign_in_attempt::Model,
    ) -> Result<bool, StoreError> {
        let outcome = used_sign_in_attempt::Entity::insert(row.into_active_model())
            .on_conflict(OnConflict::new().do_nothing().to_owned())
            .try_insert()
            .exec_without_returning(self.connection())
            .await?;
        Ok(matches!(outcome, TryInsertResult::Inserted(rows) if rows > 0))
    }

    pub async fn delete_expired_sign_in_attempts(&self, now: i64) -> Result<(), StoreError> {
        let rows = used_sign_in_attempt::Entity::delete_many()
            .filter(used_sign_in_attempt::Column::ExpiresAt.lte(now));
        self.delete_rows(rows).await
    }
}
