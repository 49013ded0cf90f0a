//! Deliveries of hooks: queued with the events that they report, sent in order for each agent, and kept for a while.

use a2a_registry_domain::hook::DeliveryState;
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Condition, Expr, OnConflict};
use sea_orm::{
    ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait,
    Select,
};
use uuid::Uuid;

use super::accounts::{unset_id, without_id};
use super::entity::queries::page_before;
use super::entity::{hook, hook_delivery};
use super::{Executor, StoreError, WriteTransaction};

/// Deliveries of a hook that wait at most. Beyond that none is queued, and all agents are compared later.
pub const MAX_WAITING_DELIVERIES: u64 = 40_000;
/// Ended deliveries of a hook that are kept at most.
pub const MAX_ENDED_DELIVERIES: u64 = 10_000;
/// Hooks whose surplus deliveries are deleted at a time.
const HOOKS_PER_TRIM: u64 = 100;

/// An earlier delivery about the same agent is sent first, so that each receiver learns of an agent's changes in
/// order.
const IS_FIRST_OF_AGENT: &str = "NOT EXISTS (SELECT 1 FROM hook_deliveries AS earlier \
     WHERE earlier.hook_id = hook_deliveries.hook_id AND earlier.agent_id = hook_deliveries.agent_id \
     AND earlier.state = 'waiting' AND earlier.id < hook_deliveries.id)";

/// The deliveries of a hook that may be sent now, the oldest first; without a time all that wait, for a digest, in
/// which those about one agent are in order.
pub async fn due_hook_deliveries(
    db: &impl Executor,
    hook: Uuid,
    now: Option<i64>,
    limit: u64,
) -> Result<Vec<hook_delivery::Model>, StoreError> {
    use hook_delivery::Column as C;
    let waiting = select_waiting(hook).apply_if(now, |query, now| {
        let due = query.filter(C::DueAt.lte(now));
        due.filter(Expr::cust(IS_FIRST_OF_AGENT))
    });
    Ok(waiting
        .order_by_asc(C::Id)
        .limit(limit)
        .all(db.connection())
        .await?)
}

/// A page of the deliveries of a hook, the newest first.
pub async fn hook_delivery_page(
    db: &impl Executor,
    hook: Uuid,
    state: Option<DeliveryState>,
    before: Option<i64>,
    limit: u64,
) -> Result<Vec<hook_delivery::Model>, StoreError> {
    use hook_delivery::Column as C;
    let own = hook_delivery::Entity::find().filter(C::HookId.eq(hook));
    let own = own.apply_if(state, |query, state| {
        query.filter(C::State.eq(state.as_str()))
    });
    let page = page_before(own, C::Id, before, limit);
    Ok(page.all(db.connection()).await?)
}

pub async fn hook_delivery_count(
    db: &impl Executor,
    hook: Uuid,
    state: DeliveryState,
) -> Result<u64, StoreError> {
    use hook_delivery::Column as C;
    Ok(hook_delivery::Entity::find()
        .filter(C::HookId.eq(hook))
        .filter(C::State.eq(state.as_str()))
        .count(db.connection())
        .await?)
}

/// What became of a delivery.
#[derive(Debug, Clone)]
pub enum DeliveryOutcome {
    Delivered {
        status: Option<i32>,
    },
    /// To be sent again at `due_at`, or given up if that is null.
    Failed {
        status: Option<i32>,
        error: String,
        due_at: Option<i64>,
    },
    /// There was nothing to tell.
    Moot,
}

impl WriteTransaction {
    /// Queues deliveries to hooks that this write has locked; they are due now. One about sight that waits already
    /// reports the newer event instead: it says what is true when it is sent.
    pub async fn queue_hook_deliveries(
        &self,
        rows: Vec<hook_delivery::Model>,
        now: i64,
    ) -> Result<(), StoreError> {
        use hook_delivery::Column as C;
        let mut hooks: Vec<Uuid> = rows.iter().map(|row| row.hook_id).collect();
        hooks.sort_unstable();
        hooks.dedup();
        let due = hook::ActiveModel {
            due_at: Set(Some(now)),
            ..Default::default()
        };
        self.update_hooks(&hooks, &due).await?;
        let conflict = OnConflict::column(C::Slot).update_column(C::Seq).to_owned();
        let rows = rows.into_iter().map(|row| {
            without_id(row, |active: &mut hook_delivery::ActiveModel| {
                active.id = unset_id()
            })
        });
        self.insert_rows(rows, Some(conflict)).await?;
        Ok(())
    }

