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

use super::entity::queries::{page_after, rows_with};
use super::entity::{agent, domain, hold, proof};
use super::owner_vouches::zones;
use super::rows::{MAX_VALUES, can_be_stored, locked};
use super::{Handle, Kept, StoreError, Write};

/// The agents with these ids, in no order; locked until a write ends, if `on` is one.
pub async fn agents_by_ids(
    on: &impl Handle,
    ids: &[Uuid],
) -> Result<Vec<agent::Model>, StoreError> {
    let query = agent::Entity::find().order_by_asc(agent::Column::Id);
    rows_with(on, locked(on, query), agent::Column::Id, ids).await
}

pub async fn agents_count(on: &impl Handle) -> Result<u64, StoreError> {
    Ok(agent::Entity::find().count(on.connection()).await?)
}

/// The agents that an account owns or has submitted, newest first.
pub async fn agents_of_account(
    on: &impl Handle,
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
        .all(on.connection())
        .await?)
}

pub async fn agent_by_urn(on: &impl Handle, urn: &str) -> Result<Option<agent::Model>, StoreError> {
    if !can_be_stored(urn) {
        return Ok(None);
    }
    Ok(agent::Entity::find()
        .filter(agent::Column::Urn.eq(urn))
        .one(on.connection())
        .await?)
}

/// Those of these domains that a registry which only repeats others' catalogs may not show. Of domains that an owner
/// has or had proved, directly or by a name above them for all hosts below it, this registry knows every name, assigned
/// or not. The others have opted out, or have an agent that was rejected, is on hold, retired or not public, whose name
/// such a registry may not know. An undecided agent withholds nothing, since whoever may register can name any domain.
pub async fn withheld_domains(
    on: &impl Handle,
    names: &HashSet<String>,
) -> Result<HashSet<String>, StoreError> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut withheld = HashSet::new();
    for some in names.chunks(MAX_VALUES) {
        let proved = [
            DomainState::Lapsed,
            DomainState::Disputed,
            DomainState::OptedOut,
        ];
        let decided = Condition::any()
            .add(domain::Column::OwnerId.is_not_null())
            .add(domain::Column::State.is_in(proved.map(DomainState::as_str)))
            .add(domain::Column::OptedOutBy.is_not_null());
        let decided: Vec<String> = domain::Entity::find()
            .select_only()
            .column(domain::Column::Name)
            .filter(domain::Column::Name.is_in(some.iter().copied()))
            .filter(decided)
            .into_tuple()
            .all(on.connection())
            .await?;
        let held = Query::select()
            .column(hold::Column::AgentId)
            .from(hold::Entity)
            .take();
        let open = [
            Lifecycle::Pending,
            Lifecycle::Approved,
            Lifecycle::Deprecated,
        ];
        let hidden = Condition::any()
            .add(agent::Column::Lifecycle.is_not_in(open.map(Kept::from)))
            .add(agent::Column::Visibility.ne(Kept::from(Visibility::Public)))
            .add(agent::Column::Urn.is_not_null())
            .add(agent::Column::Id.in_subquery(held));
        let hidden: Vec<String> = agent::Entity::find()
            .select_only()
            .column(agent::Column::Domain)
            .distinct()
            .filter(agent::Column::Domain.is_in(some.iter().copied()))
            .filter(hidden)
            .into_tuple()
            .all(on.connection())
            .await?;
        withheld.extend(decided.into_iter().chain(hidden));
        withheld.extend(below_proofs(on, some).await?);
    }
    Ok(withheld)
}

/// Those of these domains, registered or not, that equal or lie below a name whose record proves all hosts below it.
async fn below_proofs(on: &impl Handle, names: &[&str]) -> Result<Vec<String>, StoreError> {
    let above: HashSet<&str> = names.iter().flat_map(|name| zones(name)).collect();
    let above: Vec<&str> = above.into_iter().collect();
    let mut proved: HashSet<String> = HashSet::new();
    for some in above.chunks(MAX_VALUES) {
        let found: Vec<String> = proof::Entity::find()
            .select_only()
            .column(proof::Column::Zone)
            .distinct()
            .filter(proof::Column::Zone.is_in(some.iter().copied()))
            .filter(proof::Column::EndedAt.is_null())
            .filter(proof::Column::AccountId.is_not_null())
            .into_tuple()
            .all(on.connection())
            .await?;
        proved.extend(found);
    }
    let is_below = |name: &&&str| zones(name).any(|zone| proved.contains(zone));
    let below = names.iter().filter(is_below);
    Ok(below.map(|name| (*name).to_owned()).collect())
}

