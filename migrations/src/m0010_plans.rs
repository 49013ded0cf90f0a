//! The planned due time of a source that was requested earlier (`planned_at`), and the address of its last good response
//! (`answered_from`).

use sea_orm_migration::{prelude::*, schema::*};

/// Columns of sources.
#[derive(Debug, DeriveMigrationName)]
pub struct Migration;

/// The new columns, one statement each: SQLite cannot add two at once.
fn columns() -> [(&'static str, ColumnDef); 2] {
    [
        ("planned_at", big_integer_null("planned_at")),
        ("answered_from", text_null("answered_from")),
    ]
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (_, mut definition) in columns() {
            manager
                .alter_table(
                    Table::alter()
                        .table("sources")
                        .add_column(&mut definition)
                        .take(),
                )
                .await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (name, _) in columns() {
            manager
                .alter_table(Table::alter().table("sources").drop_column(name).take())
                .await?;
        }
        Ok(())
    }
}
