//! Agents and their holds.

use std::collections::HashSet;

use a2a_registry_domain::lifecycle::{Hold, Lifecycle, Visibility};
use a2a_registry_domain::ownership::DomainState;
use sea_orm::sea_query::{Expr, ExprTrait as _, OnConflict, Query};
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

/// The agents with these ids, in no order; inside a write, locked until it ends.
pub async fn agents_by_ids(
    on: &impl Handle,
    ids: &[Uuid],
) -> Result<Vec<agent::Model>, StoreError> {
    let query = agent::Entity::find().order_by_asc(agent::Column::Id);
    rows_with(on, locked(on, query), agent::Column::Id, ids).await
}

/// How many agents there are.
pub async fn agents_count(on: &impl Handle) -> Result<u64, StoreError> {
    Ok(agent::Entity::find().count(on.connection()).await?)
}

/// The agents that an account owns or has submitted, at most that many, the newest first.
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

/// The agent with that URN.
pub async fn agent_by_urn(on: &impl Handle, urn: &str) -> Result<Option<agent::Model>, StoreError> {
    if !can_be_stored(urn) {
        return Ok(None);
    }
    Ok(agent::Entity::find()
        .filter(agent::Column::Urn.eq(urn))
        .one(on.connection())
        .await?)
}

/// Those of these domains of which a registry that only repeats others' catalogs shows nothing here: an owner has or had
/// proved them, or a name above them for all hosts below it, so that this registry knows all names in them, assigned or not;
/// or they have opted out, or have an agent that was rejected, is on hold or retired, or not for everybody, whose name such a
/// registry may not know. An agent that nobody has decided on withholds nothing, since whoever may register can name any
/// domain.
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

/// Those of these domains that are, or are below, a name whose record proves every host below it. They need not be registered.
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

/// Every URN that agents of a domain have, retired ones included.
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

/// The agents of these domains that are not retired, oldest first; inside a write, locked until it ends.
pub async fn agents_of(
    on: &impl Handle,
    domain_ids: &[i64],
) -> Result<Vec<agent::Model>, StoreError> {
    let query = agent::Entity::find()
        .filter(agent::Column::RetiredAt.is_null())
        .order_by_asc(agent::Column::Id);
    rows_with(on, locked(on, query), agent::Column::DomainId, domain_ids).await
}

/// Whether the agent of a query is on this hold, or without one on any.
pub(super) fn is_held(hold: Option<Hold>) -> Expr {
    use hold::{Column as C, Entity};
    let kind = hold.map(|hold| C::Hold.eq(hold.as_str()));
    let holds = Query::select()
        .column(C::AgentId)
        .from(Entity)
        .and_where(Expr::col((Entity, C::AgentId)).equals((agent::Entity, agent::Column::Id)))
        .and_where_option(kind)
        .take();
    Expr::exists(holds)
}

/// The agents of these domains that are listed: the public ones, or whatever their visibility is.
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
        .filter(is_held(None).not())
        .order_by_asc(agent::Column::Id);
    if !restricted {
        query = query.filter(agent::Column::Visibility.eq(Visibility::Public.as_str()));
    }
    Ok(query.all(on.connection()).await?)
}

/// A page of all agents by id, after `after`, retired ones too.
pub async fn agents_walk(
    on: &impl Handle,
    after: Option<Uuid>,
    limit: u64,
) -> Result<Vec<agent::Model>, StoreError> {
    let page = page_after(agent::Entity::find(), agent::Column::Id, after, limit);
    Ok(page.all(on.connection()).await?)
}

/// The audiences of agents that are not retired, with ids above `after`, by id, each with the agent: `limit` of them.
pub async fn agent_audiences(
    on: &impl Handle,
    after: Option<Uuid>,
    limit: u64,
) -> Result<Vec<(Uuid, String)>, StoreError> {
    let query = agent::Entity::find()
        .select_only()
        .columns([agent::Column::Id, agent::Column::Audience])
        .filter(agent::Column::Audience.is_not_null())
        .filter(agent::Column::RetiredAt.is_null());
    let page = page_after(query, agent::Column::Id, after, limit);
    Ok(page.into_tuple().all(on.connection()).await?)
}

/// Agents that are shown to the audience of a collection, at most `limit` of them.
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

/// The holds of these agents.
pub async fn holds_of(on: &impl Handle, agents: &[Uuid]) -> Result<Vec<hold::Model>, StoreError> {
    let query = hold::Entity::find().order_by_asc(hold::Column::Since);
    rows_with(on, query, hold::Column::AgentId, agents).await
}

/// The holds of this kind, of all agents.
pub async fn agents_held(on: &impl Handle, hold: Hold) -> Result<Vec<hold::Model>, StoreError> {
    Ok(hold::Entity::find()
        .filter(hold::Column::Hold.eq(hold.as_str()))
        .all(on.connection())
        .await?)
}

impl Write {
    /// Inserts agents, or replaces all changeable columns of existing ones.
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

    /// Inserts holds; an existing one keeps its first reason.
    pub async fn holds_set(&self, rows: Vec<hold::Model>) -> Result<(), StoreError> {
        self.changed.agents(rows.iter().map(|row| &row.agent_id));
        let conflict = OnConflict::columns([hold::Column::AgentId, hold::Column::Hold])
            .do_nothing()
            .to_owned();
        let rows = rows.into_iter().map(IntoActiveModel::into_active_model);
        self.insert_rows(rows, Some(conflict)).await
    }

    /// Removes one hold of one agent; returns whether it existed.
    pub async fn hold_lift(&self, agent: Uuid, hold: Hold) -> Result<bool, StoreError> {
        self.changed.agents([&agent]);
        let outcome = hold::Entity::delete_by_id((agent, hold.into()))
            .exec(self.connection())
            .await?;
        Ok(outcome.rows_affected > 0)
    }
}
