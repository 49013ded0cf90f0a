//! Agents and their holds.

use std::collections::HashSet;

use a2a_registry_domain::lifecycle::{Hold, Lifecycle, Visibility};
use a2a_registry_domain::ownership::DomainState;
use sea_orm::sea_query::{Expr, ExprTrait as _, OnConflict, Query, SelectStatement};
use sea_orm::{
    ColumnTrait, Condition, EntityTrait, IntoActiveModel, Iterable, PaginatorTrait, QueryFilter,
    QueryOrder, QuerySelect,
};
use uuid::Uuid;

use super::bulk_rows::{MAX_BOUND_VALUES, is_storable_text, lock_for_update};
use super::entity::queries::{page_after, rows_where_in};
use super::entity::{agent, domain, hold, proof};
use super::owner_vouches::host_and_parents;
use super::urn_authorities;
use super::{Executor, StoreError, StoredEnum, WriteTransaction};

/// The agents with these ids, in no order; locked until the write ends if `db` is a write.
pub async fn agents_by_ids(
    db: &impl Executor,
    ids: &[Uuid],
) -> Result<Vec<agent::Model>, StoreError> {
    let query = agent::Entity::find().order_by_asc(agent::Column::Id);
    rows_where_in(db, lock_for_update(db, query), agent::Column::Id, ids).await
}

/// Number of agents that an index contains: those that have a card and are not retired.
pub async fn indexed_agent_count(db: &impl Executor) -> Result<u64, StoreError> {
    let has_card = Condition::any()
        .add(agent::Column::ApprovedVersion.is_not_null())
        .add(agent::Column::NewestVersion.is_not_null());
    Ok(agent::Entity::find()
        .filter(agent::Column::RetiredAt.is_null())
        .filter(has_card)
        .count(db.connection())
        .await?)
}

/// The agents that an account owns or has submitted, newest first.
pub async fn agents_of_account(
    db: &impl Executor,
    account: Uuid,
    limit: u64,
) -> Result<Vec<agent::Model>, StoreError> {
    let own = Condition::any()
        .add(agent::Column::OwnerId.eq(account))
        .add(agent::Column::Submitter.eq(account));
    Ok(agent::Entity::find()
        .filter(own)
        .order_by_desc(agent::Column::Id)
        .limit(limit)
        .all(db.connection())
        .await?)
}

/// The agent with this URN: its own, or the one that it has under a company's authority.
pub async fn agent_by_urn(
    db: &impl Executor,
    urn: &str,
) -> Result<Option<agent::Model>, StoreError> {
    if !is_storable_text(urn) {
        return Ok(None);
    }
    let has_urn = Condition::any()
        .add(agent::Column::Urn.eq(urn))
        .add(agent::Column::AuthorityUrn.eq(urn));
    Ok(agent::Entity::find()
        .filter(has_urn)
        .one(db.connection())
        .await?)
}

/// The domains among these about which a registry that only repeats the catalogs of others must show nothing. These
/// are domains that an owner has or had proved, directly or by a parent's record for all hosts below it, because this
/// registry knows all their names, assigned or not; domains that have opted out; domains with an agent that is
/// rejected, on hold, retired or not public; and authorities under which this registry has named agents. An undecided
/// agent hides nothing, because anyone who may register can name any domain.
pub async fn undisclosed_domains(
    db: &impl Executor,
    names: &HashSet<String>,
) -> Result<HashSet<String>, StoreError> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut undisclosed = HashSet::new();
    for chunk in names.chunks(MAX_BOUND_VALUES) {
        let proved_states = [
            DomainState::Lapsed,
            DomainState::Disputed,
            DomainState::OptedOut,
        ];
        let proved_or_opted_out = Condition::any()
            .add(domain::Column::OwnerId.is_not_null())
            .add(domain::Column::State.is_in(proved_states.map(DomainState::as_str)))
            .add(domain::Column::OptedOutBy.is_not_null());
        let proved_or_opted_out: Vec<String> = domain::Entity::find()
            .select_only()
            .column(domain::Column::Name)
            .filter(domain::Column::Name.is_in(chunk.iter().copied()))
            .filter(proved_or_opted_out)
            .into_tuple()
            .all(db.connection())
            .await?;
        let held_agents = Query::select()
            .column(hold::Column::AgentId)
            .from(hold::Entity)
            .take();
        let disclosed_states = [
            Lifecycle::Pending,
            Lifecycle::Approved,
            Lifecycle::Deprecated,
        ];
        let hidden = Condition::any()
            .add(agent::Column::Lifecycle.is_not_in(disclosed_states.map(StoredEnum::from)))
            .add(agent::Column::Visibility.ne(StoredEnum::from(Visibility::Public)))
            .add(agent::Column::Urn.is_not_null())
            .add(agent::Column::Id.in_subquery(held_agents));
        let hidden: Vec<String> = agent::Entity::find()
            .select_only()
            .column(agent::Column::Domain)
            .distinct()
            .filter(agent::Column::Domain.is_in(chunk.iter().copied()))
            .filter(hidden)
            .into_tuple()
            .all(db.connection())
            .await?;
        undisclosed.extend(proved_or_opted_out.into_iter().chain(hidden));
        undisclosed.extend(domains_in_proved_zones(db, chunk).await?);
        undisclosed.extend(urn_authorities::used_authorities(db, chunk).await?);
    }
    Ok(undisclosed)
}

