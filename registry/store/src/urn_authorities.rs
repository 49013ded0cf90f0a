//! Authorities: the domains of companies under which agents of hosts that cannot be proved have their URNs.

use a2a_registry_domain::ownership::DomainState;
use sea_orm::sea_query::{Expr, ExprTrait as _, Query};
use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter, QuerySelect};
use uuid::Uuid;

use super::entity::queries::page_after;
use super::entity::{agent, domain, proof};
use super::owner_vouches::host_and_parents;
use super::{Executor, StoreError};

/// Those of these names under which agents have URNs. `names` has to fit into one statement.
pub async fn used_authorities(
    db: &impl Executor,
    names: &[&str],
) -> Result<Vec<String>, StoreError> {
    Ok(agent::Entity::find()
        .select_only()
        .column(agent::Column::Authority)
        .distinct()
        .filter(agent::Column::Authority.is_in(names.iter().copied()))
        .into_tuple()
        .all(db.connection())
        .await?)
}

/// The accounts with a valid proof of this host name: of its domain, or of a parent for all hosts below it.
pub async fn accounts_proving_host(
    db: &impl Executor,
    host: &str,
) -> Result<Vec<Uuid>, StoreError> {
    let domains_of_host = Query::select()
        .column(domain::Column::Id)
        .from(domain::Entity)
        .and_where(domain::Column::Name.eq(host))
        .and_where(domain::Column::DeletedAt.is_null())
        .take();
    let is_proving = Condition::any()
        .add(proof::Column::DomainId.in_subquery(domains_of_host))
        .add(proof::Column::Zone.is_in(host_and_parents(host)));
    Ok(proof::Entity::find()
        .select_only()
        .column(proof::Column::AccountId)
        .distinct()
        .filter(proof::Column::EndedAt.is_null())
        .filter(proof::Column::AccountId.is_not_null())
        .filter(is_proving)
        .into_tuple()
        .all(db.connection())
        .await?)
}

/// A page of live domains that only an admin's vouch verifies and that have an agent without a URN, with keys above
/// `after`.
pub async fn vouched_domains_with_unnamed_agents(
    db: &impl Executor,
    after: i64,
    limit: u64,
) -> Result<Vec<domain::Model>, StoreError> {
    let unnamed_agents = Query::select()
        .column(agent::Column::Id)
        .from(agent::Entity)
        .and_where(
            Expr::col((agent::Entity, agent::Column::DomainId))
                .equals((domain::Entity, domain::Column::Id)),
        )
        .and_where(agent::Column::Urn.is_null())
        .and_where(agent::Column::AuthorityUrn.is_null())
        .and_where(agent::Column::RetiredAt.is_null())
        .take();
    let query = domain::Entity::find()
        .filter(domain::Column::State.eq(DomainState::Verified.as_str()))
        .filter(domain::Column::OwnerId.is_null())
        .filter(domain::Column::DeletedAt.is_null())
        .filter(Expr::exists(unnamed_agents));
    let page = page_after(query, domain::Column::Id, Some(after), limit);
    Ok(page.all(db.connection()).await?)
}
