//! The collections that a policy set asks about, as they were when it was made.

use sea_orm_migration::{prelude::*, schema::*};

/// The collections beside a policy set.
#[derive(Debug, DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let alter = Table::alter()
            .table("policy_sets")
            .add_column(text_null("collections"))
            .take();
        manager.alter_table(alter).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let alter = Table::alter()
            .table("policy_sets")
            .drop_column("collections")
            .take();
        manager.alter_table(alter).await
    }
}
