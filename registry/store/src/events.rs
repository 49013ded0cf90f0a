//! The event log, which is also the audit log: events are appended in the transaction of the change that they report.

use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::timestamp::Timestamp;
use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbBackend, EntityTrait, FromQueryResult, Iterable,
    PaginatorTrait, QueryFilter, QueryOrder, QuerySelect, Statement,
};
use uuid::Uuid;

use super::bulk_rows::next_statement_row_count;
use super::connection::take_advisory_lock;
use super::entity::event;
use super::{Executor, StoreError, WriteTransaction};

/// The PostgreSQL advisory lock under which events are appended, from the append to the commit, so that
/// the order of `seq` is the order of commits and no follower can skip a row.
const APPEND_LOCK: i64 = 0x6132_6172_0002;

/// The PostgreSQL channel that wakes followers.
pub const NOTIFY_CHANNEL: &str = "a2a_registry_events";

/// An event to append.
#[derive(Debug, Clone)]
pub struct NewEvent {
    pub at: Timestamp,
    pub kind: EventKind,
    pub subject: String,
    /// The agent whose index entry the event changes.
    pub agent_id: Option<Uuid>,
    pub actor: String,
    pub data: serde_json::Value,
}

impl WriteTransaction {
    /// Appends events as the last step before the commit, and returns the highest `seq` assigned. On PostgreSQL this
    /// waits for every other append to end.
    pub async fn append_events(&self, events: Vec<NewEvent>) -> Result<Option<i64>, StoreError> {
        if events.is_empty() {
            return Ok(None);
        }
        self.pending_changes
            .mark_agents(events.iter().filter_map(|event| event.agent_id.as_ref()));
        let postgres = self.connection().get_database_backend() == DbBackend::Postgres;
        if postgres {
            take_advisory_lock(self.connection(), APPEND_LOCK).await?;
        }
        let rows = events.into_iter().map(|new| event::ActiveModel {
            seq: NotSet,
            at: Set(new.at.0),
            kind: Set(new.kind.into()),
            subject: Set(new.subject),
            agent_id: Set(new.agent_id),
            actor: Set(new.actor),
            data: Set(new.data.to_string()),
        });
        let mut rows: Vec<event::ActiveModel> = rows.collect();
        let columns = event::Column::iter().count();
        let mut highest = None;
        while !rows.is_empty() {
            let rest = rows.split_off(next_statement_row_count(rows.len(), columns));
            let inserted = event::Entity::insert_many(rows);
            // The last `seq`: rows are numbered in their order, and no other write appends meanwhile.
            highest = inserted.exec(self.connection()).await?.last_insert_id;
            rows = rest;
        }
        if postgres {
            let notify =
                Statement::from_string(DbBackend::Postgres, format!("NOTIFY {NOTIFY_CHANNEL}"));
            self.connection().execute_raw(notify).await?;
        }
        Ok(highest)
    }
}

/// The highest `seq`; 0 without events.
pub async fn highest_event_seq(db: &impl Executor) -> Result<i64, StoreError> {
    #[derive(FromQueryResult)]
    struct MaxSeqRow {
        seq: Option<i64>,
    }
    let row = event::Entity::find()
        .select_only()
        .column_as(event::Column::Seq.max(), "seq")
        .into_model::<MaxSeqRow>()
        .one(db.connection())
        .await?;
    Ok(row.and_then(|row| row.seq).unwrap_or(0))
}

/// Events after `seq`, oldest first.
pub async fn events_after(
    db: &impl Executor,
    seq: i64,
    limit: u64,
) -> Result<Vec<event::Model>, StoreError> {
    Ok(event::Entity::find()
        .filter(event::Column::Seq.gt(seq))
        .order_by_asc(event::Column::Seq)
        .limit(limit)
        .all(db.connection())
        .await?)
}

/// The agent that an event is about: whose index entry it changes, or which its data names.
pub fn event_agent(indexed: Option<Uuid>, data: &serde_json::Value) -> Option<Uuid> {
    let named = || data["agent"].as_str()?.parse().ok();
    indexed.or_else(named)
}

/// Whether an agent has an event of this kind with exactly this data.
pub async fn agent_has_event(
    db: &impl Executor,
    agent: Uuid,
    kind: EventKind,
    data: &serde_json::Value,
) -> Result<bool, StoreError> {
    let count = event::Entity::find()
        .filter(event::Column::AgentId.eq(agent))
        .filter(event::Column::Kind.eq(kind.as_str()))
        .filter(event::Column::Data.eq(data.to_string()))
        .count(db.connection())
        .await?;
    Ok(count > 0)
}
