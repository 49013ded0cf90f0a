//! Entries of catalogs that are no cards, and the digest that a catalog states of a card.

use sea_orm_migration::{prelude::*, schema::*};

use crate::keys::{index, references};

/// The table of entries, and the digest of a source.
#[derive(Debug, DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let entries = Table::create()
            .table("entries")
            .col(pk_uuid("id"))
            .col(big_integer("domain_id"))
            .col(big_integer("catalog_id"))
            .col(text("identifier").unique_key())
            .col(text_null("listed_as"))
            .col(text("media_type"))
            .col(boolean("registry"))
            .col(text("display_name"))
            .col(text_null("description"))
            .col(text_null("version"))
            .col(big_integer_null("updated_at"))
            .col(text_null("url"))
            .col(text("raw"))
            .col(text("words"))
            .col(text("authority"))
            .col(text_null("verification"))
            .col(big_integer_null("verified_until"))
            .col(boolean("denied"))
            .col(big_integer_null("unlisted_since"))
            .col(integer("unlisted_looks"))
            .col(big_integer("created_at"))
            .col(big_integer("changed_at"))
            .foreign_key(&mut references("entries", "domain_id", "domains"))
            .foreign_key(&mut references("entries", "catalog_id", "sources"))
            .take();
        manager.create_table(entries).await?;
        for of in [&["domain_id"][..], &["catalog_id"]] {
            manager.create_index(index("entries", of)).await?;
        }
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
            .drop_table(Table::drop().table("entries").take())
            .await
    }
}
