//! Hooks, their leases, what their receivers know, and watched agents.

use std::collections::BTreeSet;

use a2a_registry_domain::hook::{HookFormat, HookState};
use a2a_registry_domain::timestamp::DAY;
use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::sea_query::{Condition, LockBehavior, LockType, OnConflict};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, EntityTrait, IntoActiveModel, PaginatorTrait, QueryFilter,
    QueryOrder, QuerySelect, QueryTrait, Select,
};
use uuid::Uuid;

use super::bulk_rows::lock_for_update;
use super::entity::queries::{page_before, rows_where_in};
use super::entity::{agent_watch, hook, hook_agent, hook_delivery};
use super::{Executor, Store, StoreError, WriteTransaction};

/// No delivery is put off longer than this: a later time was set by a clock that was ahead.
const MAX_PAUSE: i64 = 2 * DAY;
/// Hooks that one statement updates: a statement has a bounded number of parameters.
const HOOKS_PER_UPDATE: usize = 1_000;

/// A page of hooks, the newest first, of one account or of all.
pub async fn hook_page(
    db: &impl Executor,
    account: Option<Uuid>,
    before: Option<Uuid>,
    limit: u64,
) -> Result<Vec<hook::Model>, StoreError> {
    let own = hook::Entity::find().apply_if(account, |query, account| {
        query.filter(hook::Column::AccountId.eq(account))
    });
    let page = page_before(own, hook::Column::Id, before, limit);
    Ok(page.all(db.connection()).await?)
}

pub async fn hook_by_id(db: &impl Executor, id: Uuid) -> Result<Option<hook::Model>, StoreError> {
    let row = hook::Entity::find_by_id(id);
    Ok(row.one(db.connection()).await?)
}

pub async fn hook_count(db: &impl Executor) -> Result<u64, StoreError> {
    Ok(hook::Entity::find().count(db.connection()).await?)
}

/// The hooks whose receivers have confirmed them, by id.
pub async fn active_hooks(db: &impl Executor) -> Result<Vec<hook::Model>, StoreError> {
    Ok(select_active_hooks().all(db.connection()).await?)
}

/// The active hooks that fail, of one account or of all, those that have failed longest first.
pub async fn failing_hooks(
    db: &impl Executor,
    account: Option<Uuid>,
    limit: u64,
) -> Result<Vec<hook::Model>, StoreError> {
    let failing = hook::Entity::find()
        .filter(hook::Column::State.eq(HookState::Active.as_str()))
        .filter(hook::Column::FailingSince.is_not_null())
        .apply_if(account, |query, account| {
            query.filter(hook::Column::AccountId.eq(account))
        })
        .order_by_asc(hook::Column::FailingSince)
        .limit(limit);
    Ok(failing.all(db.connection()).await?)
}

/// What receivers know of these agents.
pub async fn known_hook_agents(
    db: &impl Executor,
    agents: &[Uuid],
) -> Result<Vec<hook_agent::Model>, StoreError> {
    let query = hook_agent::Entity::find();
    rows_where_in(db, query, hook_agent::Column::AgentId, agents).await
}

/// All that the receiver of a hook knows.
pub async fn agents_known_to_hook(
    db: &impl Executor,
    hook: Uuid,
) -> Result<Vec<hook_agent::Model>, StoreError> {
    Ok(hook_agent::Entity::find()
        .filter(hook_agent::Column::HookId.eq(hook))
        .all(db.connection())
        .await?)
}

pub async fn known_agent_count(db: &impl Executor, hook: Uuid) -> Result<u64, StoreError> {
    Ok(hook_agent::Entity::find()
        .filter(hook_agent::Column::HookId.eq(hook))
        .count(db.connection())
        .await?)
}

/// The agents that an account watches, the last added first.
pub async fn watched_agents(db: &impl Executor, account: Uuid) -> Result<Vec<Uuid>, StoreError> {
    let rows = agent_watch::Entity::find()
        .filter(agent_watch::Column::AccountId.eq(account))
        .order_by_desc(agent_watch::Column::CreatedAt)
        .all(db.connection())
        .await?;
    Ok(rows.into_iter().map(|row| row.agent_id).collect())
}

#[derive(Debug, Clone, Copy)]
pub struct HookLeaseRequest {
    pub now: i64,
    /// When the lease expires, microseconds.
    pub leased_until: i64,
    pub lease: i64,
    /// When the next mail may be sent to the same account.
    pub next_mail_at: i64,
}

