//! Terms of approvals: which agents are served under one that ends.

use a2a_registry_domain::lifecycle::{Hold, Lifecycle};
use sea_orm::sea_query::{Expr, ExprTrait, Query};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, Select};
use uuid::Uuid;

use super::entity::{agent, hold};
use super::{Handle, StoreError};

/// Agents with a served version, without the hold `recertify`, that come after `after` in the order of their ids.
fn served(after: Option<Uuid>, limit: u64) -> Select<agent::Entity> {
    use agent::Column as C;
    let held = Query::select()
        .column(hold::Column::AgentId)
        .from(hold::Entity)
        .and_where(hold::Column::Hold.eq(Hold::Recertify.as_str()))
        .and_where(Expr::col((hold::Entity, hold::Column::AgentId)).equals((agent::Entity, C::Id)))
        .take();
    let listed = [Lifecycle::Approved, Lifecycle::Deprecated].map(Lifecycle::as_str);
    let query = agent::Entity::find()
        .filter(C::RetiredAt.is_null())
        .filter(C::ApprovedVersion.is_not_null())
        .filter(C::Lifecycle.is_in(listed))
        .filter(Expr::exists(held).not())
        .order_by_asc(C::Id)
        .limit(limit);
    match after {
        Some(after) => query.filter(C::Id.gt(after)),
        None => query,
    }
}

async fn ids(on: &impl Handle, query: Select<agent::Entity>) -> Result<Vec<Uuid>, StoreError> {
    let query = query.select_only().column(agent::Column::Id);
    Ok(query.into_tuple().all(on.connection()).await?)
}

/// A page of the served agents whose term is not known: they were approved by a build that kept none.
pub async fn agents_without_term(
    on: &impl Handle,
    after: Option<Uuid>,
    limit: u64,
) -> Result<Vec<Uuid>, StoreError> {
    let query = served(after, limit).filter(agent::Column::CertifiedAt.is_null());
    ids(on, query).await
}

/// A page of the served agents whose term began by then, and of whose end nobody was told yet.
pub async fn agents_certified_by(
    on: &impl Handle,
    certified_by: i64,
    after: Option<Uuid>,
    limit: u64,
) -> Result<Vec<Uuid>, StoreError> {
    let query = served(after, limit)
        .filter(agent::Column::CertifiedAt.lte(certified_by))
        .filter(agent::Column::RecertifyAt.is_null());
    ids(on, query).await
}

/// A page of the served agents whose approval has ended.
pub async fn agents_past_term(
    on: &impl Handle,
    now: i64,
    after: Option<Uuid>,
    limit: u64,
) -> Result<Vec<Uuid>, StoreError> {
    let query = served(after, limit).filter(agent::Column::RecertifyAt.lte(now));
    ids(on, query).await
}
