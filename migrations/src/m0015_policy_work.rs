//! What processes tell one another of policies: which set each of them has in force, and previews of sets.

use sea_orm_migration::schema::*;

use crate::new_table::NewTable;

pub(crate) fn policy_work_migration_tables() -> Vec<NewTable> {
    vec![
        NewTable::new("policy_replicas")
            .column(pk_uuid("process"))
            .column(big_integer("number"))
            .column(big_integer("evaluated"))
            .column(big_integer("agents"))
            .column(big_integer("seen_at")),
        NewTable::new("policy_previews")
            .column(pk_uuid("id"))
            .column(text("subject"))
            .column(text("digest"))
            .column(text("state"))
            .column(big_integer("evaluated"))
            .column(big_integer("agents"))
            .column(text_null("result"))
            .column(text_null("problem"))
            .column(big_integer("made_at"))
            .column(big_integer("seen_at"))
            .index(["made_at"]),
    ]
}
