//! Domains with their sources and registrants, and the results of fetches.

use sea_orm_migration::{prelude::*, schema::*};

use crate::new_table::NewTable;

pub(crate) fn domain_migration_tables() -> Vec<NewTable> {
    vec![
        domains_table(),
        // Leasing visits locks this single row.
        NewTable::new("crawl_pace")
            .column(big_integer("id").primary_key().take())
            .column(double("visits"))
            .column(big_integer("at"))
            .column(big_integer("turn").default(0).take())
            .initial_row(
                Query::insert()
                    .into_table("crawl_pace")
                    .columns(["id", "visits", "at"])
                    .values_panic([1_i64.into(), 0.0.into(), 0_i64.into()])
                    .take(),
            ),
        sources_table(),
        NewTable::new("attempts")
            .foreign_key(big_integer("source_id"), "sources")
            .column(integer("place"))
            .column(big_integer("number"))
            .column(big_integer("at"))
            .column(text("url"))
            .column(text("outcome"))
            .column(integer_null("status"))
            .column(text_null("address"))
            .column(text("detail"))
            .column(integer("elapsed_ms"))
            .column(boolean("conditional").default(false).take())
            .primary_key(["source_id", "place"]),
        NewTable::new("source_days")
            .foreign_key(big_integer("source_id"), "sources")
            .column(integer("day"))
            .column(integer("looks"))
            .column(integer("good"))
            .primary_key(["source_id", "day"]),
        NewTable::new("source_registrants")
            .column(big_pk_auto("id"))
            .foreign_key(big_integer("source_id"), "sources")
            .foreign_key(uuid_null("account_id"), "accounts")
            .column(text_null("network"))
            .column(text_null("role"))
            .column(big_integer("registered_at"))
            .unique_index(["source_id", "account_id"])
            .unique_index(["source_id", "network"])
            .index(["account_id"])
            .index(["network"]),
    ]
}

fn domains_table() -> NewTable {
    let (live, deleted) = (is_null("deleted_at"), is_not_null("deleted_at"));
    let awaited = || is_null("visit_interval_us");
    let planned = is_not_null("visit_interval_us");
    let requested = || [awaited(), is_not_null("visit_due_at")];
    let by_time = ["visit_due_at", "network", "leased_until"];
    let by_turn = ["visit_turn", "visit_due_at", "network", "leased_until"];
    let by_requester = ["visit_requester", "visit_turn"];
    NewTable::new("domains")
        .column(big_pk_auto("id"))
        .column(text("name"))
        .column(text("scheme"))
        .column(text("state"))
        .column(big_integer("generation"))
        .foreign_key(uuid_null("account_id"), "accounts")
        .column(text_null("nominated_from"))
        .foreign_key(uuid_null("owner_id"), "accounts")
        .column(boolean("dns_proved").default(false).take())
        .column(big_integer("generation_since").default(0).take())
        .column(text_null("contact"))
        .column(text_null("opted_out_by"))
        .column(big_integer_null("lapsed_at"))
        .column(big_integer_null("check_due_at"))
        .column(big_integer("created_at"))
        .column(big_integer_null("deleted_at"))
        .column(big_integer_null("visit_due_at"))
        .column(big_integer_null("visit_interval_us"))
        .column(text_null("network"))
        .column(big_integer("not_before"))
        .column(big_integer_null("wanted_at"))
        .column(big_integer_null("lease"))
        .column(big_integer_null("leased_until"))
        .column(text_null("proof_methods"))
        .column(uuid_null("vouched_owner"))
        .column(big_integer_null("vouched_since"))
        .column(big_integer_null("vouched_until"))
        .column(text_null("vouched_by"))
        .column(text_null("vouched_reason"))
        .column(big_integer("visit_turn").default(0).take())
        .column(text_null("visit_requester"))
        .unique_partial_index("ux_domains_name_live", ["name"], live)
        // Visits by due time. Requested and planned visits have an index each, so that finding the oldest of one kind
        // does not scan a million of the other. Address blocks and leases are included, so that thousands of due
        // visits to a busy block are skipped without reading their rows.
        .partial_index("ix_domains_visit_awaited", by_time, [awaited()])
        .partial_index("ix_domains_visit_planned", by_time, [planned])
        .index(["leased_until"])
        .index(["nominated_from"])
        .index(["check_due_at"])
        // Finds a deleted domain when it is registered again.
        .partial_index("ix_domains_name_deleted", ["name"], [deleted])
        .index(["owner_id"])
        // Each proof check looks up hosts by vouched owner, and few hosts have one.
        .index(["vouched_owner"])
        // Requested visits by turn and by requester; there are few of them among a million planned ones.
        .partial_index("ix_domains_visit_turn", by_turn, requested())
        .partial_index("ix_domains_visit_requester", by_requester, requested())
}

fn sources_table() -> NewTable {
    let live = is_null("ended_at");
    NewTable::new("sources")
        .column(big_pk_auto("id"))
        .foreign_key(big_integer("domain_id"), "domains")
        .column(text("kind"))
        .column(text("url"))
        .column(text_null("identifier"))
        .column(big_integer_null("catalog_id"))
        .column(big_integer_null("unlisted_since"))
        .column(integer("unlisted_looks").default(0).take())
        .column(uuid_null("agent_id"))
        .column(uuid_null("approve_as"))
        .column(text_null("validator_url"))
        .column(text_null("etag"))
        .column(text_null("last_modified"))
        .column(text_null("vary"))
        .column(big_integer_null("max_age"))
        .column(big_integer("next_due_at"))
        .column(big_integer("interval_us"))
        .column(boolean("full_wanted"))
        .column(big_integer("attempts").default(0).take())
        .column(big_integer_null("last_success_at"))
        .column(big_integer_null("last_full_at"))
        .column(text_null("failing_as"))
        .column(big_integer_null("failing_since"))
        .column(integer("failures"))
        .column(big_integer_null("cause_since"))
        .column(big_integer_null("cause_latest"))
        .column(integer("cause_looks"))
        .column(text("liveness"))
        .column(text_null("liveness_reason"))
        .column(big_integer("created_at"))
        .column(big_integer_null("ended_at"))
        .column(text_null("answered_by"))
        .column(text_null("limit_met"))
        .column(big_integer_null("planned_at"))
        .column(text_null("answered_from"))
        .column(text_null("entry_digest"))
        .unique_partial_index("ux_sources_live", ["domain_id", "kind", "url"], live)
        .index(["agent_id"])
}

fn is_null(column: &'static str) -> Expr {
    Expr::col(column).is_null()
}

fn is_not_null(column: &'static str) -> Expr {
    Expr::col(column).is_not_null()
}
