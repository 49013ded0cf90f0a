//! Turns of requested visits, by which accounts share the crawler.

use sea_orm_migration::{prelude::*, schema::*};

/// `visit_turn` and `visit_requester` of a domain, and `turn` of the pace: the turn that the crawler has reached. Visits that
/// were requested before have the turn 0, and go before everything that is requested in bulk.
#[derive(Debug, DeriveMigrationName)]
pub struct Migration;

/// The columns of each index of visits. Time, address block and lease are included, so that visits that cannot be made now
/// are skipped without reading their rows.
const INDEXES: [(&str, &[&str]); 2] = [
    (
        "ix_domains_visit_turn",
        &["visit_turn", "visit_due_at", "network", "leased_until"],
    ),
    (
        "ix_domains_visit_requester",
        &["visit_requester", "visit_turn"],
    ),
];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // One statement each: SQLite cannot add two at once.
        let turn = Table::alter()
            .table("domains")
            .add_column(big_integer("visit_turn").default(0))
            .take();
        manager.alter_table(turn).await?;
        let requester = Table::alter()
            .table("domains")
            .add_column(text_null("visit_requester"))
            .take();
        manager.alter_table(requester).await?;
        let reached = Table::alter()
            .table("crawl_pace")
            .add_column(big_integer("turn").default(0))
            .take();
        manager.alter_table(reached).await?;
        for (name, columns) in INDEXES {
            let mut index = Index::create();
            index.name(name).table("domains");
            for column in columns {
                index.col(*column);
            }
            // Only of requested visits, which are few among a million of planned ones.
            index
                .and_where(Expr::col("visit_interval_us").is_null())
                .and_where(Expr::col("visit_due_at").is_not_null());
            manager.create_index(index.take()).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (name, _) in INDEXES {
            let mut index = Index::drop();
            index.name(name).table("domains");
            manager.drop_index(index).await?;
        }
        for (table, column) in [
            ("crawl_pace", "turn"),
            ("domains", "visit_requester"),
            ("domains", "visit_turn"),
        ] {
            let alter = Table::alter().table(table).drop_column(column).take();
            manager.alter_table(alter).await?;
        }
        Ok(())
    }
}
