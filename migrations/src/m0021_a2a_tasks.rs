//! The tasks that the registry does for clients of A2A.

use sea_orm_migration::{prelude::*, schema::*};

use crate::keys::{index, references};

/// Tasks.
#[derive(Debug, DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let tasks = Table::create()
            .table("a2a_tasks")
            .col(pk_uuid("id"))
            .col(uuid_null("account_id"))
            .col(text("context_id"))
            .col(text("state"))
            .col(text("history"))
            .col(text_null("outcome"))
            .col(text_null("more"))
            .col(big_integer("created_at"))
            .col(big_integer("updated_at"))
            .col(big_integer("expires_at"))
            .foreign_key(&mut references("a2a_tasks", "account_id", "accounts"))
            .take();
        manager.create_table(tasks).await?;
        for of in [
            &["account_id", "updated_at", "id"][..],
            &["account_id", "context_id", "updated_at"],
            &["expires_at"],
        ] {
            manager.create_index(index("a2a_tasks", of)).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .drop_table(Table::drop().table("a2a_tasks").take())
            .await
    }
}
