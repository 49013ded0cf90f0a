//! Erasure: deletes what the cards of agents said, with everything derived from it.

use std::collections::BTreeSet;

use sea_orm::sea_query::{Query, SelectStatement};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use super::bulk_rows::{is_storable_text, lock_for_update};
use super::entity::{agent, card_body, domain, fetch_attempt, source, version, version_source};
use super::vectors::embedding_models;
use super::{Executor, StoreError, WriteTransaction};

/// Maximum number of keys in one statement.
const KEYS_PER_STATEMENT: usize = 1_000;

/// The numbers of rows that an erasure has deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ErasedContent {
    pub versions: u64,
    pub bodies: u64,
}

/// The agents of every domain that has or had this name, retired ones included; locked until the write ends if `db` is
/// a write.
pub async fn agents_by_domain_name(
    db: &impl Executor,
    name: &str,
) -> Result<Vec<agent::Model>, StoreError> {
    if !is_storable_text(name) {
        return Ok(Vec::new());
    }
    let query = agent::Entity::find()
        .filter(agent::Column::Domain.eq(name))
        .order_by_asc(agent::Column::Id);
    Ok(lock_for_update(db, query).all(db.connection()).await?)
}

/// The removed domains that had this name and whose fetches are still stored, whether or not they had agents.
pub async fn removed_domains_with_fetches(
    db: &impl Executor,
    name: &str,
) -> Result<BTreeSet<i64>, StoreError> {
    if !is_storable_text(name) {
        return Ok(BTreeSet::new());
    }
    let removed: Vec<i64> = domain::Entity::find()
        .select_only()
        .column(domain::Column::Id)
        .filter(domain::Column::Name.eq(name))
        .filter(domain::Column::DeletedAt.is_not_null())
        .into_tuple()
        .all(db.connection())
        .await?;
    let fetched = Query::select()
        .column(fetch_attempt::Column::SourceId)
        .from(fetch_attempt::Entity)
        .and_where(fetch_attempt::Column::SourceId.in_subquery(source_ids(removed.clone())))
        .take();
    let fetched: Vec<i64> = source::Entity::find()
        .select_only()
        .column(source::Column::DomainId)
        .distinct()
        .filter(source::Column::DomainId.is_in(removed))
        .filter(source::Column::Id.in_subquery(fetched))
        .into_tuple()
        .all(db.connection())
        .await?;
    Ok(fetched.into_iter().collect())
}

/// The keys of all sources of these domains, ended ones too.
fn source_ids(domains: impl IntoIterator<Item = i64>) -> SelectStatement {
    Query::select()
        .column(source::Column::Id)
        .from(source::Entity)
        .and_where(source::Column::DomainId.is_in(domains))
        .take()
}

impl WriteTransaction {
    /// Deletes the versions, vectors and endpoint checks of these agents, and the bytes that no other agent has. The
    /// caller has locked the agents and appends its events afterwards: this waits for writes that store the same
    /// bytes, and those wait for the end of the append.
    pub async fn erase_agent_content(&self, agents: &[Uuid]) -> Result<ErasedContent, StoreError> {
        self.pending_changes.mark_agents(agents);
        let mut erased = ErasedContent::default();
        let mut digests = BTreeSet::new();
        for some in agents.chunks(KEYS_PER_STATEMENT) {
            self.erase_endpoint_checks(some).await?;
            let is_of_agents = || version::Column::AgentId.is_in(some.iter().copied());
            let versions_of_agents = Query::select()
                .column(version::Column::Id)
                .from(version::Entity)
                .and_where(is_of_agents())
                .take();
            let stored: Vec<String> = version::Entity::find()
                .select_only()
                .column(version::Column::Digest)
                .distinct()
                .filter(is_of_agents())
                .into_tuple()
                .all(self.connection())
                .await?;
            digests.extend(stored);
            version_source::Entity::delete_many()
                .filter(version_source::Column::VersionId.in_subquery(versions_of_agents))
                .exec(self.connection())
                .await?;
            let deleted = version::Entity::delete_many()
                .filter(is_of_agents())
                .exec(self.connection())
                .await?;
            erased.versions += deleted.rows_affected;
        }
        for model in embedding_models(self).await? {
            // Waits for writes that store vectors; later ones find the agents retired and leave them out.
            self.lock_model(&model.id).await?;
            for some in agents.chunks(KEYS_PER_STATEMENT) {
                self.delete_vectors(&model.id, some).await?;
            }
        }
        let digests: Vec<String> = digests.into_iter().collect();
        for some in digests.chunks(KEYS_PER_STATEMENT) {
            let query = card_body::Entity::find()
                .select_only()
                .column(card_body::Column::Digest)
                .filter(card_body::Column::Digest.is_in(some.iter().cloned()))
                .order_by_asc(card_body::Column::Digest);
            // Waits for another write with the same bytes instead of skipping them: if that write is rolled back, they
            // must not stay.
            let stored: Vec<String> = lock_for_update(self, query)
                .into_tuple()
                .all(self.connection())
                .await?;
            erased.bodies += self.delete_bodies_without_version(stored).await?;
            for digest in some {
                self.damaged_bodies().remove(digest);
            }
        }
        Ok(erased)
    }

    /// Deletes the fetches of these domains, whose details quote the names and errors of cards. The caller has locked
    /// those that are live.
    pub async fn delete_fetch_attempts(
        &self,
        domains: impl IntoIterator<Item = i64>,
    ) -> Result<(), StoreError> {
        let attempts = fetch_attempt::Entity::delete_many()
            .filter(fetch_attempt::Column::SourceId.in_subquery(source_ids(domains)));
        self.delete_rows(attempts).await
    }

    /// Deletes those of these bodies, which are locked, that no version has; returns their number.
    pub(super) async fn delete_bodies_without_version(
        &self,
        digests: Vec<String>,
    ) -> Result<u64, StoreError> {
        let used: Vec<String> = version::Entity::find()
            .select_only()
            .column(version::Column::Digest)
            .distinct()
            .filter(version::Column::Digest.is_in(digests.clone()))
            .into_tuple()
            .all(self.connection())
            .await?;
        let unused = digests.into_iter().filter(|digest| !used.contains(digest));
        let deleted = card_body::Entity::delete_many()
            .filter(card_body::Column::Digest.is_in(unused))
            .exec(self.connection())
            .await?;
        Ok(deleted.rows_affected)
    }
}