/// The domains among these, registered or not, that equal or lie below a name whose record proves all hosts below it.
async fn domains_in_proved_zones(
    db: &impl Executor,
    names: &[&str],
) -> Result<Vec<String>, StoreError> {
    let above: HashSet<&str> = names
        .iter()
        .flat_map(|name| host_and_parents(name))
        .collect();
    let above: Vec<&str> = above.into_iter().collect();
    let mut proved_zones: HashSet<String> = HashSet::new();
    for chunk in above.chunks(MAX_BOUND_VALUES) {
        let zones: Vec<String> = proof::Entity::find()
            .select_only()
            .column(proof::Column::Zone)
            .distinct()
            .filter(proof::Column::Zone.is_in(chunk.iter().copied()))
            .filter(proof::Column::EndedAt.is_null())
            .filter(proof::Column::AccountId.is_not_null())
            .into_tuple()
            .all(db.connection())
            .await?;
        proved_zones.extend(zones);
    }
    let is_below = |name: &&&str| host_and_parents(name).any(|zone| proved_zones.contains(zone));
    let below = names.iter().filter(is_below);
    Ok(below.map(|name| (*name).to_owned()).collect())
}

/// The URNs of a domain's agents, retired ones included: their own, and those under a company's authority.
pub async fn agent_urns_by_domain(
    db: &impl Executor,
    domain: &str,
) -> Result<Vec<String>, StoreError> {
    let urns: Vec<(Option<String>, Option<String>)> = agent::Entity::find()
        .select_only()
        .columns([agent::Column::Urn, agent::Column::AuthorityUrn])
        .filter(agent::Column::Domain.eq(domain))
        .into_tuple()
        .all(db.connection())
        .await?;
    let urns = urns.into_iter().flat_map(|(own, under)| [own, under]);
    Ok(urns.flatten().collect())
}

/// The agents of these domains that are not retired, oldest first; locked until the write ends if `db` is a write.
pub async fn live_agents_by_domain(
    db: &impl Executor,
    domain_ids: &[i64],
) -> Result<Vec<agent::Model>, StoreError> {
    let query = agent::Entity::find()
        .filter(agent::Column::RetiredAt.is_null())
        .order_by_asc(agent::Column::Id);
    rows_where_in(
        db,
        lock_for_update(db, query),
        agent::Column::DomainId,
        domain_ids,
    )
    .await
}

/// The ids of the agents of these domains that are not retired, without locking the agents.
pub async fn live_agent_ids_by_domain(
    db: &impl Executor,
    domain_ids: &[i64],
) -> Result<Vec<Uuid>, StoreError> {
    Ok(agent::Entity::find()
        .select_only()
        .column(agent::Column::Id)
        .filter(agent::Column::RetiredAt.is_null())
        .filter(agent::Column::DomainId.is_in(domain_ids.iter().copied()))
        .into_tuple()
        .all(db.connection())
        .await?)
}

/// The ids of some agents with a checked endpoint, without locking the agents.
pub async fn agents_with_endpoint_check(
    db: &impl Executor,
    limit: u64,
) -> Result<Vec<Uuid>, StoreError> {
    Ok(agent::Entity::find()
        .select_only()
        .column(agent::Column::Id)
        .filter(agent::Column::EndpointCheckId.is_not_null())
        .order_by_asc(agent::Column::Id)
        .limit(limit)
        .into_tuple()
        .all(db.connection())
        .await?)
}

