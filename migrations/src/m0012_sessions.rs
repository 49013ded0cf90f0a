//! Sessions of people who have signed in to the pages.

use sea_orm_migration::{prelude::*, schema::*};

use crate::keys::{index, references};

/// Sessions.
#[derive(Debug, DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // The token has no foreign key: a program of before deletes tokens and knows nothing of sessions.
        let sessions = Table::create()
            .table("sessions")
            .col(pk_uuid("id"))
            .col(uuid("account_id"))
            .col(text("hash"))
            .col(uuid_null("token_id"))
            .col(text_null("issuer"))
            .col(text_null("scopes"))
            .col(text("roles"))
            .col(text("browser"))
            .col(big_integer("created_at"))
            .col(big_integer("last_seen_at"))
            .col(big_integer("expires_at"))
            .foreign_key(&mut references("sessions", "account_id", "accounts"))
            .take();
        manager.create_table(sessions).await?;
        let mut unique = index("sessions", &["hash"]);
        manager.create_index(unique.unique().to_owned()).await?;
        manager
            .create_index(index("sessions", &["account_id"]))
            .await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .drop_table(Table::drop().table("sessions").take())
            .await
    }
}
