//! What collections are used for: the ones that a policy set asks about, as they were when it was made, and the ones to whose
//! audience an agent is shown.

use sea_orm_migration::{prelude::*, schema::*};

/// The collections of policy sets and of agents.
#[derive(Debug, DeriveMigrationName)]
pub struct Migration;

/// The new columns, one statement each: SQLite cannot add two at once.
const COLUMNS: [(&str, &str); 3] = [
    ("policy_sets", "collections"),
    ("agents", "collections"),
    ("agents", "collection_audience"),
];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (table, column) in COLUMNS {
            let alter = Table::alter()
                .table(table)
                .add_column(text_null(column))
                .take();
            manager.alter_table(alter).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (table, column) in COLUMNS {
            let alter = Table::alter().table(table).drop_column(column).take();
            manager.alter_table(alter).await?;
        }
        Ok(())
    }
}
