//! Agents, the versions of their cards, and the decisions on them.

use sea_orm_migration::{prelude::*, schema::*};

use crate::keys::{index, references};

/// Agents, versions and reviews.
#[derive(Debug, DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .create_table(
                Table::create()
                    .table("agents")
                    .col(pk_uuid("id"))
                    .col(big_integer("domain_id"))
                    .col(text("domain"))
                    .col(text("slot"))
                    .col(text_null("urn").unique_key())
                    .col(text("lifecycle"))
                    .col(text("visibility"))
                    .col(text("labels"))
                    .col(text("pins"))
                    .col(uuid_null("claimed_by"))
                    .col(uuid_null("owner_id"))
                    .col(uuid_null("submitter"))
                    .col(uuid_null("approved_version"))
                    .col(uuid_null("newest_version"))
                    .col(boolean("tls"))
                    .col(text("liveness"))
                    .col(text_null("liveness_reason"))
                    .col(big_integer_null("last_seen_at"))
                    .col(big_integer_null("last_changed_at"))
                    .col(big_integer_null("gone_since"))
                    .col(big_integer("changes_since"))
                    .col(integer("changes"))
                    .col(big_integer("created_at"))
                    .col(big_integer("updated_at"))
                    .col(big_integer_null("retired_at"))
                    .foreign_key(&mut references("agents", "domain_id", "domains"))
                    .take(),
            )
            .await?;
        manager
            .create_index(
                Index::create()
                    .name("ux_agents_slot_live")
                    .table("agents")
                    .col("domain_id")
                    .col("slot")
                    .unique()
                    .and_where(Expr::col("retired_at").is_null())
                    .take(),
            )
            .await?;
        manager
            .create_table(
                Table::create()
                    .table("holds")
                    .col(uuid("agent_id"))
                    .col(text("hold"))
                    .col(text("reason"))
                    .col(text("actor"))
                    .col(big_integer("since"))
                    .primary_key(Index::create().col("agent_id").col("hold"))
                    .foreign_key(&mut references("holds", "agent_id", "agents"))
                    .take(),
            )
            .await?;
        manager
            .create_table(
                Table::create()
                    .table("bodies")
                    .col(text("digest").primary_key())
                    .col(blob("bytes"))
                    .take(),
            )
            .await?;
        manager
            .create_table(
                Table::create()
                    .table("versions")
                    .col(pk_uuid("id"))
                    .col(uuid("agent_id"))
                    .col(text("digest"))
                    .col(text("content_digest"))
                    .col(text("signing"))
                    .col(text("signature"))
                    .col(text("key_sets"))
                    .col(text("thumbprints"))
                    .col(text("wire_family"))
                    .col(text("model"))
                    .col(text("findings"))
                    .col(boolean("has_error"))
                    .col(integer("derivation"))
                    .col(big_integer("observed_at"))
                    .col(text_null("change_class"))
                    .col(text("state"))
                    .col(boolean("ever_approved"))
                    .col(big_integer("repeats"))
                    .foreign_key(&mut references("versions", "agent_id", "agents"))
                    .take(),
            )
            .await?;
        manager
            .create_index(index("versions", &["agent_id", "id"]))
            .await?;
        manager.create_index(index("versions", &["digest"])).await?;
        manager
            .create_index(index("versions", &["derivation"]))
            .await?;
        manager
            .create_table(
                Table::create()
                    .table("decisions")
                    .col(big_pk_auto("id"))
                    .col(uuid("agent_id"))
                    .col(uuid("version_id"))
                    .col(text("content_digest"))
                    .col(text("signing"))
                    .col(boolean("approved"))
                    .col(text("rule"))
                    .col(text("actor"))
                    .col(text_null("reason"))
                    .col(boolean("self_approved"))
                    .col(big_integer("at"))
                    .foreign_key(&mut references("decisions", "agent_id", "agents"))
                    .take(),
            )
            .await?;
        manager
            .create_index(index("decisions", &["agent_id", "id"]))
            .await?;
        manager
            .create_table(
                Table::create()
                    .table("reviews")
                    .col(pk_uuid("id"))
                    .col(uuid("agent_id"))
                    .col(uuid("version_id"))
                    .col(uuid_null("previous_version"))
                    .col(text_null("change_class"))
                    .col(text("state"))
                    .col(text_null("submitter"))
                    .col(text_null("decider"))
                    .col(text_null("reason"))
                    .col(big_integer("created_at"))
                    .col(big_integer_null("decided_at"))
                    .foreign_key(&mut references("reviews", "agent_id", "agents"))
                    .take(),
            )
            .await?;
        manager
            .create_index(index("reviews", &["state", "id"]))
            .await?;
        manager.create_index(index("reviews", &["agent_id"])).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in [
            "reviews",
            "decisions",
            "versions",
            "bodies",
            "holds",
            "agents",
        ] {
            manager
                .drop_table(Table::drop().table(table).take())
                .await?;
        }
        Ok(())
    }
}
