//! The registries that a catalog names, and the digest that it states of a card.

use sea_orm_migration::{prelude::*, schema::*};

use crate::keys::references;

/// The table of candidates for peers, and the digest of a source.
#[derive(Debug, DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let candidates = Table::create()
            .table("peer_candidates")
            .col(big_integer("catalog_id"))
            .col(text("identifier"))
            .col(text("display_name"))
            .col(text("url"))
            .primary_key(Index::create().col("catalog_id").col("identifier"))
            .foreign_key(&mut references("peer_candidates", "catalog_id", "sources"))
            .take();
        manager.create_table(candidates).await?;
        let sources = Table::alter()
            .table("sources")
            .add_column(text_null("entry_digest"))
            .take();
        manager.alter_table(sources).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let sources = Table::alter()
            .table("sources")
            .drop_column("entry_digest")
            .take();
        manager.alter_table(sources).await?;
        manager
            .drop_table(Table::drop().table("peer_candidates").take())
            .await
    }
}
