//! What policies and audiences need beside what is there: the collections that a policy set asks about, as they were when it was
//! made; those to whose audience an agent is shown; and the methods by which a domain is proved.

use sea_orm_migration::{prelude::*, schema::*};

/// The collections of policy sets and of agents, and the methods of domains.
#[derive(Debug, DeriveMigrationName)]
pub struct Migration;

/// The new columns, one statement each: SQLite cannot add two at once.
const COLUMNS: [(&str, &str); 4] = [
    ("policy_sets", "collections"),
    ("agents", "collections"),
    ("agents", "collection_audience"),
    ("domains", "proof_methods"),
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
