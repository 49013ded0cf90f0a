//! The log of all events, which the index, caches and the feed follow.

use sea_orm_migration::{prelude::*, schema::*};

use crate::keys::index;

/// Events.
#[derive(Debug, DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .create_table(
                Table::create()
                    .table("events")
                    .col(big_pk_auto("seq"))
                    .col(big_integer("at"))
                    .col(text("kind"))
                    .col(text("subject"))
                    .col(uuid_null("agent_id"))
                    .col(text("actor"))
                    .col(text("data"))
                    .take(),
            )
            .await?;
        manager.create_index(index("events", &["agent_id"])).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .drop_table(Table::drop().table("events").take())
            .await
    }
}
