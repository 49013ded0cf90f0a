//! Reviews with a kind, an assignee, a due date, several approvals, comments and reports; the sponsor of an agent; and
//! up to when an account has seen the news of its agents.

use sea_orm_migration::{prelude::*, schema::*};

use crate::keys::{index, references};

/// What people need to decide together.
#[derive(Debug, DeriveMigrationName)]
pub struct Migration;

/// The new columns, one statement each: SQLite cannot add two at once. A process of before writes admissions only.
fn columns() -> [(&'static str, &'static str, ColumnDef); 5] {
    let kind = text("kind").default("admission").take();
    [
        ("reviews", "kind", kind),
        ("reviews", "assignee", uuid_null("assignee")),
        ("reviews", "due_at", big_integer_null("due_at")),
        ("agents", "sponsor_id", uuid_null("sponsor_id")),
        ("accounts", "news_seen_at", big_integer_null("news_seen_at")),
    ]
}

/// The new indexes of tables that exist.
const INDEXES: [(&str, &[&str]); 2] = [("agents", &["owner_id"]), ("agents", &["submitter"])];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (table, _, mut definition) in columns() {
            let alter = Table::alter()
                .table(table)
                .add_column(&mut definition)
                .take();
            manager.alter_table(alter).await?;
        }
        for (table, of) in INDEXES {
            manager.create_index(index(table, of)).await?;
        }
        approvals(manager).await?;
        comments(manager).await?;
        reports(manager).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in ["agent_reports", "review_comments", "review_approvals"] {
            let drop = Table::drop().table(table).take();
            manager.drop_table(drop).await?;
        }
        for (table, of) in INDEXES {
            let name = format!("ix_{table}_{}", of.join("_"));
            let drop = Index::drop().name(name).table(table).to_owned();
            manager.drop_index(drop).await?;
        }
        for (table, name, _) in columns() {
            let alter = Table::alter().table(table).drop_column(name).take();
            manager.alter_table(alter).await?;
        }
        Ok(())
    }
}

async fn approvals(manager: &SchemaManager<'_>) -> Result<(), DbErr> {
    let table = Table::create()
        .table("review_approvals")
        .col(uuid("review_id"))
        .col(uuid("account_id"))
        .col(text("reason"))
        .col(big_integer("at"))
        .col(boolean_null("counted"))
        .primary_key(Index::create().col("review_id").col("account_id"))
        .foreign_key(&mut references("review_approvals", "review_id", "reviews"))
        .foreign_key(&mut references(
            "review_approvals",
            "account_id",
            "accounts",
        ))
        .take();
    manager.create_table(table).await
}

async fn comments(manager: &SchemaManager<'_>) -> Result<(), DbErr> {
    let table = Table::create()
        .table("review_comments")
        .col(pk_uuid("id"))
        .col(uuid("review_id"))
        .col(uuid("author_id"))
        .col(text("text"))
        .col(big_integer("at"))
        .foreign_key(&mut references("review_comments", "review_id", "reviews"))
        .foreign_key(&mut references("review_comments", "author_id", "accounts"))
        .take();
    manager.create_table(table).await?;
    manager
        .create_index(index("review_comments", &["review_id", "id"]))
        .await
}

async fn reports(manager: &SchemaManager<'_>) -> Result<(), DbErr> {
    let table = Table::create()
        .table("agent_reports")
        .col(pk_uuid("id"))
        .col(uuid("review_id"))
        .col(uuid_null("account_id"))
        .col(text_null("network"))
        .col(text("reason"))
        .col(text_null("contact"))
        .col(big_integer("at"))
        .foreign_key(&mut references("agent_reports", "review_id", "reviews"))
        .foreign_key(&mut references("agent_reports", "account_id", "accounts"))
        .take();
    manager.create_table(table).await?;
    for of in [
        &["review_id", "id"][..],
        &["account_id", "at"],
        &["network", "at"],
    ] {
        manager.create_index(index("agent_reports", of)).await?;
    }
    Ok(())
}
