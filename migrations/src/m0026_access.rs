//! Until when the claims of an identity provider let an account in, and since when they do not any more.

use sea_orm_migration::{prelude::*, schema::*};

/// The last valid claims of an account, and the end of its access.
#[derive(Debug, DeriveMigrationName)]
pub struct Migration;

const COLUMNS: [&str; 2] = ["claims_valid_at", "access_ended_at"];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for column in COLUMNS {
            let alter = Table::alter()
                .table("accounts")
                .add_column(big_integer_null(column))
                .take();
            manager.alter_table(alter).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for column in COLUMNS {
            let alter = Table::alter().table("accounts").drop_column(column).take();
            manager.alter_table(alter).await?;
        }
        Ok(())
    }
}
