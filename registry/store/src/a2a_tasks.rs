//! The tasks that the registry does for clients of A2A. Each belongs to an account, or to nobody.

use std::collections::BTreeMap;

use a2a_registry_domain::task_state::TaskState;
use sea_orm::sea_query::{Expr, SimpleExpr};
use sea_orm::{
    ColumnTrait, Condition, EntityTrait, IntoActiveModel, PaginatorTrait, QueryFilter, QueryOrder,
    QuerySelect, Select,
};
use uuid::Uuid;

use super::entity::a2a_task::{Column, Entity, Model};
use super::rows::can_be_stored;
use super::{Handle, Kept, StoreError, Write};

/// Tasks deleted in one statement.
const DELETED_AT_ONCE: u64 = 500;

/// Which tasks of an account a list has.
#[derive(Debug, Clone, Default)]
pub struct TaskFilter {
    /// Those of this conversation.
    pub context: Option<String>,
    /// Those in this state.
    pub state: Option<TaskState>,
    /// Those that came into their state then or later; microseconds.
    pub since: Option<i64>,
}

/// What changes about a task.
#[derive(Debug, Clone)]
pub struct TaskChange {
    /// Its state.
    pub state: TaskState,
    /// The messages of its client, where there are others.
    pub history: Option<String>,
    /// What came of it.
    pub outcome: Option<String>,
    /// The request for the next page of its search.
    pub more: Option<String>,
    /// When; microseconds.
    pub at: i64,
}

fn of(account: Option<Uuid>) -> SimpleExpr {
    match account {
        Some(account) => Column::AccountId.eq(account),
        None => Column::AccountId.is_null(),
    }
}

fn listed(account: Uuid, filter: &TaskFilter, now: i64) -> Select<Entity> {
    let mut query = Entity::find()
        .filter(Column::AccountId.eq(account))
        .filter(Column::ExpiresAt.gt(now));
    if let Some(context) = &filter.context {
        query = query.filter(Column::ContextId.eq(context));
    }
    if let Some(state) = filter.state {
        query = query.filter(Column::State.eq(Kept::from(state)));
    }
    if let Some(since) = filter.since {
        query = query.filter(Column::UpdatedAt.gte(since));
    }
    query
}

/// The task with that identifier, of that account or of nobody, which has not expired.
pub async fn task_of(
    on: &impl Handle,
    account: Option<Uuid>,
    id: Uuid,
    now: i64,
) -> Result<Option<Model>, StoreError> {
    let found = Entity::find_by_id(id)
        .filter(of(account))
        .filter(Column::ExpiresAt.gt(now));
    Ok(found.one(on.connection()).await?)
}

/// The tasks of an account behind a position, the one that changed last first.
pub async fn task_page(
    on: &impl Handle,
    account: Uuid,
    filter: &TaskFilter,
    behind: Option<(i64, Uuid)>,
    limit: u64,
    now: i64,
) -> Result<Vec<Model>, StoreError> {
    if filter
        .context
        .as_deref()
        .is_some_and(|one| !can_be_stored(one))
    {
        return Ok(Vec::new());
    }
    let mut query = listed(account, filter, now)
        .order_by_desc(Column::UpdatedAt)
        .order_by_desc(Column::Id)
        .limit(limit);
    if let Some((at, id)) = behind {
        let same = Condition::all()
            .add(Column::UpdatedAt.eq(at))
            .add(Column::Id.lt(id));
        query = query.filter(Condition::any().add(Column::UpdatedAt.lt(at)).add(same));
    }
    Ok(query.all(on.connection()).await?)
}

/// How many tasks of an account a list has on all its pages.
pub async fn task_count(
    on: &impl Handle,
    account: Uuid,
    filter: &TaskFilter,
    now: i64,
) -> Result<u64, StoreError> {
    if filter
        .context
        .as_deref()
        .is_some_and(|one| !can_be_stored(one))
    {
        return Ok(0);
    }
    Ok(listed(account, filter, now).count(on.connection()).await?)
}

