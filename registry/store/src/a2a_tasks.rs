//! Tasks of A2A clients, with or without an account.

use std::collections::BTreeSet;

use a2a_registry_domain::task_state::TaskState;
use sea_orm::sea_query::{Expr, SimpleExpr};
use sea_orm::{
    ColumnTrait, Condition, EntityTrait, FromQueryResult, IntoActiveModel, Iterable,
    PaginatorTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait, Select,
};
use uuid::Uuid;

use super::bulk_rows::is_storable_text;
use super::entity::a2a_task::{Column, Entity, Model};
use super::{Executor, StoreError, StoredEnum, WriteTransaction};

const DELETE_BATCH_SIZE: u64 = 500;

#[derive(Debug, Clone, Default)]
pub struct TaskFilter {
    pub context: Option<String>,
    pub state: Option<TaskState>,
    /// Only tasks whose state changed at or after this time; microseconds.
    pub since: Option<i64>,
}

impl TaskFilter {
    /// Whether any task can match: no stored task has a context identifier that the database cannot store.
    fn can_match(&self) -> bool {
        self.context.as_deref().is_none_or(is_storable_text)
    }
}

/// Selects the large columns that are read of a task. The request for the next page is never read.
#[derive(Debug, Clone, Copy)]
pub struct TaskProjection {
    /// Whether the history is read; otherwise it is empty.
    pub history: bool,
    /// Task states for which the outcome is read.
    pub outcomes: &'static [TaskState],
}

/// The position of a task in a list, and the size of its columns.
#[derive(Debug, Clone, FromQueryResult)]
pub struct TaskPosition {
    pub id: Uuid,
    /// When its state last changed; microseconds.
    pub updated_at: i64,
    /// Bytes of the large columns that are read.
    pub bytes: i64,
}

/// Limits on the number of stored tasks.
#[derive(Debug, Clone, Copy)]
pub struct TaskLimits {
    /// Tasks per account.
    pub account: u64,
    /// Tasks per sender without an account.
    pub sender: u64,
    /// Tasks of all senders without an account together.
    pub anonymous: u64,
}

/// The owner that a task counts for: the account, or the sender if there is no account.
type TaskOwner = (Option<Uuid>, Option<i64>);

#[derive(Debug, Clone)]
pub struct TaskUpdate {
    pub state: TaskState,
    pub history: Option<String>,
    pub outcome: Option<String>,
    pub next_page_request: Option<String>,
    pub at: i64,
}

fn task_account_condition(account: Option<Uuid>) -> SimpleExpr {
    match account {
        Some(account) => Column::AccountId.eq(account),
        None => Column::AccountId.is_null(),
    }
}

const fn task_owner(row: &Model) -> TaskOwner {
    match row.account_id {
        Some(account) => (Some(account), None),
        None => (None, row.sender),
    }
}

fn select_owner_task_ids((account, sender): TaskOwner) -> Select<Entity> {
    let query = Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(task_account_condition(account));
    match (account, sender) {
        (Some(_), _) => query,
        (None, Some(sender)) => query.filter(Column::Sender.eq(sender)),
        (None, None) => query.filter(Column::Sender.is_null()),
    }
}

fn select_live_tasks(account: Uuid, filter: &TaskFilter, now: i64) -> Select<Entity> {
    let mut query = Entity::find()
        .filter(Column::AccountId.eq(account))
        .filter(Column::ExpiresAt.gt(now));
    if let Some(context) = &filter.context {
        query = query.filter(Column::ContextId.eq(context));
    }
    if let Some(state) = filter.state {
        query = query.filter(Column::State.eq(StoredEnum::from(state)));
    }
    if let Some(since) = filter.since {
        query = query.filter(Column::UpdatedAt.gte(since));
    }
    query
}

/// The unexpired task with this identifier, if it belongs to this account, or to no account if `account` is `None`.
pub async fn live_task(
    db: &impl Executor,
    account: Option<Uuid>,
    id: Uuid,
    now: i64,
) -> Result<Option<Model>, StoreError> {
    let found = Entity::find_by_id(id)
        .filter(task_account_condition(account))
        .filter(Column::ExpiresAt.gt(now));
    Ok(found.one(db.connection()).await?)
}

/// The state of an unexpired task, and when it last changed; microseconds.
pub async fn live_task_state(
    db: &impl Executor,
    account: Option<Uuid>,
    id: Uuid,
    now: i64,
) -> Result<Option<(StoredEnum<TaskState>, i64)>, StoreError> {
    let query = Entity::find_by_id(id)
        .filter(task_account_condition(account))
        .filter(Column::ExpiresAt.gt(now))
        .select_only()
        .columns([Column::State, Column::UpdatedAt]);
    Ok(query.into_tuple().one(db.connection()).await?)
}

