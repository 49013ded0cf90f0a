//! Sessions on the pages, which end by time or with their token.

use sea_orm::sea_query::{Expr, Query};
use sea_orm::{
    ColumnTrait, Condition, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder, QueryTrait,
};
use uuid::Uuid;

use super::accounts::with_account;
use super::entity::queries::page_before;
use super::entity::{account, session, token};
use super::{Handle, StoreError, Write};

/// How long a session lasts without a request; microseconds.
pub const IDLE: i64 = 8 * 3600 * 1_000_000;

/// Sessions that have not ended by their times or with their token. The caller checks whether the account may be used.
fn live(now: i64) -> Condition {
    let tokens = Query::select()
        .column(token::Column::Id)
        .from(token::Entity)
        .take();
    let by_token = Condition::any()
        .add(session::Column::TokenId.is_null())
        .add(session::Column::TokenId.in_subquery(tokens));
    Condition::all()
        .add(session::Column::ExpiresAt.gt(now))
        .add(session::Column::LastSeenAt.gt(now.saturating_sub(IDLE)))
        .add(by_token)
}

pub async fn session_by_hash(
    on: &impl Handle,
    hash: &str,
    now: i64,
) -> Result<Option<(session::Model, account::Model)>, StoreError> {
    let session = session::Entity::find()
        .filter(session::Column::Hash.eq(hash))
        .filter(live(now))
        .one(on.connection())
        .await?;
    with_account(on, session, |session| session.account_id).await
}

pub async fn session_by_id(
    on: &impl Handle,
    id: Uuid,
    now: i64,
) -> Result<Option<session::Model>, StoreError> {
    Ok(session::Entity::find_by_id(id)
        .filter(live(now))
        .one(on.connection())
        .await?)
}

/// The live sessions of an account, longest unseen first.
pub async fn sessions_of(
    on: &impl Handle,
    account: Uuid,
    now: i64,
) -> Result<Vec<session::Model>, StoreError> {
    Ok(session::Entity::find()
        .filter(session::Column::AccountId.eq(account))
        .filter(live(now))
        .order_by_asc(session::Column::LastSeenAt)
        .order_by_asc(session::Column::Id)
        .all(on.connection())
        .await?)
}

/// Live sessions with ids below `before`, newest first: those of the account `of`, or all.
pub async fn session_page(
    on: &impl Handle,
    of: Option<Uuid>,
    before: Option<Uuid>,
    limit: u64,
    now: i64,
) -> Result<Vec<session::Model>, StoreError> {
    use session::Column as C;
    let query = session::Entity::find().filter(live(now));
    let own = query.apply_if(of, |query, of| query.filter(C::AccountId.eq(of)));
    let page = page_before(own, C::Id, before, limit);
    Ok(page.all(on.connection()).await?)
}

impl Write {
    pub async fn session_insert(&self, row: session::Model) -> Result<(), StoreError> {
        self.insert_rows([row.into_active_model()], None).await
    }

    /// Replaces a session's secret; returns whether its hash was `old`.
    pub async fn session_rotate(
        &self,
        id: Uuid,
        old: &str,
        new: &str,
        roles: &str,
    ) -> Result<bool, StoreError> {
        let outcome = session::Entity::update_many()
            .col_expr(session::Column::Hash, Expr::value(new))
            .col_expr(session::Column::Roles, Expr::value(roles))
            .filter(session::Column::Id.eq(id))
            .filter(session::Column::Hash.eq(old))
            .exec(self.connection())
            .await?;
        Ok(outcome.rows_affected > 0)
    }

    /// Records that a session was used, unless a later use is recorded.
    pub async fn session_seen(&self, id: Uuid, at: i64) -> Result<(), StoreError> {
        let rows = session::Entity::update_many()
            .col_expr(session::Column::LastSeenAt, Expr::value(at))
            .filter(session::Column::Id.eq(id))
            .filter(session::Column::LastSeenAt.lt(at));
        self.update_rows(rows).await
    }

    pub async fn session_delete(&self, id: Uuid) -> Result<(), StoreError> {
        session::Entity::delete_by_id(id)
            .exec(self.connection())
            .await?;
        Ok(())
    }

    pub async fn sessions_end(&self, account: Uuid) -> Result<(), StoreError> {
        let rows = session::Entity::delete_many().filter(session::Column::AccountId.eq(account));
        self.delete_rows(rows).await
    }

    pub async fn sessions_forget(&self, now: i64) -> Result<u64, StoreError> {
        let outcome = session::Entity::delete_many()
            .filter(live(now).not())
            .exec(self.connection())
            .await?;
        Ok(outcome.rows_affected)
    }
}
