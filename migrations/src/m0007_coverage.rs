//! Who registered each source, which source gave each version of a card, and removed registrations; the columns
//! `answered_by`, `limit_met`, `zone`, `vouched_account`.

use sea_orm_migration::{prelude::*, schema::*};

use crate::keys::{index, references};

/// Data that distinguishes a domain's own cards from those nominated by others.
#[derive(Debug, DeriveMigrationName)]
pub struct Migration;

/// The new columns, one statement each: SQLite cannot add two at once. Existing rows belong to nobody until the
/// registry attributes them at its next start.
fn columns() -> [(&'static str, &'static str, ColumnDef); 5] {
    [
        (
            "versions",
            "standing",
            text("standing").default("nomination").take(),
        ),
        ("sources", "answered_by", text_null("answered_by")),
        ("sources", "limit_met", text_null("limit_met")),
        ("proofs", "zone", text_null("zone")),
        ("proofs", "vouched_account", uuid_null("vouched_account")),
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
        manager
            .create_table(
                Table::create()
                    .table("source_registrants")
                    .col(big_pk_auto("id"))
                    .col(big_integer("source_id"))
                    .col(uuid_null("account_id"))
                    .col(text_null("network"))
                    .col(text_null("role"))
                    .col(big_integer("registered_at"))
                    .foreign_key(&mut references(
                        "source_registrants",
                        "source_id",
                        "sources",
                    ))
                    .foreign_key(&mut references(
                        "source_registrants",
                        "account_id",
                        "accounts",
                    ))
                    .take(),
            )
            .await?;
        for columns in [["source_id", "account_id"], ["source_id", "network"]] {
            manager
                .create_index(index("source_registrants", &columns).unique().take())
                .await?;
        }
        for column in ["account_id", "network"] {
            manager
                .create_index(index("source_registrants", &[column]))
                .await?;
        }
        manager
            .create_table(
                Table::create()
                    .table("version_sources")
                    .col(uuid("version_id"))
                    .col(big_integer("source_id"))
                    .col(text("answered_by"))
                    .primary_key(Index::create().col("version_id").col("source_id"))
                    .foreign_key(&mut references("version_sources", "version_id", "versions"))
                    .foreign_key(&mut references("version_sources", "source_id", "sources"))
                    .take(),
            )
            .await?;
        manager
            .create_index(index("version_sources", &["source_id"]))
            .await?;
        manager
            .create_index(index("version_sources", &["answered_by"]))
            .await?;
        manager
            .create_table(
                Table::create()
                    .table("withdrawn_urns")
                    .col(text("urn").primary_key())
                    .col(text("domain"))
                    .col(uuid("agent_id"))
                    .col(big_integer("at"))
                    .foreign_key(&mut references("withdrawn_urns", "agent_id", "agents"))
                    .take(),
            )
            .await?;
        manager
            .create_index(index("withdrawn_urns", &["domain"]))
            .await?;
        manager
            .create_index(index("domains", &["owner_id"]))
            .await?;
        // Only events tell who registered the existing sources.
        manager
            .create_index(
                Index::create()
                    .name("ix_events_registered")
                    .table("events")
                    .col("subject")
                    .and_where(Expr::cust("kind = 'domain.registered'"))
                    .take(),
            )
            .await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (name, table) in [
            ("ix_events_registered", "events"),
            ("ix_domains_owner_id", "domains"),
        ] {
            manager
                .drop_index(Index::drop().name(name).table(table).to_owned())
                .await?;
        }
        for table in ["withdrawn_urns", "version_sources", "source_registrants"] {
            manager
                .drop_table(Table::drop().table(table).to_owned())
                .await?;
        }
        for (table, name, _) in columns() {
            manager
                .alter_table(Table::alter().table(table).drop_column(name).take())
                .await?;
        }
        Ok(())
    }
}
