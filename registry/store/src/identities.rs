//! Whom of an identity provider each account is, and attempts to sign in with one.

use sea_orm::sea_query::{Expr, Query};
use sea_orm::{ColumnTrait, EntityTrait, IntoActiveModel, Order, PaginatorTrait, QueryFilter};
use uuid::Uuid;

use super::entity::{account, identity, sign_in_attempt};
use super::rows::can_be_stored;
use super::{Handle, StoreError, Write};

/// What is known of somebody of an issuer.
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

/// The issuers of which an account is somebody.
pub async fn issuers_of(on: &impl Handle, account: Uuid) -> Result<Vec<String>, StoreError> {
    let found = identity::Entity::find()
        .filter(identity::Column::AccountId.eq(account))
        .all(on.connection())
        .await?;
    Ok(found.into_iter().map(|known| known.issuer).collect())
}

/// How many accounts somebody of that issuer is.
pub async fn identity_count(on: &impl Handle, issuer: &str) -> Result<u64, StoreError> {
    Ok(identity::Entity::find()
        .filter(identity::Column::Issuer.eq(issuer))
        .count(on.connection())
        .await?)
}

/// How many attempts to sign in are kept.
pub async fn attempt_count(on: &impl Handle) -> Result<u64, StoreError> {
    Ok(sign_in_attempt::Entity::find()
        .count(on.connection())
        .await?)
}

/// The attempt with this state, whoever has begun it.
pub async fn attempt_by_state(
    on: &impl Handle,
    state: &str,
) -> Result<Option<sign_in_attempt::Model>, StoreError> {
    Ok(sign_in_attempt::Entity::find_by_id(state)
        .one(on.connection())
        .await?)
}

impl Write {
    /// Begins to count the absence of accounts of identity providers for which nothing counts it yet.
    pub async fn absences_begin(&self, now: i64) -> Result<u64, StoreError> {
        let own = Query::select()
            .column(identity::Column::AccountId)
            .from(identity::Entity)
            .take();
        let outcome = account::Entity::update_many()
            .col_expr(account::Column::ClaimsValidAt, Expr::value(now))
            .filter(account::Column::ClaimsValidAt.is_null())
            .filter(account::Column::Id.in_subquery(own))
            .exec(self.connection())
            .await?;
        Ok(outcome.rows_affected)
    }

    /// Adds somebody.
    pub async fn identity_insert(&self, row: identity::Model) -> Result<(), StoreError> {
        identity::Entity::insert(row.into_active_model())
            .exec_without_returning(self.connection())
            .await?;
        Ok(())
    }

    /// Notes what the map gave somebody, and by claims of when.
    pub async fn identity_update(&self, row: &identity::Model) -> Result<(), StoreError> {
        identity::Entity::update_many()
            .col_expr(identity::Column::Roles, Expr::value(row.roles.as_str()))
            .col_expr(identity::Column::ClaimsAt, Expr::value(row.claims_at))
            .filter(identity::Column::Issuer.eq(row.issuer.as_str()))
            .filter(identity::Column::Subject.eq(row.subject.as_str()))
            .exec(self.connection())
            .await?;
        Ok(())
    }

    /// Adds an attempt to sign in.
    pub async fn attempt_insert(&self, row: sign_in_attempt::Model) -> Result<(), StoreError> {
        sign_in_attempt::Entity::insert(row.into_active_model())
            .exec_without_returning(self.connection())
            .await?;
        Ok(())
    }

    /// Removes the attempt of that browser with that state and issuer, and returns it if it has not expired: of two answers
    /// at once, in two processes, one gets it.
    pub async fn attempt_take(
        &self,
        state: &str,
        browser: &str,
        issuer: &str,
        now: i64,
    ) -> Result<Option<sign_in_attempt::Model>, StoreError> {
        let found = sign_in_attempt::Entity::find_by_id(state)
            .filter(sign_in_attempt::Column::Browser.eq(browser))
            .filter(sign_in_attempt::Column::Issuer.eq(issuer))
            .one(self.connection())
            .await?;
        let Some(found) = found else {
            return Ok(None);
        };
        let removed = sign_in_attempt::Entity::delete_by_id(state)
            .exec(self.connection())
            .await?;
        Ok(Some(found).filter(|row| removed.rows_affected == 1 && row.expires_at > now))
    }

    /// Removes the oldest attempts, so that at most `most` are left.
    pub async fn attempts_keep(&self, most: u64) -> Result<(), StoreError> {
        use sign_in_attempt::{Column as C, Entity};
        let excess = attempt_count(self).await?.saturating_sub(most);
        if excess == 0 {
            return Ok(());
        }
        let oldest = Query::select()
            .column(C::State)
            .from(Entity)
            .order_by(C::ExpiresAt, Order::Asc)
            .order_by(C::State, Order::Asc)
            .limit(excess)
            .take();
        Entity::delete_many()
            .filter(C::State.in_subquery(oldest))
            .exec(self.connection())
            .await?;
        Ok(())
    }

    /// Removes every attempt that has expired.
    pub async fn attempts_forget(&self, now: i64) -> Result<(), StoreError> {
        sign_in_attempt::Entity::delete_many()
            .filter(sign_in_attempt::Column::ExpiresAt.lte(now))
            .exec(self.connection())
            .await?;
        Ok(())
    }
}
