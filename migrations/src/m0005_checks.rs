//! The reason and results of proof checks, which requests were conditional, and records of deleted domains.

use sea_orm_migration::{prelude::*, schema::*};

/// Fields of checks and attempts that were part of a sentence, or not stored; deleted domains by name.
#[derive(Debug, DeriveMigrationName)]
pub struct Migration;

/// The new columns, one statement each: SQLite cannot add two at once.
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
        // For finding a domain among the deleted ones when it is registered again.
        manager
            .create_index(
                Index::create()
                    .name("ix_domains_name_deleted")
                    .table("domains")
                    .col("name")
                    .and_where(Expr::col("deleted_at").is_not_null())
                    .take(),
            )
            .await?;
        // Proofs of a deleted domain are no longer checked.
        let forget = Query::update()
            .table("domains")
            .value("check_due_at", Option::<i64>::None)
            .and_where(Expr::col("deleted_at").is_not_null())
            .take();
        manager.execute(forget).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .drop_index(
                Index::drop()
                    .name("ix_domains_name_deleted")
                    .table("domains")
                    .to_owned(),
            )
            .await?;
        for (table, name, _) in columns() {
            manager
                .alter_table(Table::alter().table(table).drop_column(name).take())
                .await?;
        }
        Ok(())
    }
}