    /// Records what became of a delivery. If a newer event was queued under it since it was read, it waits again.
    pub async fn record_hook_delivery(
        &self,
        row: &hook_delivery::Model,
        outcome: &DeliveryOutcome,
        (now, new_message_id): (i64, Uuid),
    ) -> Result<(), StoreError> {
        use hook_delivery::Column as C;
        let attempts = row.attempts.saturating_add(1);
        let first_attempt_at = Some(row.first_attempt_at.unwrap_or(now));
        let unchanged = Condition::all()
            .add(C::Id.eq(row.id))
            .add(C::State.eq(DeliveryState::Waiting.as_str()));
        let (state, status, error) = match outcome {
            DeliveryOutcome::Failed {
                status,
                error,
                due_at: due_at @ Some(_),
            } => {
                let again = hook_delivery::ActiveModel {
                    attempts: Set(attempts),
                    first_attempt_at: Set(first_attempt_at),
                    status: Set(*status),
                    error: Set(Some(error.clone())),
                    due_at: Set(*due_at),
                    ..Default::default()
                };
                let update = hook_delivery::Entity::update_many().set(again);
                return self.update_rows(update.filter(unchanged)).await;
            }
            DeliveryOutcome::Failed { status, error, .. } => {
                (DeliveryState::Dead, *status, Some(error.clone()))
            }
            DeliveryOutcome::Delivered { status } => (DeliveryState::Delivered, *status, None),
            DeliveryOutcome::Moot => {
                let delete = hook_delivery::Entity::delete_many().filter(unchanged);
                return self.delete_rows(delete.filter(C::Seq.eq(row.seq))).await;
            }
        };
        let ended = hook_delivery::ActiveModel {
            state: Set(state.into()),
            kind: Set(row.kind.clone()),
            slot: Set(None),
            attempts: Set(attempts),
            first_attempt_at: Set(first_attempt_at),
            due_at: Set(None),
            status: Set(status),
            error: Set(error),
            finished_at: Set(Some(now)),
            ..Default::default()
        };
        let update = hook_delivery::Entity::update_many()
            .set(ended)
            .filter(unchanged.clone())
            .filter(C::Seq.eq(row.seq));
        if update.exec(self.connection()).await?.rows_affected > 0 {
            return Ok(());
        }
        self.repeat_hook_delivery(unchanged, (now, new_message_id))
            .await
    }

    /// Has a delivery sent under another identifier, for the event that was queued under it.
    async fn repeat_hook_delivery(
        &self,
        delivery: Condition,
        (now, new_message_id): (i64, Uuid),
    ) -> Result<(), StoreError> {
        let next = hook_delivery::ActiveModel {
            message_id: Set(new_message_id),
            attempts: Set(0),
            first_attempt_at: Set(None),
            due_at: Set(Some(now)),
            ..Default::default()
        };
        let update = hook_delivery::Entity::update_many().set(next);
        self.update_rows(update.filter(delivery)).await
    }

    /// When the next delivery of a hook is due.
    pub async fn first_hook_delivery_due_at(&self, hook: Uuid) -> Result<Option<i64>, StoreError> {
        use hook_delivery::Column as C;
        let first = select_waiting(hook)
            .filter(Expr::cust(IS_FIRST_OF_AGENT))
            .order_by_asc(C::DueAt)
            .limit(1)
            .one(self.connection())
            .await?;
        Ok(first.and_then(|row| row.due_at))
    }

