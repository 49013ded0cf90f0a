//! The log of all events, which the index, caches and the feed follow.

use sea_orm_migration::schema::*;

use crate::new_table::NewTable;

pub(crate) fn tables() -> Vec<NewTable> {
    vec![
        NewTable::new("events")
            .columns([
                big_pk_auto("seq"),
                big_integer("at"),
                text("kind"),
                text("subject"),
                uuid_null("agent_id"),
                text("actor"),
                text("data"),
            ])
            .index(["agent_id"]),
    ]
}