impl Store {
    /// Leases the hook whose delivery has been due longest. One process at a time sends to a hook.
    pub async fn lease_hook(
        &self,
        request: &HookLeaseRequest,
    ) -> Result<Option<hook::Model>, StoreError> {
        // Usually nothing is due: this read takes no lock.
        let due = select_due_hooks(request.now).one(self.connection());
        let Some(due) = due.await? else {
            return Ok(None);
        };
        let write = self.begin_write().await?;
        let mut query = select_due_hooks(request.now);
        if due.format == HookFormat::Mail {
            // This write changes the account's other hooks too, so it locks all of them first.
            write.lock_active_hooks(Some(due.account_id)).await?;
            query = query.filter(hook::Column::Id.eq(due.id));
        } else {
            query = query.filter(hook::Column::Format.ne(HookFormat::Mail.as_str()));
            if write.locks_rows() {
                query = query.lock_with_behavior(LockType::Update, LockBehavior::SkipLocked);
            }
        }
        let Some(mut row) = query.one(write.connection()).await? else {
            return Ok(None);
        };
        row.lease = Some(request.lease);
        row.leased_until = Some(request.leased_until);
        if row.format == HookFormat::Mail {
            // Before anything is sent, so that no other process sends a mail to this account meanwhile.
            write
                .postpone_mails(row.account_id, request.next_mail_at)
                .await?;
            // The others are first at the next turn.
            row.not_before = request.next_mail_at.saturating_add(1);
        }
        write.update_hook(row.clone()).await?;
        write.commit().await?;
        Ok(Some(row))
    }
}

impl WriteTransaction {
    pub async fn insert_hook(&self, row: hook::Model) -> Result<(), StoreError> {
        self.insert_rows([row.into_active_model()], None).await
    }

    /// Reads a hook that no other write can change until this one ends.
    pub async fn lock_hook(&self, id: Uuid) -> Result<Option<hook::Model>, StoreError> {
        let row = lock_for_update(self, hook::Entity::find_by_id(id));
        Ok(row.one(self.connection()).await?)
    }

    /// Locks the active hooks of an account, or of all, by id. A write that changes several hooks, or what their
    /// receivers know, locks them first, and all in this order: otherwise two such writes could deadlock.
    pub async fn lock_active_hooks(
        &self,
        account: Option<Uuid>,
    ) -> Result<Vec<hook::Model>, StoreError> {
        let query = select_active_hooks().apply_if(account, |query, account| {
            query.filter(hook::Column::AccountId.eq(account))
        });
        let rows = lock_for_update(self, query);
        Ok(rows.all(self.connection()).await?)
    }

    /// Locks those of these hooks that are active, in the same order.
    pub async fn lock_active_hooks_by_id(
        &self,
        ids: BTreeSet<Uuid>,
    ) -> Result<Vec<hook::Model>, StoreError> {
        let ids: Vec<Uuid> = ids.into_iter().collect();
        let query = lock_for_update(self, select_active_hooks());
        rows_where_in(self, query, hook::Column::Id, &ids).await
    }

    /// Writes all columns of a hook that this write has locked.
    pub async fn update_hook(&self, row: hook::Model) -> Result<(), StoreError> {
        let id = row.id;
        let mut active = row.into_active_model().reset_all();
        active.id = NotSet;
        let update = hook::Entity::update_many()
            .set(active)
            .filter(hook::Column::Id.eq(id));
        self.update_rows(update).await
    }

    /// Has the active hooks of an account that send mails wait until then, or longer if they do already. This write
    /// has locked them.
    async fn postpone_mails(&self, account: Uuid, until: i64) -> Result<(), StoreError> {
        let update = hook::Entity::update_many()
            .set(hook::ActiveModel {
                not_before: Set(until),
                ..Default::default()
            })
            .filter(hook::Column::AccountId.eq(account))
            .filter(hook::Column::State.eq(HookState::Active.as_str()))
            .filter(hook::Column::Format.eq(HookFormat::Mail.as_str()))
            .filter(hook::Column::NotBefore.lt(until));
        self.update_rows(update).await
    }

