//! Events that meet conditions, within a range of the log, so that conditions without matches read a bounded part of
//! it.

use a2a_registry_domain::event::EventKind;
use sea_orm::sea_query::Query;
use sea_orm::{ColumnTrait, Condition, EntityTrait, Order, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use super::bulk_rows::is_storable_text;
use super::entity::{agent, event};
use super::{Executor, StoreError};

/// Conditions that an event must all meet. Those without values restrict nothing.
#[derive(Debug, Clone, Default)]
pub struct EventConditions {
    /// One of these kinds.
    pub kinds: Vec<EventKind>,
    /// About one of these agents.
    pub agents: Vec<Uuid>,
    /// About one of these domains or an agent of it. Events that name an agent only in their data meet this whatever
    /// the agent's domain is, which the caller tests.
    pub domains: Vec<String>,
    /// Caused by this account, or about it.
    pub account: Option<AccountSubjects>,
    pub since: Option<i64>,
    pub until: Option<i64>,
}

/// An account by its name as an actor, and by its id as a subject.
#[derive(Debug, Clone)]
pub struct AccountSubjects {
    pub name: String,
    pub id: Option<Uuid>,
}

/// The part of the event log to read: the events after `after` and before `before`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventRange {
    pub after: i64,
    pub before: i64,
    pub newest_first: bool,
}

/// The events of a part of the log that meet the conditions.
pub async fn matching_events(
    db: &impl Executor,
    wanted: &EventConditions,
    range: EventRange,
    limit: u64,
) -> Result<Vec<event::Model>, StoreError> {
    use event::Column as C;
    let account = wanted.account.iter().map(|account| &account.name);
    let mut texts = wanted.domains.iter().chain(account);
    if !texts.all(|text| is_storable_text(text)) {
        return Ok(Vec::new());
    }
    let mut conditions = Condition::all()
        .add(C::Seq.gt(range.after))
        .add(C::Seq.lt(range.before));
    if !wanted.kinds.is_empty() {
        let kinds = wanted.kinds.iter().map(|kind| kind.as_str());
        conditions = conditions.add(C::Kind.is_in(kinds));
    }
    if !wanted.agents.is_empty() {
        conditions = conditions.add(about_agents(&wanted.agents));
    }
    if !wanted.domains.is_empty() {
        conditions = conditions.add(about_domains(&wanted.domains));
    }
    if let Some(account) = &wanted.account {
        let mut subjects = vec![account.name.clone()];
        subjects.extend(account.id.map(|id| id.to_string()));
        let of_account = Condition::any()
            .add(C::Actor.eq(account.name.as_str()))
            .add(C::Subject.is_in(subjects));
        conditions = conditions.add(of_account);
    }
    if let Some(since) = wanted.since {
        conditions = conditions.add(C::At.gte(since));
    }
    if let Some(until) = wanted.until {
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

/// Events of these agents, and those that only name one in their data. Quotation marks within a text are escaped
/// there, so no text of others passes for the member.
fn about_agents(agents: &[Uuid]) -> Condition {
    use event::Column as C;
    let subjects = agents.iter().map(Uuid::to_string);
    let is_about = Condition::any()
        .add(C::AgentId.is_in(agents.iter().copied()))
        .add(C::Subject.is_in(subjects));
    agents.iter().fold(is_about, |is_about, agent| {
        is_about.add(C::Data.contains(format!("\"agent\":\"{agent}\"")))
    })
}

fn about_domains(domains: &[String]) -> Condition {
    use event::Column as C;
    let agents = Query::select()
        .column(agent::Column::Id)
        .from(agent::Entity)
        .and_where(agent::Column::Domain.is_in(domains.iter().map(String::as_str)))
        .take();
    let names_agent = Condition::all()
        .add(C::AgentId.is_null())
        .add(C::Data.contains("\"agent\":\""));
    Condition::any()
        .add(C::Subject.is_in(domains.iter().map(String::as_str)))
        .add(C::AgentId.in_subquery(agents))
        .add(names_agent)
}
