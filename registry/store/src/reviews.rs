//! Reviews and the queries that list them.

use a2a_registry_domain::review::{ChangeClass, ReviewKind, ReviewState};
use sea_orm::sea_query::{Expr, ExprTrait, OnConflict, Query, SelectStatement};
use sea_orm::{
    ColumnTrait, Condition, EntityTrait, FromQueryResult, IntoActiveModel, Order, QueryFilter,
    QueryOrder, QuerySelect, Select,
};
use uuid::Uuid;

use super::bulk_rows::{is_storable_text, pad_keys};
use super::entity::queries::page_after;
use super::entity::{agent, break_glass, review, review_approval, source, source_registrant};
use super::{Executor, StoreError, WriteTransaction};

pub async fn review_by_id(
    db: &impl Executor,
    id: Uuid,
) -> Result<Option<review::Model>, StoreError> {
    Ok(review::Entity::find_by_id(id).one(db.connection()).await?)
}

/// Conditions that a review must all meet.
#[derive(Debug, Clone, Default)]
pub struct ReviewFilter {
    pub state: Option<ReviewState>,
    pub kind: Option<ReviewKind>,
    /// Classes of the reviewed change; `None` stands for a first card.
    pub classes: Vec<Option<ChangeClass>>,
    pub domain: Option<String>,
    /// Name of the account that registered the source.
    pub submitter: Option<String>,
    pub assignee: Option<Uuid>,
    pub agents: Option<Vec<Uuid>>,
}

/// The number of reviews in each state.
#[derive(Debug, Clone, PartialEq, Eq, FromQueryResult)]
pub struct ReviewStateCount {
    pub state: String,
    pub count: i64,
}

/// A page of matching reviews with ids above `after`, oldest first.
pub async fn review_page(
    db: &impl Executor,
    filter: &ReviewFilter,
    after: Option<Uuid>,
    limit: u64,
) -> Result<Vec<review::Model>, StoreError> {
    let query = page_after(review::Entity::find(), review::Column::Id, after, limit);
    match select_matching_reviews(query, filter) {
        Some(query) => Ok(query.all(db.connection()).await?),
        None => Ok(Vec::new()),
    }
}

/// Counts the matching reviews by state; a state without a review is left out.
pub async fn count_reviews_by_state(
    db: &impl Executor,
    filter: &ReviewFilter,
) -> Result<Vec<ReviewStateCount>, StoreError> {
    let Some(query) = select_matching_reviews(review::Entity::find(), filter) else {
        return Ok(Vec::new());
    };
    Ok(query
        .select_only()
        .column(review::Column::State)
        .column_as(review::Column::Id.count(), "count")
        .group_by(review::Column::State)
        .into_model::<ReviewStateCount>()
        .all(db.connection())
        .await?)
}

/// Adds the conditions of a filter to a query; `None` if no row can match.
fn select_matching_reviews(
    mut query: Select<review::Entity>,
    filter: &ReviewFilter,
) -> Option<Select<review::Entity>> {
    use review::Column as C;
    if let Some(state) = filter.state {
        query = query.filter(C::State.eq(state.as_str()));
    }
    if let Some(kind) = filter.kind {
        query = query.filter(C::Kind.eq(kind.as_str()));
    }
    if !filter.classes.is_empty() {
        let class = |class: &Option<ChangeClass>| match class {
            Some(class) => C::ChangeClass.eq(class.as_str()),
            None => C::ChangeClass.is_null(),
        };
        let classes = filter.classes.iter().map(class);
        query = query.filter(classes.fold(Condition::any(), Condition::add));
    }
    let mut texts = filter.domain.iter().chain(&filter.submitter);
    if !texts.all(|text| is_storable_text(text)) {
        return None;
    }
    if let Some(domain) = &filter.domain {
        let agents_of_domain = Query::select()
            .column(agent::Column::Id)
            .from(agent::Entity)
            .and_where(agent::Column::Domain.eq(domain.as_str()))
            .take();
        query = query.filter(C::AgentId.in_subquery(agents_of_domain));
    }
    if let Some(submitter) = &filter.submitter {
        query = query.filter(C::Submitter.eq(submitter.as_str()));
    }
    if let Some(assignee) = filter.assignee {
        query = query.filter(C::Assignee.eq(assignee));
    }
    if let Some(agents) = &filter.agents {
        query = query.filter(C::AgentId.is_in(agents.iter().copied()));
    }
    Some(query)
}

/// The open reviews that an account may decide, soonest due first: assigned to it or unassigned, not yet approved by
/// it, and not confirming its own break-glass approval. With `four_eyes`, reviews of agents that it owns, submitted,
/// claimed or registered are excluded.
pub async fn reviews_decidable_by(
    db: &impl Executor,
    account: Uuid,
    four_eyes: bool,
    limit: u64,
) -> Result<Vec<review::Model>, StoreError> {
    use review::Column as C;
    let assigned = Condition::any()
        .add(C::Assignee.is_null())
        .add(C::Assignee.eq(account));
    let mut query = review::Entity::find()
        .filter(C::State.eq(ReviewState::Open.as_str()))
        .filter(assigned)
        .filter(Expr::exists(own_approval_subquery(account)).not())
        .filter(Expr::exists(own_break_glass_subquery(account)).not());
    if four_eyes {
        query = query
            .filter(Expr::exists(own_agent_subquery(account)).not())
            .filter(Expr::exists(own_registration_subquery(account)).not());
    }
    Ok(query
        .order_by(C::DueAt.is_null(), Order::Asc)
        .order_by_asc(C::DueAt)
        .order_by_asc(C::Id)
        .limit(limit)
        .all(db.connection())
        .await?)
}

