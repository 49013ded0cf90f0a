//! Decisions by policies that their askers can look up, and the agents that policies hide from some callers.

use sea_orm_migration::schema::*;

use crate::new_table::NewTable;

pub(crate) fn access_decision_migration_tables() -> Vec<NewTable> {
    vec![
        NewTable::new("access_decisions")
            .column(pk_uuid("id"))
            .column(text("asker"))
            .column(big_integer("at"))
            .column(text("record"))
            .index(["asker", "id"])
            .index(["at"]),
        NewTable::new("hidden_agents")
            .column(pk_uuid("agent_id"))
            .column(big_integer("since")),
    ]
}
