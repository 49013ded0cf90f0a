//! Agent vectors by embedding model.

use sea_orm_migration::schema::*;

use crate::new_table::NewTable;

pub(crate) fn vector_migration_tables() -> Vec<NewTable> {
    vec![
        NewTable::new("models")
            .column(text("id").primary_key().take())
            .column(text("name"))
            .column(integer("dimensions"))
            .column(big_integer("created_at"))
            .column(big_integer("applied_seq"))
            .column(uuid_null("walked_to"))
            .column(big_integer_null("completed_at"))
            .column(double_null("cutoff"))
            .column(big_integer("used_at")),
        NewTable::new("agent_vectors")
            .foreign_key(text("model_id"), "models")
            .foreign_key(uuid("agent_id"), "agents")
            .column(text("text_digest"))
            .column(binary("vectors"))
            .primary_key(["model_id", "agent_id"]),
    ]
}
