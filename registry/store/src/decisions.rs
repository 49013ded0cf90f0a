//! Decisions on contents of cards.

use a2a_registry_domain::admission_rules::Rule;
use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::{ColumnTrait, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use super::entity::decision;
use super::rows::padded;
use super::{Handle, StoreError, Write};

/// The decisions on these agents, oldest first.
pub async fn decisions_on(
    on: &impl Handle,
    agents: &[Uuid],
) -> Result<Vec<decision::Model>, StoreError> {
    if agents.is_empty() {
        return Ok(Vec::new());
    }
    Ok(decision::Entity::find()
        .filter(decision::Column::AgentId.is_in(padded(agents)))
        .order_by_asc(decision::Column::Id)
        .all(on.connection())
        .await?)
}

/// The decisions of persons on these agents, oldest first.
pub async fn decisions_by_person(
    on: &impl Handle,
    agents: &[Uuid],
) -> Result<Vec<decision::Model>, StoreError> {
    if agents.is_empty() {
        return Ok(Vec::new());
    }
    Ok(decision::Entity::find()
        .filter(decision::Column::AgentId.is_in(padded(agents)))
        .filter(decision::Column::Rule.eq(Rule::Person.as_str()))
        .order_by_asc(decision::Column::Id)
        .all(on.connection())
        .await?)
}

/// The last decisions on these agents since then, newest first.
pub async fn decisions_since(
    on: &impl Handle,
    agents: &[Uuid],
    since: i64,
    limit: u64,
) -> Result<Vec<decision::Model>, StoreError> {
    if agents.is_empty() {
        return Ok(Vec::new());
    }
    Ok(decision::Entity::find()
        .filter(decision::Column::AgentId.is_in(padded(agents)))
        .filter(decision::Column::At.gt(since))
        .order_by_desc(decision::Column::Id)
        .limit(limit)
        .all(on.connection())
        .await?)
}

impl Write {
    pub async fn decisions_insert(&self, rows: Vec<decision::Model>) -> Result<(), StoreError> {
        self.changed.agents(rows.iter().map(|row| &row.agent_id));
        if rows.is_empty() {
            return Ok(());
        }
        let rows = rows.into_iter().map(|row| {
            let mut active = row.into_active_model();
            active.id = NotSet;
            active
        });
        self.insert_rows(rows, None).await
    }

    /// Updates the content digest of a version's decisions, because a new build derives another one from its bytes.
    pub async fn decisions_rekey(
        &self,
        version: Uuid,
        content_digest: &str,
        signing: &str,
    ) -> Result<(), StoreError> {
        decision::Entity::update_many()
            .set(decision::ActiveModel {
                content_digest: Set(content_digest.into()),
                signing: Set(signing.into()),
                ..Default::default()
            })
            .filter(decision::Column::VersionId.eq(version))
            .exec(self.connection())
            .await?;
        Ok(())
    }
}
