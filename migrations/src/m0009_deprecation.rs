//! The column `deprecation`: the deprecation notice of an agent.

use sea_orm_migration::{prelude::*, schema::*};

/// Message, replacement and date of a deprecation, as one JSON text.
#[derive(Debug, DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .alter_table(
                Table::alter()
                    .table("agents")
                    .add_column(text_null("deprecation"))
                    .take(),
            )
            .await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .alter_table(
                Table::alter()
                    .table("agents")
                    .drop_column("deprecation")
                    .take(),
            )
            .await
    }
}
