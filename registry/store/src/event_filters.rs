//! Events that a filter selects, within a range of the log, so that a filter without matches reads a bounded part of it.

use a2a_registry_domain::event::EventKind;
use sea_orm::sea_query::Query;
use sea_orm::{ColumnTrait, Condition, EntityTrait, Order, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use super::bulk_rows::is_storable_text;
use super::entity::{agent, event};
use super::{Executor, StoreError};

/// Conditions that an event must all meet.
#[derive(Debug, Clone, Default)]
pub struct EventFilter {
    /// One of these kinds; empty for all.
    pub kinds: Vec<EventKind>,
    /// About this agent or one of its reviews.
    pub agent: Option<AgentSubjects>,
    /// About this domain or one of its agents.
    pub domain: Option<String>,
    /// Caused by this account, or about it.
    pub account: Option<AccountSubjects>,
    pub since: Option<i64>,
    pub until: Option<i64>,
}

/// An agent with the ids of its reviews, as subjects of events.
#[derive(Debug, Clone)]
pub struct AgentSubjects {
    pub agent: Uuid,
    pub reviews: Vec<Uuid>,
}

/// An account by its name as an actor, and by its id as a subject.
#[derive(Debug, Clone)]
pub struct AccountSubjects {
    pub name: String,
    pub id: Option<Uuid>,
}

/// The part of the event log to read: events after `after`, and before `before` if it is given.
#[derive(Debug, Clone, Copy)]
pub struct EventRange {
    pub after: i64,
    pub before: Option<i64>,
    pub newest_first: bool,
}

/// The matching events of a part of the log.
pub async fn matching_events(
    db: &impl Executor,
    filter: &EventFilter,
    range: EventRange,
    limit: u64,
) -> Result<Vec<event::Model>, StoreError> {
    use event::Column as C;
    let mut texts = filter
        .domain
        .iter()
        .chain(filter.account.iter().map(|one| &one.name));
    if !texts.all(|text| is_storable_text(text)) {
        return Ok(Vec::new());
    }
    let mut conditions = Condition::all().add(C::Seq.gt(range.after));
    if let Some(before) = range.before {
        conditions = conditions.add(C::Seq.lt(before));
    }
    if !filter.kinds.is_empty() {
        let kinds = filter.kinds.iter().map(|kind| kind.as_str());
        conditions = conditions.add(C::Kind.is_in(kinds));
    }
    if let Some(about) = &filter.agent {
        let mut subjects: Vec<String> = about.reviews.iter().map(Uuid::to_string).collect();
        subjects.push(about.agent.to_string());
        let of_agent = Condition::any()
            .add(C::AgentId.eq(about.agent))
            .add(C::Subject.is_in(subjects));
        conditions = conditions.add(of_agent);
    }
    if let Some(domain) = &filter.domain {
        let agents_of_domain = Query::select()
            .column(agent::Column::Id)
            .from(agent::Entity)
            .and_where(agent::Column::Domain.eq(domain.as_str()))
            .take();
        let of_domain = Condition::any()
            .add(C::Subject.eq(domain.as_str()))
            .add(C::AgentId.in_subquery(agents_of_domain));
        conditions = conditions.add(of_domain);
    }
    if let Some(account) = &filter.account {
        let mut subjects = vec![account.name.clone()];
        subjects.extend(account.id.map(|id| id.to_string()));
        let of_account = Condition::any()
            .add(C::Actor.eq(account.name.as_str()))
            .add(C::Subject.is_in(subjects));
        conditions = conditions.add(of_account);
    }
    if let Some(since) = filter.since {
        conditions = conditions.add(C::At.gte(since));
    }
    if let Some(until) = filter.until {
        conditions = conditions.add(C::At.lt(until));
    }
    let order = match range.newest_first {
        true => Order::Desc,
        false => Order::Asc,
    };
    Ok(event::Entity::find()
        .filter(conditions)
        .order_by(C::Seq, order)
        .limit(limit)
        .all(db.connection())
        .await?)
}
