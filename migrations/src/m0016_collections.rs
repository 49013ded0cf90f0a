//! Collections of agents, the groups that a restricted agent is shown to, and saved searches and feeds of accounts.

use sea_orm_migration::{prelude::*, schema::*};

use crate::keys::{index, references};

/// Collections and what belongs to accounts beside them.
#[derive(Debug, DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // A process of before shows a restricted agent to nobody but its owner and curators.
        let audience = Table::alter()
            .table("agents")
            .add_column(text_null("audience"))
            .take();
        manager.alter_table(audience).await?;
        collections(manager).await?;
        saved_searches(manager).await?;
        feeds(manager).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in ["feeds", "saved_searches", "collections"] {
            let drop = Table::drop().table(table).take();
            manager.drop_table(drop).await?;
        }
        let audience = Table::alter()
            .table("agents")
            .drop_column("audience")
            .take();
        manager.alter_table(audience).await
    }
}

async fn collections(manager: &SchemaManager<'_>) -> Result<(), DbErr> {
    let table = Table::create()
        .table("collections")
        .col(pk_uuid("id"))
        .col(text("name").unique_key())
        .col(text("description"))
        .col(text("filter"))
        .col(text_null("audience"))
        .col(text("owners"))
        .col(big_integer("created_at"))
        .col(big_integer("updated_at"))
        .take();
    manager.create_table(table).await
}

async fn saved_searches(manager: &SchemaManager<'_>) -> Result<(), DbErr> {
    let table = Table::create()
        .table("saved_searches")
        .col(pk_uuid("id"))
        .col(uuid("account_id"))
        .col(text("name"))
        .col(text("query"))
        .col(big_integer("created_at"))
        .foreign_key(&mut references("saved_searches", "account_id", "accounts"))
        .take();
    manager.create_table(table).await?;
    let mut unique = index("saved_searches", &["account_id", "name"]);
    manager.create_index(unique.unique().to_owned()).await
}

async fn feeds(manager: &SchemaManager<'_>) -> Result<(), DbErr> {
    let table = Table::create()
        .table("feeds")
        .col(pk_uuid("account_id"))
        .col(text("hash").unique_key())
        .col(big_integer("created_at"))
        .foreign_key(&mut references("feeds", "account_id", "accounts"))
        .take();
    manager.create_table(table).await
}