    /// Deletes a hook with its deliveries and what its receiver knows.
    pub async fn delete_hook(&self, id: Uuid) -> Result<(), StoreError> {
        let deliveries = hook_delivery::Entity::delete_many();
        self.delete_rows(deliveries.filter(hook_delivery::Column::HookId.eq(id)))
            .await?;
        let known = hook_agent::Entity::delete_many();
        self.delete_rows(known.filter(hook_agent::Column::HookId.eq(id)))
            .await?;
        let hook = hook::Entity::delete_many();
        self.delete_rows(hook.filter(hook::Column::Id.eq(id))).await
    }

    /// Has all agents compared with what receivers know: for the active hooks of one account, or for all. Returns
    /// them; this write has locked them.
    pub async fn request_hook_comparison(
        &self,
        account: Option<Uuid>,
        now: i64,
    ) -> Result<Vec<Uuid>, StoreError> {
        let rows = self.lock_active_hooks(account).await?;
        let ids: Vec<Uuid> = rows.into_iter().map(|row| row.id).collect();
        let requested = hook::ActiveModel {
            compare_requested_at: Set(Some(now)),
            ..Default::default()
        };
        self.update_hooks(&ids, &requested).await?;
        Ok(ids)
    }

    /// Writes the same values to hooks that this write has locked.
    pub(super) async fn update_hooks(
        &self,
        ids: &[Uuid],
        values: &hook::ActiveModel,
    ) -> Result<(), StoreError> {
        for some in ids.chunks(HOOKS_PER_UPDATE) {
            let update = hook::Entity::update_many()
                .set(values.clone())
                .filter(hook::Column::Id.is_in(some.iter().copied()));
            self.update_rows(update).await?;
        }
        Ok(())
    }

    /// Records what receivers know, in place of what they knew.
    pub async fn upsert_hook_agents(
        &self,
        rows: impl IntoIterator<Item = hook_agent::Model>,
    ) -> Result<(), StoreError> {
        use hook_agent::Column as C;
        let conflict = OnConflict::columns([C::HookId, C::AgentId])
            .update_columns([C::CardDigest, C::Facts])
            .to_owned();
        let rows = rows.into_iter().map(IntoActiveModel::into_active_model);
        self.insert_rows(rows, Some(conflict)).await
    }

    pub async fn delete_hook_agent(&self, hook: Uuid, agent: Uuid) -> Result<(), StoreError> {
        let rows = hook_agent::Entity::delete_many()
            .filter(hook_agent::Column::HookId.eq(hook))
            .filter(hook_agent::Column::AgentId.eq(agent));
        self.delete_rows(rows).await
    }

    pub async fn upsert_agent_watch(&self, row: agent_watch::Model) -> Result<(), StoreError> {
        let conflict =
            OnConflict::columns([agent_watch::Column::AccountId, agent_watch::Column::AgentId])
                .update_column(agent_watch::Column::CreatedAt)
                .to_owned();
        self.insert_rows([row.into_active_model()], Some(conflict))
            .await
    }

    pub async fn delete_agent_watch(&self, account: Uuid, agent: Uuid) -> Result<(), StoreError> {
        let rows = agent_watch::Entity::delete_many()
            .filter(agent_watch::Column::AccountId.eq(account))
            .filter(agent_watch::Column::AgentId.eq(agent));
        self.delete_rows(rows).await
    }
}

fn select_active_hooks() -> Select<hook::Entity> {
    hook::Entity::find()
        .filter(hook::Column::State.eq(HookState::Active.as_str()))
        .order_by_asc(hook::Column::Id)
}

/// The hooks to which something may be sent now, the one that has been due longest first.
fn select_due_hooks(now: i64) -> Select<hook::Entity> {
    use hook::Column as C;
    let far = now.saturating_add(MAX_PAUSE);
    let is_unleased = Condition::any()
        .add(C::LeasedUntil.is_null())
        .add(C::LeasedUntil.lt(now))
        .add(C::LeasedUntil.gt(far));
    let is_paced = Condition::any()
        .add(C::NotBefore.lte(now))
        .add(C::NotBefore.gt(far));
    hook::Entity::find()
        .filter(C::State.eq(HookState::Active.as_str()))
        .filter(C::DueAt.lte(now))
        .filter(is_paced)
        .filter(is_unleased)
        .order_by_asc(C::DueAt)
        .order_by_asc(C::NotBefore)
        .limit(1)
}
