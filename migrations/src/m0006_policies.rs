//! Policy sets, waivers, dry-run counts, and the collections that policies refer to.

use sea_orm_migration::schema::*;

use crate::new_table::NewTable;

pub(crate) fn policy_migration_tables() -> Vec<NewTable> {
    vec![
        NewTable::new("policy_sets")
            .column(big_integer("number").primary_key().take())
            .column(text("policies"))
            .column(text("author"))
            .column(text("reason"))
            .column(big_integer("created_at"))
            .column(text_null("collections")),
        NewTable::new("waivers")
            .column(pk_uuid("id"))
            .foreign_key(uuid("agent_id"), "agents")
            .column(text("policy"))
            .column(text("content_digest"))
            .column(text("reason"))
            .foreign_key(uuid("approver_id"), "accounts")
            .column(big_integer("created_at"))
            .column(big_integer("expires_at"))
            .column(big_integer_null("ended_at"))
            .column(text_null("ended_by"))
            .column(text_null("ended_reason"))
            .index(["agent_id"])
            .index(["ended_at", "expires_at"]),
        NewTable::new("dry_run_changes")
            .column(text("policy"))
            .column(text("fingerprint"))
            .column(integer("day"))
            .column(text("action"))
            .column(text("resource"))
            .column(text("caller"))
            .column(boolean("allows"))
            .column(big_integer("count"))
            .primary_key([
                "policy",
                "fingerprint",
                "day",
                "action",
                "resource",
                "caller",
            ])
            .index(["day"]),
        NewTable::new("collections")
            .column(pk_uuid("id"))
            .column(text("name").unique_key().take())
            .column(text("description"))
            .column(text("filter"))
            .column(text_null("audience"))
            .column(text("owners"))
            .column(big_integer("created_at"))
            .column(big_integer("updated_at")),
    ]
}
