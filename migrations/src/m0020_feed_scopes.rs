//! What the feed of an account may tell: the scopes of what it was made with.

use sea_orm_migration::{prelude::*, schema::*};

/// The scopes of a feed.
#[derive(Debug, DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let alter = Table::alter()
            .table("feeds")
            .add_column(text_null("scopes"))
            .take();
        manager.alter_table(alter).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let alter = Table::alter().table("feeds").drop_column("scopes").take();
        manager.alter_table(alter).await
    }
}
