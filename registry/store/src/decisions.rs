//! Decisions on card contents.

use a2a_registry_domain::admission_rules::Rule;
use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::{ColumnTrait, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use super::entity::decision;
use super::entity::queries::rows_where_in;
use super::{Executor, StoreError, WriteTransaction};

/// The decisions on these agents, oldest first.
pub async fn decisions_by_agent(
    db: &impl Executor,
    agents: &[Uuid],
) -> Result<Vec<decision::Model>, StoreError> {
    let query = decision::Entity::find().order_by_asc(decision::Column::Id);
    rows_where_in(db, query, decision::Column::AgentId, agents).await
}

/// The decisions that people made on these agents, oldest first.
pub async fn human_decisions_by_agent(
    db: &impl Executor,
    agents: &[Uuid],
) -> Result<Vec<decision::Model>, StoreError> {
    let query = decision::Entity::find()
        .filter(decision::Column::Rule.eq(Rule::Person.as_str()))
        .order_by_asc(decision::Column::Id);
    rows_where_in(db, query, decision::Column::AgentId, agents).await
}

/// The latest decisions on these agents since a time, newest first.
pub async fn decisions_on_agents_since(
    db: &impl Executor,
    agents: &[Uuid],
    since: i64,
    limit: u64,
) -> Result<Vec<decision::Model>, StoreError> {
    let query = decision::Entity::find()
        .filter(decision::Column::At.gt(since))
        .order_by_desc(decision::Column::Id)
        .limit(limit);
    rows_where_in(db, query, decision::Column::AgentId, agents).await
}

impl WriteTransaction {
    pub async fn insert_decisions(&self, rows: Vec<decision::Model>) -> Result<(), StoreError> {
        self.pending_changes
            .mark_agents(rows.iter().map(|row| &row.agent_id));
        let rows = rows.into_iter().map(|row| {
            let mut active = row.into_active_model();
            active.id = NotSet;
            active
        });
        self.insert_rows(rows, None).await
    }

    /// Updates the content digest of a version's decisions, because a new build derives another one from its bytes.
    pub async fn update_decision_digests(
        &self,
        version: Uuid,
        content_digest: &str,
        signing: &str,
    ) -> Result<(), StoreError> {
        let rows = decision::Entity::update_many()
            .set(decision::ActiveModel {
                content_digest: Set(content_digest.into()),
                signing: Set(signing.into()),
                ..Default::default()
            })
            .filter(decision::Column::VersionId.eq(version));
        self.update_rows(rows).await
    }
}