fn own_approval_subquery(account: Uuid) -> SelectStatement {
    use review_approval::{Column as C, Entity};
    Query::select()
        .expr(Expr::val(1))
        .from(Entity)
        .and_where(Expr::col((Entity, C::ReviewId)).equals((review::Entity, review::Column::Id)))
        .and_where(C::AccountId.eq(account))
        .take()
}

fn own_break_glass_subquery(account: Uuid) -> SelectStatement {
    use break_glass::{Column as C, Entity};
    Query::select()
        .expr(Expr::val(1))
        .from(Entity)
        .and_where(Expr::col((Entity, C::ReviewId)).equals((review::Entity, review::Column::Id)))
        .and_where(C::AccountId.eq(account))
        .take()
}

fn own_agent_subquery(account: Uuid) -> SelectStatement {
    use agent::{Column as C, Entity};
    let belongs_to_account = Condition::any()
        .add(C::OwnerId.eq(account))
        .add(C::Submitter.eq(account))
        .add(C::ClaimedBy.eq(account));
    Query::select()
        .expr(Expr::val(1))
        .from(Entity)
        .and_where(Expr::col((Entity, C::Id)).equals((review::Entity, review::Column::AgentId)))
        .cond_where(belongs_to_account)
        .take()
}

fn own_registration_subquery(account: Uuid) -> SelectStatement {
    use source::{Column as C, Entity};
    use source_registrant::{Column as R, Entity as Registrant};
    Query::select()
        .expr(Expr::val(1))
        .from(Entity)
        .inner_join(
            Registrant,
            Expr::col((Registrant, R::SourceId)).equals((Entity, C::Id)),
        )
        .and_where(
            Expr::col((Entity, C::AgentId)).equals((review::Entity, review::Column::AgentId)),
        )
        .and_where(C::EndedAt.is_null())
        .and_where(R::AccountId.eq(account))
        .take()
}

pub async fn open_reviews_by_agent(
    db: &impl Executor,
    agents: &[Uuid],
) -> Result<Vec<review::Model>, StoreError> {
    if agents.is_empty() {
        return Ok(Vec::new());
    }
    Ok(select_open_reviews(agents).all(db.connection()).await?)
}

/// The open reviews of these agents. The cast keeps the database from choosing an index for the state: SQLite does not
/// know how often each state occurs, and would read every open review to find those of a few agents.
fn select_open_reviews(agents: &[Uuid]) -> Select<review::Entity> {
    use review::{Column as C, Entity};
    Entity::find()
        .filter(C::AgentId.is_in(pad_keys(agents)))
        .filter(
            Expr::col((Entity, C::State))
                .cast_as("text")
                .eq(ReviewState::Open.as_str()),
        )
}

impl WriteTransaction {
    /// Inserts reviews, or updates the state and decision of existing ones.
    pub async fn upsert_reviews(&self, rows: Vec<review::Model>) -> Result<(), StoreError> {
        use review::Column as C;
        let conflict = OnConflict::column(C::Id)
            .update_columns([
                C::State,
                C::Assignee,
                C::DueAt,
                C::Decider,
                C::Reason,
                C::DecidedAt,
            ])
            .to_owned();
        let rows = rows.into_iter().map(IntoActiveModel::into_active_model);
        self.insert_rows(rows, Some(conflict)).await
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use a2a_migrations::Migrator;
    use sea_orm::{ConnectionTrait as _, Database, DbBackend, QueryTrait as _, Statement};
    use sea_orm_migration::MigratorTrait as _;

    use super::*;

    #[tokio::test]
    async fn open_reviews_are_found_by_their_agents() {
        let database = Database::connect("sqlite::memory:").await.unwrap();
        Migrator::up(&database, None).await.unwrap();
        for count in [1, 6, 200] {
            let agents: Vec<Uuid> = (0..count).map(Uuid::from_u128).collect();
            let asked = select_open_reviews(&agents).build(DbBackend::Sqlite);
            let values = asked.values.unwrap();
            let explain = format!("EXPLAIN QUERY PLAN {}", asked.sql);
            let plan = database
                .query_all_raw(Statement::from_sql_and_values(
                    DbBackend::Sqlite,
                    explain,
                    values,
                ))
                .await
                .unwrap();
            let steps: Vec<String> = plan
                .iter()
                .map(|step| step.try_get("", "detail").unwrap())
                .collect();
            assert_eq!(steps.len(), 1, "{steps:?}");
            assert!(
                steps[0].contains("USING INDEX") && steps[0].contains("(agent_id=?)"),
                "{count}: {steps:?}"
            );
        }
    }
}