    /// Gives up all deliveries of a hook that wait.
    pub async fn give_up_hook_deliveries(
        &self,
        hook: Uuid,
        error: &str,
        now: i64,
    ) -> Result<(), StoreError> {
        use hook_delivery::Column as C;
        let update = hook_delivery::Entity::update_many()
            .set(hook_delivery::ActiveModel {
                state: Set(DeliveryState::Dead.into()),
                slot: Set(None),
                due_at: Set(None),
                error: Set(Some(error.to_owned())),
                finished_at: Set(Some(now)),
                ..Default::default()
            })
            .filter(C::HookId.eq(hook))
            .filter(C::State.eq(DeliveryState::Waiting.as_str()));
        self.update_rows(update).await
    }

    /// Has ended deliveries of a hook sent again, as they are: one of them, or all dead ones. Returns their number.
    pub async fn replay_hook_deliveries(
        &self,
        hook: Uuid,
        message: Option<Uuid>,
        now: i64,
    ) -> Result<u64, StoreError> {
        use hook_delivery::Column as C;
        let chosen = match message {
            Some(message) => Condition::all()
                .add(C::MessageId.eq(message))
                .add(C::State.ne(DeliveryState::Waiting.as_str())),
            None => Condition::all().add(C::State.eq(DeliveryState::Dead.as_str())),
        };
        let outcome = hook_delivery::Entity::update_many()
            .set(hook_delivery::ActiveModel {
                state: Set(DeliveryState::Waiting.into()),
                attempts: Set(0),
                first_attempt_at: Set(None),
                due_at: Set(Some(now)),
                finished_at: Set(None),
                ..Default::default()
            })
            .filter(C::HookId.eq(hook))
            .filter(chosen)
            .exec(self.connection())
            .await?;
        Ok(outcome.rows_affected)
    }

    /// Deletes deliveries that were made before `delivered_before` or given up before `dead_before`, and the oldest
    /// ended ones of hooks with more than [`MAX_ENDED_DELIVERIES`].
    pub async fn delete_old_hook_deliveries(
        &self,
        delivered_before: i64,
        dead_before: i64,
    ) -> Result<(), StoreError> {
        use hook_delivery::Column as C;
        for (state, before) in [
            (DeliveryState::Delivered, delivered_before),
            (DeliveryState::Dead, dead_before),
        ] {
            let old = hook_delivery::Entity::delete_many()
                .filter(C::State.eq(state.as_str()))
                .filter(C::FinishedAt.lt(before));
            self.delete_rows(old).await?;
        }
        let crowded: Vec<Uuid> = hook_delivery::Entity::find()
            .select_only()
            .column(C::HookId)
            .filter(C::FinishedAt.is_not_null())
            .group_by(C::HookId)
            .having(Expr::cust(format!("count(*) > {MAX_ENDED_DELIVERIES}")))
            .limit(HOOKS_PER_TRIM)
            .into_tuple()
            .all(self.connection())
            .await?;
        for hook in crowded {
            self.trim_hook_deliveries(hook, MAX_ENDED_DELIVERIES)
                .await?;
        }
        Ok(())
    }

    /// Deletes the oldest ended deliveries of a hook beyond this many.
    pub async fn trim_hook_deliveries(&self, hook: Uuid, kept: u64) -> Result<(), StoreError> {
        use hook_delivery::Column as C;
        let first_beyond: Option<i64> = hook_delivery::Entity::find()
            .select_only()
            .column(C::Id)
            .filter(C::HookId.eq(hook))
            .filter(C::FinishedAt.is_not_null())
            .order_by_desc(C::Id)
            .offset(kept)
            .limit(1)
            .into_tuple()
            .one(self.connection())
            .await?;
        let Some(first_beyond) = first_beyond else {
            return Ok(());
        };
        let beyond = hook_delivery::Entity::delete_many()
            .filter(C::HookId.eq(hook))
            .filter(C::FinishedAt.is_not_null())
            .filter(C::Id.lte(first_beyond));
        self.delete_rows(beyond).await
    }
}

fn select_waiting(hook: Uuid) -> Select<hook_delivery::Entity> {
    use hook_delivery::Column as C;
    hook_delivery::Entity::find()
        .filter(C::HookId.eq(hook))
        .filter(C::State.eq(DeliveryState::Waiting.as_str()))
}
