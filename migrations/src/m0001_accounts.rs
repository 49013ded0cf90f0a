//! Accounts, their tokens, and settings that must survive a restart.

use sea_orm_migration::{prelude::*, schema::*};

use crate::keys::references;

/// Accounts and tokens.
#[derive(Debug, DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .create_table(
                Table::create()
                    .table("accounts")
                    .col(pk_uuid("id"))
                    .col(text_uniq("name"))
                    .col(text("role"))
                    .col(big_integer("created_at"))
                    .take(),
            )
            .await?;
        manager
            .create_table(
                Table::create()
                    .table("tokens")
                    .col(pk_uuid("id"))
                    .col(uuid("account_id"))
                    .col(text("name"))
                    .col(text("prefix"))
                    .col(text_uniq("hash"))
                    .col(boolean("bootstrap"))
                    .col(big_integer("created_at"))
                    .col(big_integer_null("expires_at"))
                    .foreign_key(&mut references("tokens", "account_id", "accounts"))
                    .take(),
            )
            .await?;
        manager
            .create_table(
                Table::create()
                    .table("settings")
                    .col(text("key").primary_key())
                    .col(text("value"))
                    .take(),
            )
            .await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in ["settings", "tokens", "accounts"] {
            manager
                .drop_table(Table::drop().table(table).take())
                .await?;
        }
        Ok(())
    }
}