/// The last task of a conversation that was a search.
pub async fn last_search_of(
    on: &impl Handle,
    account: Option<Uuid>,
    context: &str,
    now: i64,
) -> Result<Option<Model>, StoreError> {
    if !can_be_stored(context) {
        return Ok(None);
    }
    let query = Entity::find()
        .filter(of(account))
        .filter(Column::ContextId.eq(context))
        .filter(Column::ExpiresAt.gt(now))
        .filter(Column::More.is_not_null())
        .order_by_desc(Column::UpdatedAt)
        .order_by_desc(Column::Id);
    Ok(query.one(on.connection()).await?)
}

impl Write {
    /// Adds tasks, in the order in which they came. Of an account, or of nobody, at most `most` are kept, the last ones of
    /// these among them: the ones that have not changed for the longest time are deleted.
    pub async fn tasks_insert(
        &self,
        mut rows: Vec<Model>,
        most: impl Fn(Option<Uuid>) -> u64,
    ) -> Result<(), StoreError> {
        let mut counts: BTreeMap<Option<Uuid>, u64> = BTreeMap::new();
        // From the last one on, so that those beyond the bound are the first ones.
        rows.reverse();
        rows.retain(|row| {
            let count = counts.entry(row.account_id).or_default();
            *count += 1;
            *count <= most(row.account_id)
        });
        rows.reverse();
        for (account, count) in counts {
            let surplus: Vec<Uuid> = Entity::find()
                .select_only()
                .column(Column::Id)
                .filter(of(account))
                .order_by_desc(Column::UpdatedAt)
                .order_by_desc(Column::Id)
                .offset(most(account).saturating_sub(count))
                .limit(DELETED_AT_ONCE)
                .into_tuple()
                .all(self.connection())
                .await?;
            self.tasks_delete(surplus).await?;
        }
        let rows = rows.into_iter().map(IntoActiveModel::into_active_model);
        self.insert_rows(rows, None).await
    }

    async fn tasks_delete(&self, ids: Vec<Uuid>) -> Result<u64, StoreError> {
        if ids.is_empty() {
            return Ok(0);
        }
        let outcome = Entity::delete_many()
            .filter(Column::Id.is_in(ids))
            .exec(self.connection())
            .await?;
        Ok(outcome.rows_affected)
    }

    /// Changes a task that is in one of these states; returns whether it was.
    pub async fn task_change(
        &self,
        id: Uuid,
        from: &[TaskState],
        change: TaskChange,
    ) -> Result<bool, StoreError> {
        let from = from.iter().map(|state| Kept::from(*state));
        let mut update = Entity::update_many()
            .col_expr(Column::State, Expr::value(Kept::from(change.state)))
            .col_expr(Column::Outcome, Expr::value(change.outcome))
            .col_expr(Column::More, Expr::value(change.more))
            .col_expr(Column::UpdatedAt, Expr::value(change.at));
        if let Some(history) = change.history {
            update = update.col_expr(Column::History, Expr::value(history));
        }
        let outcome = update
            .filter(Column::Id.eq(id))
            .filter(Column::State.is_in(from))
            .exec(self.connection())
            .await?;
        Ok(outcome.rows_affected > 0)
    }

    /// Deletes tasks that have expired, and of all others those beyond `most` that have not changed for the longest
    /// time: a bounded number. Returns whether there may be more.
    pub async fn tasks_forget(&self, now: i64, most: u64) -> Result<bool, StoreError> {
        let ids = |query: Select<Entity>| {
            query
                .select_only()
                .column(Column::Id)
                .limit(DELETED_AT_ONCE)
                .into_tuple::<Uuid>()
        };
        let expired = Entity::find().filter(Column::ExpiresAt.lte(now));
        let expired = ids(expired).all(self.connection()).await?;
        let surplus = Entity::find()
            .order_by_desc(Column::UpdatedAt)
            .order_by_desc(Column::Id)
            .offset(most);
        let surplus = ids(surplus).all(self.connection()).await?;
        let full = usize::try_from(DELETED_AT_ONCE).unwrap_or(usize::MAX);
        let more = expired.len() == full || surplus.len() == full;
        self.tasks_delete(expired).await?;
        self.tasks_delete(surplus).await?;
        Ok(more)
    }
}
