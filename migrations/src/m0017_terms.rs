//! Terms of approvals: since when the approval of an agent's served content holds, and when it ends; and approvals that
//! one account has given alone, with what they replaced.

use sea_orm_migration::{prelude::*, schema::*};

use crate::keys::{index, references};

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
        manager.create_table(break_glasses()).await?;
        let by_agent = index("break_glasses", &["agent_id"]);
        manager.create_index(by_agent).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let drop = Table::drop().table("break_glasses").take();
        manager.drop_table(drop).await?;
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

fn break_glasses() -> TableCreateStatement {
    Table::create()
        .table("break_glasses")
        .col(pk_uuid("review_id"))
        .col(uuid("agent_id"))
        .col(uuid("account_id"))
        .col(text("asked"))
        .col(uuid("version_id"))
        .col(text("content_digest"))
        .col(text("signing"))
        .col(text("reason"))
        .col(uuid_null("before_version"))
        .col(text("before_holds"))
        .col(text("before_pins"))
        .col(big_integer("at"))
        .col(big_integer("ends_at"))
        .foreign_key(&mut references("break_glasses", "review_id", "reviews"))
        .foreign_key(&mut references("break_glasses", "agent_id", "agents"))
        .foreign_key(&mut references("break_glasses", "account_id", "accounts"))
        .take()
}
