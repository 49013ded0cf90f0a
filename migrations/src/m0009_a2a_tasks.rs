//! The tasks that the registry does for clients of A2A.

use sea_orm_migration::schema::*;

use crate::new_table::NewTable;

pub(crate) fn tables() -> Vec<NewTable> {
    vec![
        NewTable::new("a2a_tasks")
            .columns([
                pk_uuid("id"),
                uuid_null("account_id"),
                text("context_id"),
                text("state"),
                text("history"),
                text_null("outcome"),
                text_null("more"),
                big_integer("created_at"),
                big_integer("updated_at"),
                big_integer("expires_at"),
                big_integer_null("sender"),
            ])
            .references("account_id", "accounts")
            .index(["account_id", "updated_at", "id"])
            .index(["account_id", "context_id", "updated_at"])
            .index(["expires_at"])
            .index(["account_id", "sender", "updated_at", "id"]),
    ]
}