/// The listed agents of these domains: public ones, or all of them with `include_restricted`.
pub async fn listed_agents_by_domain(
    db: &impl Executor,
    domains: &[i64],
    include_restricted: bool,
) -> Result<Vec<agent::Model>, StoreError> {
    let listed = [Lifecycle::Approved, Lifecycle::Deprecated].map(Lifecycle::as_str);
    let mut query = agent::Entity::find()
        .filter(agent::Column::DomainId.is_in(domains.iter().copied()))
        .filter(agent::Column::RetiredAt.is_null())
        .filter(agent::Column::Lifecycle.is_in(listed))
        .filter(Expr::exists(agent_holds_subquery(None)).not())
        .order_by_asc(agent::Column::Id);
    if !include_restricted {
        query = query.filter(agent::Column::Visibility.eq(Visibility::Public.as_str()));
    }
    Ok(query.all(db.connection()).await?)
}

/// A subquery for the holds of the outer query's agent: of one kind, or all.
pub(super) fn agent_holds_subquery(kind: Option<Hold>) -> SelectStatement {
    let mut holds = Query::select()
        .column(hold::Column::AgentId)
        .from(hold::Entity)
        .and_where(
            Expr::col((hold::Entity, hold::Column::AgentId))
                .equals((agent::Entity, agent::Column::Id)),
        )
        .take();
    if let Some(kind) = kind {
        holds.and_where(hold::Column::Hold.eq(kind.as_str()));
    }
    holds
}

/// A page of all agents with ids above `after`, by id, retired ones included.
pub async fn agents_page_by_id(
    db: &impl Executor,
    after: Option<Uuid>,
    limit: u64,
) -> Result<Vec<agent::Model>, StoreError> {
    let page = page_after(agent::Entity::find(), agent::Column::Id, after, limit);
    Ok(page.all(db.connection()).await?)
}

/// The ids and audiences of agents that are not retired, with ids above `after`, by id.
pub async fn agent_audiences(
    db: &impl Executor,
    after: Option<Uuid>,
    limit: u64,
) -> Result<Vec<(Uuid, String)>, StoreError> {
    use agent::Column as C;
    let query = agent::Entity::find()
        .select_only()
        .columns([C::Id, C::Audience])
        .filter(C::Audience.is_not_null())
        .filter(C::RetiredAt.is_null());
    let page = page_after(query, C::Id, after, limit);
    Ok(page.into_tuple().all(db.connection()).await?)
}

pub async fn agents_shown_to_collection(
    db: &impl Executor,
    collection: Uuid,
    limit: u64,
) -> Result<Vec<agent::Model>, StoreError> {
    Ok(agent::Entity::find()
        .filter(agent::Column::Collections.contains(collection.to_string()))
        .limit(limit)
        .all(db.connection())
        .await?)
}

pub async fn holds_of_agents(
    db: &impl Executor,
    agents: &[Uuid],
) -> Result<Vec<hold::Model>, StoreError> {
    let query = hold::Entity::find().order_by_asc(hold::Column::Since);
    rows_where_in(db, query, hold::Column::AgentId, agents).await
}

pub async fn holds_by_kind(db: &impl Executor, hold: Hold) -> Result<Vec<hold::Model>, StoreError> {
    Ok(hold::Entity::find()
        .filter(hold::Column::Hold.eq(hold.as_str()))
        .all(db.connection())
        .await?)
}

impl WriteTransaction {
    /// Inserts agents, or updates all changeable columns of existing ones.
    pub async fn upsert_agents(&self, rows: Vec<agent::Model>) -> Result<(), StoreError> {
        use agent::Column as C;
        self.pending_changes
            .mark_domains(rows.iter().map(|row| row.domain_id));
        let changeable = C::iter()
            .filter(|column| !matches!(column, C::Id | C::DomainId | C::Domain | C::CreatedAt));
        let conflict = OnConflict::column(C::Id)
            .update_columns(changeable)
            .to_owned();
        let rows = rows.into_iter().map(IntoActiveModel::into_active_model);
        self.insert_rows(rows, Some(conflict)).await
    }

    /// Inserts holds; an existing one keeps its reason.
    pub async fn insert_holds(&self, rows: Vec<hold::Model>) -> Result<(), StoreError> {
        self.pending_changes
            .mark_agents(rows.iter().map(|row| &row.agent_id));
        let conflict = OnConflict::columns([hold::Column::AgentId, hold::Column::Hold])
            .do_nothing()
            .to_owned();
        let rows = rows.into_iter().map(IntoActiveModel::into_active_model);
        self.insert_rows(rows, Some(conflict)).await
    }

    pub async fn lift_hold(&self, agent: Uuid, hold: Hold) -> Result<bool, StoreError> {
        self.pending_changes.mark_agents([&agent]);
        let outcome = hold::Entity::delete_by_id((agent, hold.into()))
            .exec(self.connection())
            .await?;
        Ok(outcome.rows_affected > 0)
    }
}