/// The positions of an account's tasks after a given position, most recently changed first.
pub async fn task_positions(
    db: &impl Executor,
    account: Uuid,
    filter: &TaskFilter,
    after: Option<(i64, Uuid)>,
    limit: u64,
    columns: TaskProjection,
    now: i64,
) -> Result<Vec<TaskPosition>, StoreError> {
    use sea_orm::sea_query::ExprTrait as _;
    if !filter.can_match() {
        return Ok(Vec::new());
    }
    let history = match columns.history {
        true => "octet_length(history)",
        false => "0",
    };
    let outcome = Expr::case(
        task_state_condition(columns.outcomes),
        Expr::cust("coalesce(octet_length(outcome), 0)"),
    );
    let bytes = Expr::cust(history).add(outcome.finally(Expr::cust("0")));
    let mut query = select_live_tasks(account, filter, now)
        .select_only()
        .columns([Column::Id, Column::UpdatedAt])
        .expr_as(bytes.cast_as("bigint"), "bytes")
        .order_by_desc(Column::UpdatedAt)
        .order_by_desc(Column::Id)
        .limit(limit);
    if let Some((at, id)) = after {
        let same = Condition::all()
            .add(Column::UpdatedAt.eq(at))
            .add(Column::Id.lt(id));
        query = query.filter(Condition::any().add(Column::UpdatedAt.lt(at)).add(same));
    }
    Ok(query.into_model().all(db.connection()).await?)
}

pub async fn live_tasks_by_ids(
    db: &impl Executor,
    account: Uuid,
    ids: Vec<Uuid>,
    columns: TaskProjection,
    now: i64,
) -> Result<Vec<Model>, StoreError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let small_columns = Column::iter()
        .filter(|column| !matches!(column, Column::History | Column::Outcome | Column::More));
    let history = match columns.history {
        true => Expr::col(Column::History),
        false => Expr::cust("'[]'"),
    };
    let outcome = Expr::case(
        task_state_condition(columns.outcomes),
        Expr::col(Column::Outcome),
    );
    let query = select_live_tasks(account, &TaskFilter::default(), now)
        .filter(Column::Id.is_in(ids))
        .select_only()
        .columns(small_columns)
        .expr_as(history, "history")
        .expr_as(outcome.finally(Expr::cust("NULL")), "outcome")
        .expr_as(Expr::cust("NULL"), "more");
    Ok(query.into_model().all(db.connection()).await?)
}

fn task_state_condition(states: &[TaskState]) -> SimpleExpr {
    Column::State.is_in(states.iter().map(|state| StoredEnum::from(*state)))
}

pub async fn account_task_count(
    db: &impl Executor,
    account: Uuid,
    filter: &TaskFilter,
    now: i64,
) -> Result<u64, StoreError> {
    if !filter.can_match() {
        return Ok(0);
    }
    Ok(select_live_tasks(account, filter, now)
        .count(db.connection())
        .await?)
}

/// The request for the next page of the last search in a conversation, and when its task last changed.
pub async fn last_search_continuation(
    db: &impl Executor,
    account: Option<Uuid>,
    context: &str,
    now: i64,
) -> Result<Option<(String, i64)>, StoreError> {
    if !is_storable_text(context) {
        return Ok(None);
    }
    let query = Entity::find()
        .filter(task_account_condition(account))
        .filter(Column::ContextId.eq(context))
        .filter(Column::ExpiresAt.gt(now))
        .filter(Column::More.is_not_null())
        .select_only()
        .columns([Column::More, Column::UpdatedAt])
        .order_by_desc(Column::UpdatedAt)
        .order_by_desc(Column::Id);
    Ok(query.into_tuple().one(db.connection()).await?)
}

