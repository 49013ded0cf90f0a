//! Vectors of agents, by the model that made them.

use sea_orm_migration::schema::*;

use crate::new_table::NewTable;

pub(crate) fn tables() -> Vec<NewTable> {
    vec![
        NewTable::new("models").columns([
            text("id").primary_key().take(),
            text("name"),
            integer("dimensions"),
            big_integer("created_at"),
            big_integer("applied_seq"),
            uuid_null("walked_to"),
            big_integer_null("completed_at"),
            double_null("cutoff"),
            big_integer("used_at"),
        ]),
        NewTable::new("agent_vectors")
            .columns([
                text("model_id"),
                uuid("agent_id"),
                text("text_digest"),
                binary("vectors"),
            ])
            .primary_key(["model_id", "agent_id"])
            .references("model_id", "models")
            .references("agent_id", "agents"),
    ]
}
