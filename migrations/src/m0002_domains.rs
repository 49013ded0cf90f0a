//! Domains, their proofs, their sources, and the results of fetches and checks.

use sea_orm_migration::{prelude::*, schema::*};

use crate::keys::{index, references};

/// Domains and sources.
#[derive(Debug, DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .create_table(
                Table::create()
                    .table("domains")
                    .col(big_pk_auto("id"))
                    .col(text("name"))
                    .col(text("scheme"))
                    .col(text("state"))
                    .col(big_integer("generation"))
                    .col(uuid_null("account_id"))
                    .col(text_null("nominated_from"))
                    .col(uuid_null("owner_id"))
                    .col(boolean("dns_proved").default(false))
                    .col(big_integer("generation_since").default(0))
                    .col(text_null("contact"))
                    .col(text_null("opted_out_by"))
                    .col(big_integer_null("lapsed_at"))
                    .col(big_integer_null("check_due_at"))
                    .col(big_integer("created_at"))
                    .col(big_integer_null("deleted_at"))
                    .col(big_integer_null("visit_due_at"))
                    .col(big_integer_null("visit_interval_us"))
                    .col(text_null("network"))
                    .col(big_integer("not_before"))
                    .col(big_integer_null("wanted_at"))
                    .col(big_integer_null("lease"))
                    .col(big_integer_null("leased_until"))
                    .foreign_key(&mut references("domains", "account_id", "accounts"))
                    .foreign_key(&mut references("domains", "owner_id", "accounts"))
                    .take(),
            )
            .await?;
        manager
            .create_index(
                Index::create()
                    .name("ux_domains_name_live")
                    .table("domains")
                    .col("name")
                    .unique()
                    .and_where(Expr::col("deleted_at").is_null())
                    .take(),
            )
            .await?;
        manager
            .create_index(visits("awaited", Expr::col("visit_interval_us").is_null()))
            .await?;
        manager
            .create_index(visits(
                "planned",
                Expr::col("visit_interval_us").is_not_null(),
            ))
            .await?;
        manager
            .create_index(index("domains", &["leased_until"]))
            .await?;
        manager
            .create_index(index("domains", &["nominated_from"]))
            .await?;
        manager
            .create_index(index("domains", &["check_due_at"]))
            .await?;
        manager
            .create_table(
                Table::create()
                    .table("crawl_pace")
                    .col(big_integer("id").primary_key())
                    .col(double("visits"))
                    .col(big_integer("at"))
                    .take(),
            )
            .await?;
        // The only row of its table: locked by whoever leases visits.
        manager
            .exec_stmt(
                Query::insert()
                    .into_table("crawl_pace")
                    .columns(["id", "visits", "at"])
                    .values_panic([1_i64.into(), 0.0.into(), 0_i64.into()])
                    .take(),
            )
            .await?;
        manager
            .create_table(
                Table::create()
                    .table("proofs")
                    .col(big_pk_auto("id"))
                    .col(big_integer("domain_id"))
                    .col(text("method"))
                    .col(text("actor"))
                    .col(uuid_null("account_id"))
                    .col(text_null("place"))
                    .col(text_null("nonce"))
                    .col(text_null("reason"))
                    .col(big_integer("proved_at"))
                    .col(big_integer("held_at"))
                    .col(big_integer_null("absent_since"))
                    .col(integer("absent_looks"))
                    .col(big_integer_null("ended_at"))
                    .foreign_key(&mut references("proofs", "domain_id", "domains"))
                    .foreign_key(&mut references("proofs", "account_id", "accounts"))
                    .take(),
            )
            .await?;
        manager
            .create_index(index("proofs", &["domain_id"]))
            .await?;
        manager
            .create_table(
                Table::create()
                    .table("challenges")
                    .col(big_pk_auto("id"))
                    .col(big_integer("domain_id"))
                    .col(uuid("account_id"))
                    .col(text("nonce"))
                    .col(big_integer("expires_at"))
                    .foreign_key(&mut references("challenges", "domain_id", "domains"))
                    .foreign_key(&mut references("challenges", "account_id", "accounts"))
                    .take(),
            )
            .await?;
        manager
            .create_index(
                index("challenges", &["domain_id", "account_id"])
                    .unique()
                    .take(),
            )
            .await?;
        manager
            .create_table(
                Table::create()
                    .table("proof_checks")
                    .col(big_pk_auto("id"))
                    .col(big_integer("domain_id"))
                    .col(uuid_null("account_id"))
                    .col(text("actor"))
                    .col(big_integer("at"))
                    .col(text("method"))
                    .col(text("place"))
                    .col(text("outcome"))
                    .col(text("detail"))
                    .foreign_key(&mut references("proof_checks", "domain_id", "domains"))
                    .take(),
            )
            .await?;
        manager
            .create_index(index("proof_checks", &["domain_id", "id"]))
            .await?;
        manager
            .create_table(
                Table::create()
                    .table("owner_marks")
                    .col(big_integer("domain_id").primary_key())
                    .col(text("name_servers"))
                    .col(text_null("tls_key"))
                    .col(text("card_keys"))
                    .col(big_integer("seen_at"))
                    .foreign_key(&mut references("owner_marks", "domain_id", "domains"))
                    .take(),
            )
            .await?;
        manager
            .create_table(
                Table::create()
                    .table("enrolled_keys")
                    .col(big_pk_auto("id"))
                    .col(big_integer("domain_id"))
                    .col(text("kid"))
                    .col(text("thumbprint"))
                    .col(text("jwk"))
                    .col(text("actor"))
                    .col(big_integer("created_at"))
                    .foreign_key(&mut references("enrolled_keys", "domain_id", "domains"))
                    .take(),
            )
            .await?;
        manager
            .create_index(
                index("enrolled_keys", &["domain_id", "kid"])
                    .unique()
                    .take(),
            )
            .await?;
        manager
            .create_table(
                Table::create()
                    .table("sources")
                    .col(big_pk_auto("id"))
                    .col(big_integer("domain_id"))
                    .col(text("kind"))
                    .col(text("url"))
                    .col(text_null("identifier"))
                    .col(big_integer_null("catalog_id"))
                    .col(big_integer_null("unlisted_since"))
                    .col(integer("unlisted_looks").default(0))
                    .col(uuid_null("agent_id"))
                    .col(uuid_null("approve_as"))
                    .col(text_null("validator_url"))
                    .col(text_null("etag"))
                    .col(text_null("last_modified"))
                    .col(text_null("vary"))
                    .col(big_integer_null("max_age"))
                    .col(big_integer("next_due_at"))
                    .col(big_integer("interval_us"))
                    .col(boolean("full_wanted"))
                    .col(big_integer("attempts").default(0))
                    .col(big_integer_null("last_success_at"))
                    .col(big_integer_null("last_full_at"))
                    .col(text_null("failing_as"))
                    .col(big_integer_null("failing_since"))
                    .col(integer("failures"))
                    .col(big_integer_null("cause_since"))
                    .col(big_integer_null("cause_latest"))
                    .col(integer("cause_looks"))
                    .col(text("liveness"))
                    .col(text_null("liveness_reason"))
                    .col(big_integer("created_at"))
                    .col(big_integer_null("ended_at"))
                    .foreign_key(&mut references("sources", "domain_id", "domains"))
                    .take(),
            )
            .await?;
        manager
            .create_index(
                Index::create()
                    .name("ux_sources_live")
                    .table("sources")
                    .col("domain_id")
                    .col("kind")
                    .col("url")
                    .unique()
                    .and_where(Expr::col("ended_at").is_null())
                    .take(),
            )
            .await?;
        manager
            .create_index(index("sources", &["agent_id"]))
            .await?;
        manager
            .create_table(
                Table::create()
                    .table("attempts")
                    .col(big_integer("source_id"))
                    .col(integer("place"))
                    .col(big_integer("number"))
                    .col(big_integer("at"))
                    .col(text("url"))
                    .col(text("outcome"))
                    .col(integer_null("status"))
                    .col(text_null("address"))
                    .col(text("detail"))
                    .col(integer("elapsed_ms"))
                    .primary_key(Index::create().col("source_id").col("place"))
                    .foreign_key(&mut references("attempts", "source_id", "sources"))
                    .take(),
            )
            .await?;
        manager
            .create_table(
                Table::create()
                    .table("source_days")
                    .col(big_integer("source_id"))
                    .col(integer("day"))
                    .col(integer("looks"))
                    .col(integer("good"))
                    .primary_key(Index::create().col("source_id").col("day"))
                    .foreign_key(&mut references("source_days", "source_id", "sources"))
                    .take(),
            )
            .await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in [
            "source_days",
            "attempts",
            "sources",
            "enrolled_keys",
            "owner_marks",
            "proof_checks",
            "challenges",
            "proofs",
            "crawl_pace",
            "domains",
        ] {
            manager
                .drop_table(Table::drop().table(table).take())
                .await?;
        }
        Ok(())
    }
}

/// Visits by due time. Requested and planned visits have an index each, so that finding the oldest of one kind does
/// not scan a million of the other. Address blocks and leases are included, so that thousands of due visits to a busy
/// block are skipped without reading their rows.
fn visits(kind: &str, which: Expr) -> IndexCreateStatement {
    Index::create()
        .name(format!("ix_domains_visit_{kind}"))
        .table("domains")
        .col("visit_due_at")
        .col("network")
        .col("leased_until")
        .and_where(which)
        .take()
}
