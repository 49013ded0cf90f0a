//! Hooks with what their receivers know and their deliveries, and the agents that accounts watch.

use sea_orm_migration::schema::*;

use crate::new_table::NewTable;

pub(crate) fn hook_migration_tables() -> Vec<NewTable> {
    vec![
        NewTable::new("hooks")
            .column(uuid("id").primary_key().take())
            .foreign_key(uuid("account_id"), "accounts")
            .column(text("name"))
            .column(text("format"))
            .column(text("state"))
            .column(text("filter"))
            .column(text("sealed"))
            .column(big_integer_null("compare_requested_at"))
            .column(big_integer("created_at"))
            .column(big_integer_null("due_at"))
            .column(big_integer("not_before"))
            .column(integer("failures"))
            .column(big_integer_null("failing_since"))
            .column(text_null("last_error"))
            .column(big_integer_null("last_success_at"))
            .column(big_integer_null("lease"))
            .column(big_integer_null("leased_until"))
            .unique_index(["account_id", "name"])
            .index(["due_at"]),
        NewTable::new("hook_agents")
            .foreign_key(uuid("hook_id"), "hooks")
            .column(uuid("agent_id"))
            .column(text("card_digest"))
            .column(text("facts"))
            .primary_key(["hook_id", "agent_id"])
            .index(["agent_id"]),
        NewTable::new("hook_deliveries")
            .column(big_pk_auto("id"))
            .foreign_key(uuid("hook_id"), "hooks")
            .column(uuid("message_id"))
            .column(text("kind"))
            .column(uuid_null("agent_id"))
            .column(text("subject"))
            .column(big_integer("at"))
            .column(text("state"))
            .column(text_null("slot"))
            .column(big_integer("seq"))
            .column(integer("attempts"))
            .column(big_integer_null("first_attempt_at"))
            .column(big_integer_null("due_at"))
            .column(integer_null("status"))
            .column(text_null("error"))
            .column(big_integer_null("finished_at"))
            .unique_index(["slot"])
            .index(["hook_id", "state", "id"])
            .index(["hook_id", "agent_id"])
            .index(["finished_at"]),
        NewTable::new("agent_watches")
            .foreign_key(uuid("account_id"), "accounts")
            .column(uuid("agent_id"))
            .column(big_integer("created_at"))
            .primary_key(["account_id", "agent_id"]),
    ]
}
