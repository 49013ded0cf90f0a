//! Whom the tasks of clients without an account are counted for.

use sea_orm_migration::{prelude::*, schema::*};

use crate::keys::index;

/// The sender of a task.
#[derive(Debug, DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let alter = Table::alter()
            .table("a2a_tasks")
            .add_column(big_integer_null("sender"))
            .take();
        manager.alter_table(alter).await?;
        let of = &["account_id", "sender", "updated_at", "id"];
        manager.create_index(index("a2a_tasks", of)).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let mut index = Index::drop();
        index
            .name("ix_a2a_tasks_account_id_sender_updated_at_id")
            .table("a2a_tasks");
        manager.drop_index(index).await?;
        let alter = Table::alter()
            .table("a2a_tasks")
            .drop_column("sender")
            .take();
        manager.alter_table(alter).await
    }
}
