//! Tasks that the registry runs for A2A clients.

use sea_orm_migration::schema::*;

use crate::new_table::NewTable;

pub(crate) fn a2a_task_migration_tables() -> Vec<NewTable> {
    vec![
        NewTable::new("a2a_tasks")
            .column(pk_uuid("id"))
            .foreign_key(uuid_null("account_id"), "accounts")
            .column(text("context_id"))
            .column(text("state"))
            .column(text("history"))
            .column(text_null("outcome"))
            .column(text_null("more"))
            .column(big_integer("created_at"))
            .column(big_integer("updated_at"))
            .column(big_integer("expires_at"))
            .column(big_integer_null("sender"))
            .index(["account_id", "updated_at", "id"])
            .index(["account_id", "context_id", "updated_at"])
            .index(["expires_at"])
            .index(["account_id", "sender", "updated_at", "id"]),
    ]
}
