//! Terms of approvals: since when the approval of an agent's served content holds, and when it ends.

use sea_orm_migration::{prelude::*, schema::*};

use crate::keys::index;

/// The term of an approval.
#[derive(Debug, DeriveMigrationName)]
pub struct Migration;

/// The new columns, one statement each: SQLite cannot add two at once.
const COLUMNS: [&str; 2] = ["certified_at", "recertify_at"];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for name in COLUMNS {
            let alter = Table::alter()
                .table("agents")
                .add_column(big_integer_null(name))
                .take();
            manager.alter_table(alter).await?;
            manager.create_index(index("agents", &[name])).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for name in COLUMNS {
            let drop = Index::drop()
                .name(format!("ix_agents_{name}"))
                .table("agents")
                .to_owned();
            manager.drop_index(drop).await?;
            let alter = Table::alter().table("agents").drop_column(name).take();
            manager.alter_table(alter).await?;
        }
        Ok(())
    }
}
