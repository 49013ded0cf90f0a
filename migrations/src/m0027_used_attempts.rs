//! Attempts to sign in that have begun a session, so that each is good for one answer.

use sea_orm_migration::{prelude::*, schema::*};

use crate::keys::index;

/// The used attempts.
#[derive(Debug, DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let used = Table::create()
            .table("used_sign_in_attempts")
            .col(text("state").primary_key())
            .col(big_integer("expires_at"))
            .take();
        manager.create_table(used).await?;
        manager
            .create_index(index("used_sign_in_attempts", &["expires_at"]))
            .await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let drop = Table::drop().table("used_sign_in_attempts").take();
        manager.drop_table(drop).await
    }
}