impl WriteTransaction {
    /// Inserts tasks, and deletes the least recently changed tasks of each account or sender beyond its limit. If all
    /// senders without an account together exceed their limit, the senders with the most tasks lose their oldest
    /// tasks, so that no sender can push out the others.
    pub async fn insert_and_trim_tasks(
        &self,
        rows: Vec<Model>,
        limits: TaskLimits,
    ) -> Result<(), StoreError> {
        let holders: BTreeSet<TaskOwner> = rows.iter().map(task_owner).collect();
        let rows = rows.into_iter().map(IntoActiveModel::into_active_model);
        self.insert_rows(rows, None).await?;
        let is_anonymous = holders.iter().any(|(account, _)| account.is_none());
        for owner in holders {
            let max_tasks = match owner.0 {
                Some(_) => limits.account,
                None => limits.sender,
            };
            let surplus = select_owner_task_ids(owner)
                .order_by_desc(Column::UpdatedAt)
                .order_by_desc(Column::Id)
                .offset(max_tasks)
                .limit(DELETE_BATCH_SIZE)
                .into_query();
            self.delete_rows(Entity::delete_many().filter(Column::Id.in_subquery(surplus)))
                .await?;
        }
        if is_anonymous {
            self.trim_anonymous_tasks(limits.anonymous).await?;
        }
        Ok(())
    }

    /// Deletes tasks of senders without an account until at most this many are left.
    async fn trim_anonymous_tasks(&self, max_tasks: u64) -> Result<(), StoreError> {
        let all = Entity::find()
            .filter(task_account_condition(None))
            .select_only()
            .column(Column::Id);
        let count = all.clone().count(self.connection()).await?;
        let surplus = count.saturating_sub(max_tasks);
        if surplus == 0 {
            return Ok(());
        }
        // Ranks each sender's tasks, latest change first: the sender with the most tasks has the highest rank.
        let place = "row_number() OVER (PARTITION BY sender ORDER BY updated_at DESC, id DESC)";
        let surplus: Vec<Uuid> = all
            .order_by_desc(Expr::cust(place))
            .order_by_asc(Column::UpdatedAt)
            .limit(surplus.min(DELETE_BATCH_SIZE))
            .into_tuple()
            .all(self.connection())
            .await?;
        self.delete_tasks(surplus).await?;
        Ok(())
    }

    async fn delete_tasks(&self, ids: Vec<Uuid>) -> Result<u64, StoreError> {
        if ids.is_empty() {
            return Ok(0);
        }
        let outcome = Entity::delete_many()
            .filter(Column::Id.is_in(ids))
            .exec(self.connection())
            .await?;
        Ok(outcome.rows_affected)
    }

    /// Updates a task that is in one of `expected_states` and, if `expected_updated_at` is given, has not changed
    /// since then. Returns whether the task was updated.
    pub async fn update_task(
        &self,
        id: Uuid,
        expected_states: &[TaskState],
        expected_updated_at: Option<i64>,
        new_values: TaskUpdate,
    ) -> Result<bool, StoreError> {
        let expected_states = expected_states.iter().map(|state| StoredEnum::from(*state));
        let mut update = Entity::update_many()
            .col_expr(
                Column::State,
                Expr::value(StoredEnum::from(new_values.state)),
            )
            .col_expr(Column::Outcome, Expr::value(new_values.outcome))
            .col_expr(Column::More, Expr::value(new_values.next_page_request))
            .col_expr(Column::UpdatedAt, Expr::value(new_values.at));
        if let Some(history) = new_values.history {
            update = update.col_expr(Column::History, Expr::value(history));
        }
        if let Some(since) = expected_updated_at {
            update = update.filter(Column::UpdatedAt.eq(since));
        }
        let outcome = update
            .filter(Column::Id.eq(id))
            .filter(Column::State.is_in(expected_states))
            .exec(self.connection())
            .await?;
        Ok(outcome.rows_affected > 0)
    }

    /// Deletes a bounded number of tasks: expired ones, and the least recently changed ones beyond `max_tasks`.
    /// Returns whether more may remain.
    pub async fn prune_task_batch(&self, now: i64, max_tasks: u64) -> Result<bool, StoreError> {
        let select_ids = |query: Select<Entity>| {
            query
                .select_only()
                .column(Column::Id)
                .limit(DELETE_BATCH_SIZE)
                .into_tuple::<Uuid>()
        };
        let expired = Entity::find().filter(Column::ExpiresAt.lte(now));
        let expired = select_ids(expired).all(self.connection()).await?;
        let surplus = Entity::find()
            .order_by_desc(Column::UpdatedAt)
            .order_by_desc(Column::Id)
            .offset(max_tasks);
        let surplus = select_ids(surplus).all(self.connection()).await?;
        let full = usize::try_from(DELETE_BATCH_SIZE).unwrap_or(usize::MAX);
        let more = expired.len() == full || surplus.len() == full;
        self.delete_tasks(expired).await?;
        self.delete_tasks(surplus).await?;
        Ok(more)
    }
}
