//! Accounts of identity providers' users, and attempts to sign in with a provider.

use sea_orm_migration::{prelude::*, schema::*};

use crate::keys::{index, references};

/// Whom of which issuer an account is, and attempts to sign in.
#[derive(Debug, DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let identities = Table::create()
            .table("identities")
            .col(text("issuer"))
            .col(text("subject"))
            .col(uuid("account_id"))
            .col(text("roles"))
            .col(big_integer("claims_at"))
            .col(big_integer("created_at"))
            .primary_key(Index::create().col("issuer").col("subject"))
            .foreign_key(&mut references("identities", "account_id", "accounts"))
            .take();
        manager.create_table(identities).await?;
        manager
            .create_index(index("identities", &["account_id"]))
            .await?;
        let attempts = Table::create()
            .table("sign_in_attempts")
            .col(text("state").primary_key())
            .col(text("browser"))
            .col(text("issuer"))
            .col(text("next"))
            .col(big_integer("expires_at"))
            .take();
        manager.create_table(attempts).await?;
        manager
            .create_index(index("sign_in_attempts", &["expires_at"]))
            .await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in ["sign_in_attempts", "identities"] {
            let drop = Table::drop().table(table).take();
            manager.drop_table(drop).await?;
        }
        Ok(())
    }
}
