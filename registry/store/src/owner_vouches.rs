//! Owner vouches: the hosts that have one, and the proofs that end them.

use sea_orm::sea_query::{Condition, Query};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

use super::entity::queries::page_after;
use super::entity::{domain, proof};
use super::{Executor, StoreError};

/// A page of live domains with an owner vouch, in force or not, with keys above `after`.
pub async fn domains_with_owner_vouch(
    db: &impl Executor,
    after: i64,
    limit: u64,
) -> Result<Vec<domain::Model>, StoreError> {
    let query = domain::Entity::find()
        .filter(domain::Column::VouchedOwner.is_not_null())
        .filter(domain::Column::DeletedAt.is_null());
    let page = page_after(query, domain::Column::Id, Some(after), limit);
    Ok(page.all(db.connection()).await?)
}

/// The keys of live domains whose owner vouch a proof of the domain `name` may end: the same host name, and hosts
/// below it or below one of its parents.
pub async fn related_vouched_domain_ids(
    db: &impl Executor,
    name: &str,
) -> Result<Vec<i64>, StoreError> {
    let vouched: Vec<(i64, String)> = domain::Entity::find()
        .select_only()
        .columns([domain::Column::Id, domain::Column::Name])
        .filter(domain::Column::VouchedOwner.is_not_null())
        .filter(domain::Column::DeletedAt.is_null())
        .into_tuple()
        .all(db.connection())
        .await?;
    // Top-level domains have no owner here.
    let parents: Vec<&str> = host_and_parents(name)
        .filter(|zone| zone.contains('.'))
        .collect();
    let is_near = |other: &str| {
        host_and_parents(strip_port(other)).any(|zone| zone == name || parents.contains(&zone))
    };
    Ok(vouched
        .into_iter()
        .filter(|(_, other)| is_near(other))
        .map(|(id, _)| id)
        .collect())
}

/// The first live domain, by name, whose owner has proved this host: on port 443, or by a record for all hosts below
/// it or one of its parents.
pub async fn domain_proving_host(
    db: &impl Executor,
    name: &str,
) -> Result<Option<String>, StoreError> {
    let host = strip_port(name);
    let domains_with_zone_proof = Query::select()
        .column(proof::Column::DomainId)
        .from(proof::Entity)
        .and_where(proof::Column::EndedAt.is_null())
        .and_where(proof::Column::AccountId.is_not_null())
        .and_where(proof::Column::Zone.is_in(host_and_parents(host)))
        .take();
    let same = Condition::all()
        .add(domain::Column::Name.eq(host))
        .add(domain::Column::Scheme.eq("https"));
    let is_proving = Condition::any()
        .add(same)
        .add(domain::Column::Id.in_subquery(domains_with_zone_proof));
    Ok(domain::Entity::find()
        .select_only()
        .column(domain::Column::Name)
        .filter(domain::Column::OwnerId.is_not_null())
        .filter(domain::Column::DeletedAt.is_null())
        .filter(is_proving)
        .order_by_asc(domain::Column::Name)
        .into_tuple()
        .one(db.connection())
        .await?)
}

fn strip_port(name: &str) -> &str {
    match name.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => name,
    }
}

pub(super) fn host_and_parents(host: &str) -> impl Iterator<Item = &str> {
    let above = host.match_indices('.').map(|(dot, _)| &host[dot + 1..]);
    std::iter::once(host).chain(above)
}
