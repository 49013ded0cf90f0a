//! The URL under a registered base URL that brought a source's card.

use sea_orm_migration::{prelude::*, schema::*};

/// `card_url` of a source; null where the card is at the registered URL itself.
#[derive(Debug, DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let alter = Table::alter()
            .table("sources")
            .add_column(text_null("card_url"))
            .take();
        manager.alter_table(alter).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let alter = Table::alter()
            .table("sources")
            .drop_column("card_url")
            .take();
        manager.alter_table(alter).await
    }
}
