//! Browser sessions, which end by time or with their token.

use sea_orm::sea_query::{Expr, Query};
use sea_orm::{
    ColumnTrait, Condition, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder, QueryTrait,
};
use uuid::Uuid;

use super::accounts::pair_with_account;
use super::entity::queries::page_before;
use super::entity::{account, session, token};
use super::{Executor, StoreError, WriteTransaction};

/// How long a session lasts without a request; microseconds.
pub const MAX_IDLE_TIME: i64 = 8 * 3600 * 1_000_000;

/// The condition for sessions that have not ended by time or with their token. The caller checks the account's state.
fn live_session_condition(now: i64) -> Condition {
    let tokens = Query::select()
        .column(token::Column::Id)
        .from(token::Entity)
        .take();
    let has_live_token = Condition::any()
        .add(session::Column::TokenId.is_null())
        .add(session::Column::TokenId.in_subquery(tokens));
    Condition::all()
        .add(session::Column::ExpiresAt.gt(now))
        .add(session::Column::LastSeenAt.gt(now.saturating_sub(MAX_IDLE_TIME)))
        .add(has_live_token)
}

pub async fn session_by_hash(
    db: &impl Executor,
    hash: &str,
    now: i64,
) -> Result<Option<(session::Model, account::Model)>, StoreError> {
    let session = session::Entity::find()
        .filter(session::Column::Hash.eq(hash))
        .filter(live_session_condition(now))
        .one(db.connection())
        .await?;
    pair_with_account(db, session, |session| session.account_id).await
}

pub async fn session_by_id(
    db: &impl Executor,
    id: Uuid,
    now: i64,
) -> Result<Option<session::Model>, StoreError> {
    Ok(session::Entity::find_by_id(id)
        .filter(live_session_condition(now))
        .one(db.connection())
        .await?)
}

/// The live sessions of an account, longest unseen first.
pub async fn live_sessions_by_account(
    db: &impl Executor,
    account: Uuid,
    now: i64,
) -> Result<Vec<session::Model>, StoreError> {
    Ok(session::Entity::find()
        .filter(session::Column::AccountId.eq(account))
        .filter(live_session_condition(now))
        .order_by_asc(session::Column::LastSeenAt)
        .order_by_asc(session::Column::Id)
        .all(db.connection())
        .await?)
}

/// Live sessions with ids below `before`, newest first: those of `account`, or all if it is `None`.
pub async fn session_page(
    db: &impl Executor,
    account: Option<Uuid>,
    before: Option<Uuid>,
    limit: u64,
    now: i64,
) -> Result<Vec<session::Model>, StoreError> {
    use session::Column as C;
    let query = session::Entity::find().filter(live_session_condition(now));
    let own = query.apply_if(account, |query, of| query.filter(C::AccountId.eq(of)));
    let page = page_before(own, C::Id, before, limit);
    Ok(page.all(db.connection()).await?)
}

impl WriteTransaction {
    pub async fn insert_session(&self, row: session::Model) -> Result<(), StoreError> {
        self.insert_rows([row.into_active_model()], None).await
    }

    /// Replaces a session's secret; returns whether its hash was `old_hash`.
    pub async fn rotate_session(
        &self,
        id: Uuid,
        old_hash: &str,
        new_hash: &str,
        roles: &str,
    ) -> Result<bool, StoreError> {
        let outcome = session::Entity::update_many()
            .col_expr(session::Column::Hash, Expr::value(new_hash))
            .col_expr(session::Column::Roles, Expr::value(roles))
            .filter(session::Column::Id.eq(id))
            .filter(session::Column::Hash.eq(old_hash))
            .exec(self.connection())
            .await?;
        Ok(outcome.rows_affected > 0)
    }

    /// Records that a session was used, unless a later use is recorded.
    pub async fn record_session_use(&self, id: Uuid, at: i64) -> Result<(), StoreError> {
        let rows = session::Entity::update_many()
            .col_expr(session::Column::LastSeenAt, Expr::value(at))
            .filter(session::Column::Id.eq(id))
            .filter(session::Column::LastSeenAt.lt(at));
        self.update_rows(rows).await
    }

    pub async fn delete_session(&self, id: Uuid) -> Result<(), StoreError> {
        session::Entity::delete_by_id(id)
            .exec(self.connection())
            .await?;
        Ok(())
    }

    pub async fn delete_account_sessions(&self, account: Uuid) -> Result<(), StoreError> {
        let rows = session::Entity::delete_many().filter(session::Column::AccountId.eq(account));
        self.delete_rows(rows).await
    }

    pub async fn delete_ended_sessions(&self, now: i64) -> Result<u64, StoreError> {
        let outcome = session::Entity::delete_many()
            .filter(live_session_condition(now).not())
            .exec(self.connection())
            .await?;
        Ok(outcome.rows_affected)
    }
}
