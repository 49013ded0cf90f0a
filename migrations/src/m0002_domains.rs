//! Domains, their sources, the results of fetches, and who registered what.

use sea_orm_migration::{prelude::*, schema::*};

use crate::new_table::NewTable;

pub(crate) fn tables() -> Vec<NewTable> {
    vec![
        domains(),
        // Whoever leases visits locks the only row.
        NewTable::new("crawl_pace")
            .columns([
                big_integer("id").primary_key().take(),
                double("visits"),
                big_integer("at"),
                big_integer("turn").default(0).take(),
            ])
            .row(
                Query::insert()
                    .into_table("crawl_pace")
                    .columns(["id", "visits", "at"])
                    .values_panic([1_i64.into(), 0.0.into(), 0_i64.into()])
                    .take(),
            ),
        sources(),
        NewTable::new("attempts")
            .columns([
                big_integer("source_id"),
                integer("place"),
                big_integer("number"),
                big_integer("at"),
                text("url"),
                text("outcome"),
                integer_null("status"),
                text_null("address"),
                text("detail"),
                integer("elapsed_ms"),
                boolean("conditional").default(false).take(),
            ])
            .primary_key(["source_id", "place"])
            .references("source_id", "sources"),
        NewTable::new("source_days")
            .columns([
                big_integer("source_id"),
                integer("day"),
                integer("looks"),
                integer("good"),
            ])
            .primary_key(["source_id", "day"])
            .references("source_id", "sources"),
        NewTable::new("source_registrants")
            .columns([
                big_pk_auto("id"),
                big_integer("source_id"),
                uuid_null("account_id"),
                text_null("network"),
                text_null("role"),
                big_integer("registered_at"),
            ])
            .references("source_id", "sources")
            .references("account_id", "accounts")
            .unique_index(["source_id", "account_id"])
            .unique_index(["source_id", "network"])
            .index(["account_id"])
            .index(["network"]),
    ]
}

fn domains() -> NewTable {
    let table = NewTable::new("domains")
        .columns([
            big_pk_auto("id"),
            text("name"),
            text("scheme"),
            text("state"),
            big_integer("generation"),
            uuid_null("account_id"),
            text_null("nominated_from"),
            uuid_null("owner_id"),
            boolean("dns_proved").default(false).take(),
            big_integer("generation_since").default(0).take(),
            text_null("contact"),
            text_null("opted_out_by"),
            big_integer_null("lapsed_at"),
            big_integer_null("check_due_at"),
            big_integer("created_at"),
            big_integer_null("deleted_at"),
            big_integer_null("visit_due_at"),
            big_integer_null("visit_interval_us"),
            text_null("network"),
            big_integer("not_before"),
            big_integer_null("wanted_at"),
            big_integer_null("lease"),
            big_integer_null("leased_until"),
            text_null("proof_methods"),
            uuid_null("vouched_owner"),
            big_integer_null("vouched_since"),
            big_integer_null("vouched_until"),
            text_null("vouched_by"),
            text_null("vouched_reason"),
            big_integer("visit_turn").default(0).take(),
            text_null("visit_requester"),
        ])
        .references("account_id", "accounts")
        .references("owner_id", "accounts")
        .unique_partial_index("ux_domains_name_live", ["name"], is_null("deleted_at"));
    let table = visit_indexes(table)
        .index(["leased_until"])
        .index(["nominated_from"])
        .index(["check_due_at"])
        // Finds a deleted domain when it is registered again.
        .partial_index(
            "ix_domains_name_deleted",
            ["name"],
            [is_not_null("deleted_at")],
        )
        .index(["owner_id"])
        // Each check of a proof looks for hosts with such an owner, and few hosts have one.
        .index(["vouched_owner"]);
    requested_visit_indexes(table)
}

/// Visits by due time. Requested and planned visits have an index each, so that finding the oldest of one kind does
/// not scan a million of the other. Address blocks and leases are included, so that thousands of due visits to a busy
/// block are skipped without reading their rows.
fn visit_indexes(domains: NewTable) -> NewTable {
    let columns = ["visit_due_at", "network", "leased_until"];
    domains
        .partial_index(
            "ix_domains_visit_awaited",
            columns,
            [is_null("visit_interval_us")],
        )
        .partial_index(
            "ix_domains_visit_planned",
            columns,
            [is_not_null("visit_interval_us")],
        )
}

/// Requested visits by their turns and their requesters; they are few among a million of planned ones.
fn requested_visit_indexes(domains: NewTable) -> NewTable {
    let requested = || [is_null("visit_interval_us"), is_not_null("visit_due_at")];
    domains
        .partial_index(
            "ix_domains_visit_turn",
            ["visit_turn", "visit_due_at", "network", "leased_until"],
            requested(),
        )
        .partial_index(
            "ix_domains_visit_requester",
            ["visit_requester", "visit_turn"],
            requested(),
        )
}

fn sources() -> NewTable {
    let live = is_null("ended_at");
    NewTable::new("sources")
        .columns([
            big_pk_auto("id"),
            big_integer("domain_id"),
            text("kind"),
            text("url"),
            text_null("identifier"),
            big_integer_null("catalog_id"),
            big_integer_null("unlisted_since"),
            integer("unlisted_looks").default(0).take(),
            uuid_null("agent_id"),
            uuid_null("approve_as"),
            text_null("validator_url"),
            text_null("etag"),
            text_null("last_modified"),
            text_null("vary"),
            big_integer_null("max_age"),
            big_integer("next_due_at"),
            big_integer("interval_us"),
            boolean("full_wanted"),
            big_integer("attempts").default(0).take(),
            big_integer_null("last_success_at"),
            big_integer_null("last_full_at"),
            text_null("failing_as"),
            big_integer_null("failing_since"),
            integer("failures"),
            big_integer_null("cause_since"),
            big_integer_null("cause_latest"),
            integer("cause_looks"),
            text("liveness"),
            text_null("liveness_reason"),
            big_integer("created_at"),
            big_integer_null("ended_at"),
            text_null("answered_by"),
            text_null("limit_met"),
            big_integer_null("planned_at"),
            text_null("answered_from"),
            text_null("entry_digest"),
        ])
        .references("domain_id", "domains")
        .unique_partial_index("ux_sources_live", ["domain_id", "kind", "url"], live)
        .index(["agent_id"])
}

fn is_null(column: &'static str) -> Expr {
    Expr::col(column).is_null()
}

fn is_not_null(column: &'static str) -> Expr {
    Expr::col(column).is_not_null()
}
