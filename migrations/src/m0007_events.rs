//! The event log, which the index, the caches and the feed follow.

use sea_orm_migration::schema::*;

use crate::new_table::NewTable;

pub(crate) fn event_migration_tables() -> Vec<NewTable> {
    vec![
        NewTable::new("events")
            .column(big_pk_auto("seq"))
            .column(big_integer("at"))
            .column(text("kind"))
            .column(text("subject"))
            .column(uuid_null("agent_id"))
            .column(text("actor"))
            .column(text("data"))
            .index(["agent_id"]),
    ]
}
