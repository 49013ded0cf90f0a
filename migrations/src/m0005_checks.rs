//! What a look for a proof was for and has found, and which requests asked only for what has changed.

use sea_orm_migration::{prelude::*, schema::*};

/// Fields of looks and attempts that were part of a sentence, or not kept.
#[derive(Debug, DeriveMigrationName)]
pub struct Migration;

/// The new columns, one statement each: SQLite adds no two at once.
fn columns() -> [(&'static str, &'static str, ColumnDef); 4] {
    [
        ("proof_checks", "wanted", text_null("wanted")),
        ("proof_checks", "found", text_null("found")),
        (
            "proof_checks",
            "aliased",
            boolean("aliased").default(false).take(),
        ),
        (
            "attempts",
            "conditional",
            boolean("conditional").default(false).take(),
        ),
    ]
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (table, _, mut definition) in columns() {
            manager
                .alter_table(
                    Table::alter()
                        .table(table)
                        .add_column(&mut definition)
                        .take(),
                )
                .await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (table, name, _) in columns() {
            manager
                .alter_table(Table::alter().table(table).drop_column(name).take())
                .await?;
        }
        Ok(())
    }
}
