//! Indexes of the moments from which the ages of agents count, so that agents that reach an age are found without
//! reading all of them.

use sea_orm_migration::prelude::*;

/// The index of `certified_at` exists already.
const COLUMNS: [&str; 3] = ["last_seen_at", "last_changed_at", "endpoint_answered_at"];

pub(crate) struct AgentMomentsMigration;

impl MigrationName for AgentMomentsMigration {
    fn name(&self) -> &str {
        "m0018_agent_moments"
    }
}

fn index_name(column: &str) -> String {
    format!("ix_agents_{column}")
}

#[async_trait::async_trait]
impl MigrationTrait for AgentMomentsMigration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for column in COLUMNS {
            let index = Index::create()
                .name(index_name(column))
                .table("agents")
                .col(column)
                .to_owned();
            manager.create_index(index).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for column in COLUMNS {
            let index = Index::drop()
                .name(index_name(column))
                .table("agents")
                .to_owned();
            manager.drop_index(index).await?;
        }
        Ok(())
    }
}
