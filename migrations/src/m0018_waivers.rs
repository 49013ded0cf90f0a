//! Waivers of policies for the content of an agent, and what policies on a dry run would have changed.

use sea_orm_migration::{prelude::*, schema::*};

use crate::keys::{index, references};

/// The tables of waivers and dry runs.
#[derive(Debug, DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let waivers = Table::create()
            .table("waivers")
            .col(pk_uuid("id"))
            .col(uuid("agent_id"))
            .col(text("policy"))
            .col(text("content_digest"))
            .col(text("reason"))
            .col(uuid("approver_id"))
            .col(big_integer("created_at"))
            .col(big_integer("expires_at"))
            .col(big_integer_null("ended_at"))
            .col(text_null("ended_by"))
            .col(text_null("ended_reason"))
            .foreign_key(&mut references("waivers", "agent_id", "agents"))
            .foreign_key(&mut references("waivers", "approver_id", "accounts"))
            .take();
        manager.create_table(waivers).await?;
        for of in [&["agent_id"][..], &["ended_at", "expires_at"]] {
            manager.create_index(index("waivers", of)).await?;
        }
        let changes = Table::create()
            .table("dry_run_changes")
            .col(text("policy"))
            .col(text("fingerprint"))
            .col(integer("day"))
            .col(text("action"))
            .col(text("resource"))
            .col(text("caller"))
            .col(boolean("allows"))
            .col(big_integer("count"))
            .primary_key(
                Index::create()
                    .col("policy")
                    .col("fingerprint")
                    .col("day")
                    .col("action")
                    .col("resource")
                    .col("caller"),
            )
            .take();
        manager.create_table(changes).await?;
        manager
            .create_index(index("dry_run_changes", &["day"]))
            .await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in ["dry_run_changes", "waivers"] {
            let drop = Table::drop().table(table).take();
            manager.drop_table(drop).await?;
        }
        Ok(())
    }
}
