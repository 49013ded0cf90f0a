//! Vectors of agents, by the model that made them.

use sea_orm_migration::{prelude::*, schema::*};

use crate::keys::references;

/// Embedding models and their vectors of agents.
#[derive(Debug, DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .create_table(
                Table::create()
                    .table("models")
                    .col(text("id").primary_key())
                    .col(text("name"))
                    .col(integer("dimensions"))
                    .col(big_integer("created_at"))
                    .col(big_integer("applied_seq"))
                    .col(uuid_null("walked_to"))
                    .col(big_integer_null("completed_at"))
                    .col(double_null("cutoff"))
                    .col(big_integer("used_at"))
                    .take(),
            )
            .await?;
        manager
            .create_table(
                Table::create()
                    .table("agent_vectors")
                    .col(text("model_id"))
                    .col(uuid("agent_id"))
                    .col(text("text_digest"))
                    .col(binary("vectors"))
                    .primary_key(Index::create().col("model_id").col("agent_id"))
                    .foreign_key(&mut references("agent_vectors", "model_id", "models"))
                    .foreign_key(&mut references("agent_vectors", "agent_id", "agents"))
                    .take(),
            )
            .await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in ["agent_vectors", "models"] {
            manager
                .drop_table(Table::drop().table(table).to_owned())
                .await?;
        }
        Ok(())
    }
}
