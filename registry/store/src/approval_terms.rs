//! Agents that are served under an approval that expires, and break-glass approvals.

use a2a_registry_domain::lifecycle::{Hold, Lifecycle};
use a2a_registry_domain::review::{ReviewKind, ReviewState};
use sea_orm::sea_query::{Expr, ExprTrait, Query};
use sea_orm::{
    ColumnTrait, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder, QuerySelect, Select,
};
use uuid::Uuid;

use super::agents::agent_holds_subquery;
use super::entity::queries::page_after;
use super::entity::{agent, break_glass, review};
use super::{Executor, StoreError, WriteTransaction};

/// Agents with ids above `after` that have a served version, and no hold `recertify`.
fn select_served_agents(after: Option<Uuid>, limit: u64) -> Select<agent::Entity> {
    use agent::Column as C;
    let listed = [Lifecycle::Approved, Lifecycle::Deprecated].map(Lifecycle::as_str);
    let query = agent::Entity::find()
        .filter(C::RetiredAt.is_null())
        .filter(C::ApprovedVersion.is_not_null())
        .filter(C::Lifecycle.is_in(listed))
        .filter(Expr::exists(agent_holds_subquery(Some(Hold::Recertify))).not());
    page_after(query, C::Id, after, limit)
}

async fn fetch_agent_ids(
    db: &impl Executor,
    query: Select<agent::Entity>,
) -> Result<Vec<Uuid>, StoreError> {
    let query = query.select_only().column(agent::Column::Id);
    Ok(query.into_tuple().all(db.connection()).await?)
}

/// A page of served agents whose term is unknown.
pub async fn agents_without_approval_term(
    db: &impl Executor,
    after: Option<Uuid>,
    limit: u64,
) -> Result<Vec<Uuid>, StoreError> {
    let query = select_served_agents(after, limit).filter(agent::Column::CertifiedAt.is_null());
    fetch_agent_ids(db, query).await
}

/// A page of served agents whose term began by `certified_by`, and whose owner was not yet notified of its end.
pub async fn agents_due_for_recertification(
    db: &impl Executor,
    certified_by: i64,
    after: Option<Uuid>,
    limit: u64,
) -> Result<Vec<Uuid>, StoreError> {
    let query = select_served_agents(after, limit)
        .filter(agent::Column::CertifiedAt.lte(certified_by))
        .filter(agent::Column::RecertifyAt.is_null());
    fetch_agent_ids(db, query).await
}

/// A page of served agents whose approval has ended.
pub async fn agents_past_approval_term(
    db: &impl Executor,
    now: i64,
    after: Option<Uuid>,
    limit: u64,
) -> Result<Vec<Uuid>, StoreError> {
    let query = select_served_agents(after, limit).filter(agent::Column::RecertifyAt.lte(now));
    fetch_agent_ids(db, query).await
}

pub async fn break_glass_by_review(
    db: &impl Executor,
    review: Uuid,
) -> Result<Option<break_glass::Model>, StoreError> {
    let found = break_glass::Entity::find_by_id(review);
    Ok(found.one(db.connection()).await?)
}

/// The break-glass approvals of an agent whose review has this state: open while in force, rejected if not confirmed.
pub async fn break_glasses_by_agent(
    db: &impl Executor,
    agent: Uuid,
    state: ReviewState,
) -> Result<Vec<break_glass::Model>, StoreError> {
    let query = select_break_glasses(state)
        .filter(break_glass::Column::AgentId.eq(agent))
        .order_by_asc(break_glass::Column::ReviewId);
    Ok(query.all(db.connection()).await?)
}

/// A page of the break-glass approvals in force, of all agents, with review ids above `after`.
pub async fn break_glasses_in_force(
    db: &impl Executor,
    after: Option<Uuid>,
    limit: u64,
) -> Result<Vec<break_glass::Model>, StoreError> {
    let query = select_break_glasses(ReviewState::Open);
    let page = page_after(query, break_glass::Column::ReviewId, after, limit);
    Ok(page.all(db.connection()).await?)
}

fn select_break_glasses(state: ReviewState) -> Select<break_glass::Entity> {
    let reviews = Query::select()
        .column(review::Column::Id)
        .from(review::Entity)
        .and_where(review::Column::Kind.eq(ReviewKind::BreakGlass.as_str()))
        .and_where(review::Column::State.eq(state.as_str()))
        .take();
    break_glass::Entity::find().filter(break_glass::Column::ReviewId.in_subquery(reviews))
}

impl WriteTransaction {
    pub async fn insert_break_glass(&self, row: break_glass::Model) -> Result<(), StoreError> {
        self.pending_changes.mark_agents([&row.agent_id]);
        self.insert_rows([row.into_active_model()], None).await
    }
}
