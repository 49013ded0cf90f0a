//! The column `verdicts`: the result of verifying each signature of a card, stored with the card's version.

use sea_orm_migration::{prelude::*, schema::*};

/// The result with its reason for each signature. Existing versions have none until they are derived again.
#[derive(Debug, DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .alter_table(
                Table::alter()
                    .table("versions")
                    .add_column(text("verdicts").default("[]"))
                    .take(),
            )
            .await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .alter_table(
                Table::alter()
                    .table("versions")
                    .drop_column("verdicts")
                    .take(),
            )
            .await
    }
}
