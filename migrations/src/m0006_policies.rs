//! Policy sets, waivers, what policies on a dry run would have changed, and the collections that policies ask about.

use sea_orm_migration::schema::*;

use crate::new_table::NewTable;

pub(crate) fn tables() -> Vec<NewTable> {
    vec![
        NewTable::new("policy_sets").columns([
            big_integer("number").primary_key().take(),
            text("policies"),
            text("author"),
            text("reason"),
            big_integer("created_at"),
            text_null("collections"),
        ]),
        NewTable::new("waivers")
            .columns([
                pk_uuid("id"),
                uuid("agent_id"),
                text("policy"),
                text("content_digest"),
                text("reason"),
                uuid("approver_id"),
                big_integer("created_at"),
                big_integer("expires_at"),
                big_integer_null("ended_at"),
                text_null("ended_by"),
                text_null("ended_reason"),
            ])
            .references("agent_id", "agents")
            .references("approver_id", "accounts")
            .index(["agent_id"])
            .index(["ended_at", "expires_at"]),
        NewTable::new("dry_run_changes")
            .columns([
                text("policy"),
                text("fingerprint"),
                integer("day"),
                text("action"),
                text("resource"),
                text("caller"),
                boolean("allows"),
                big_integer("count"),
            ])
            .primary_key([
                "policy",
                "fingerprint",
                "day",
                "action",
                "resource",
                "caller",
            ])
            .index(["day"]),
        NewTable::new("collections").columns([
            pk_uuid("id"),
            text("name").unique_key().take(),
            text("description"),
            text("filter"),
            text_null("audience"),
            text("owners"),
            big_integer("created_at"),
            big_integer("updated_at"),
        ]),
    ]
}
