//! Whether a curator has accepted queries that are derived from an agent's skills, for its entry of ARD.

use sea_orm_migration::{prelude::*, schema::*};

/// The curator's acceptance.
#[derive(Debug, DeriveMigrationName)]
pub struct Migration;

const COLUMN: &str = "derived_queries";

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let alter = Table::alter()
            .table("agents")
            .add_column(boolean(COLUMN).default(false))
            .take();
        manager.alter_table(alter).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let alter = Table::alter().table("agents").drop_column(COLUMN).take();
        manager.alter_table(alter).await
    }
}