/// The URNs of a domain's agents, retired ones included.
pub async fn urns_of(on: &impl Handle, domain: &str) -> Result<Vec<String>, StoreError> {
    Ok(agent::Entity::find()
        .select_only()
        .column(agent::Column::Urn)
        .filter(agent::Column::Domain.eq(domain))
        .filter(agent::Column::Urn.is_not_null())
        .into_tuple()
        .all(on.connection())
        .await?)
}

/// The agents of these domains that are not retired, oldest first; locked until a write ends, if `on` is one.
pub async fn agents_of(
    on: &impl Handle,
    domain_ids: &[i64],
) -> Result<Vec<agent::Model>, StoreError> {
    let query = agent::Entity::find()
        .filter(agent::Column::RetiredAt.is_null())
        .order_by_asc(agent::Column::Id);
    rows_with(on, locked(on, query), agent::Column::DomainId, domain_ids).await
}

/// The listed agents of these domains: public ones, and with `restricted` all others too.
pub async fn agents_listed_of(
    on: &impl Handle,
    domains: &[i64],
    restricted: bool,
) -> Result<Vec<agent::Model>, StoreError> {
    let listed = [Lifecycle::Approved, Lifecycle::Deprecated].map(Lifecycle::as_str);
    let mut query = agent::Entity::find()
        .filter(agent::Column::DomainId.is_in(domains.iter().copied()))
        .filter(agent::Column::RetiredAt.is_null())
        .filter(agent::Column::Lifecycle.is_in(listed))
        .filter(Expr::exists(holds_of_each(None)).not())
        .order_by_asc(agent::Column::Id);
    if !restricted {
        query = query.filter(agent::Column::Visibility.eq(Visibility::Public.as_str()));
    }
    Ok(query.all(on.connection()).await?)
}

/// The holds of each agent of the query that contains this one: of one kind, or all.
pub(super) fn holds_of_each(kind: Option<Hold>) -> SelectStatement {
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
pub async fn agents_walk(
    on: &impl Handle,
    after: Option<Uuid>,
    limit: u64,
) -> Result<Vec<agent::Model>, StoreError> {
    let page = page_after(agent::Entity::find(), agent::Column::Id, after, limit);
    Ok(page.all(on.connection()).await?)
}

/// The ids and audiences of agents that are not retired, with ids above `after`, by id.
pub async fn agent_audiences(
    on: &impl Handle,
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
    Ok(page.into_tuple().all(on.connection()).await?)
}

pub async fn agents_naming_collection(
    on: &impl Handle,
    collection: Uuid,
    limit: u64,
) -> Result<Vec<agent::Model>, StoreError> {
    Ok(agent::Entity::find()
        .filter(agent::Column::Collections.contains(collection.to_string()))
        .limit(limit)
        .all(on.connection())
        .await?)
}

pub async fn holds_of(on: &impl Handle, agents: &[Uuid]) -> Result<Vec<hold::Model>, StoreError> {
    let query = hold::Entity::find().order_by_asc(hold::Column::Since);
    rows_with(on, query, hold::Column::AgentId, agents).await
}

pub async fn agents_held(on: &impl Handle, hold: Hold) -> Result<Vec<hold::Model>, StoreError> {
    Ok(hold::Entity::find()
        .filter(hold::Column::Hold.eq(hold.as_str()))
        .all(on.connection())
        .await?)
}

impl Write {
    /// Inserts agents, or updates all changeable columns of existing ones.
    pub async fn agents_put(&self, rows: Vec<agent::Model>) -> Result<(), StoreError> {
        use agent::Column as C;
        self.changed.domains(rows.iter().map(|row| row.domain_id));
        let changeable = C::iter()
            .filter(|column| !matches!(column, C::Id | C::DomainId | C::Domain | C::CreatedAt));
        let conflict = OnConflict::column(C::Id)
            .update_columns(changeable)
            .to_owned();
        let rows = rows.into_iter().map(IntoActiveModel::into_active_model);
        self.insert_rows(rows, Some(conflict)).await
    }

    /// Inserts holds; an existing one keeps its reason.
    pub async fn holds_set(&self, rows: Vec<hold::Model>) -> Result<(), StoreError> {
        self.changed.agents(rows.iter().map(|row| &row.agent_id));
        let conflict = OnConflict::columns([hold::Column::AgentId, hold::Column::Hold])
            .do_nothing()
            .to_owned();
        let rows = rows.into_iter().map(IntoActiveModel::into_active_model);
        self.insert_rows(rows, Some(conflict)).await
    }

    pub async fn hold_lift(&self, agent: Uuid, hold: Hold) -> Result<bool, StoreError> {
        self.changed.agents([&agent]);
        let outcome = hold::Entity::delete_by_id((agent, hold.into()))
            .exec(self.connection())
            .await?;
        Ok(outcome.rows_affected > 0)
    }
}
