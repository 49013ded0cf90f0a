//! Policy sets, by their numbers.

use sea_orm_migration::{prelude::*, schema::*};

/// The table of policy sets.
#[derive(Debug, DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .create_table(
                Table::create()
                    .table("policy_sets")
                    .col(big_integer("number").primary_key())
                    .col(text("policies"))
                    .col(text("author"))
                    .col(text("reason"))
                    .col(big_integer("created_at"))
                    .take(),
            )
            .await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .drop_table(Table::drop().table("policy_sets").take())
            .await
    }
}
