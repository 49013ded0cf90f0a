//! Processes that evaluate policies: which set each of them has in force.

use sea_orm_migration::schema::*;

use crate::new_table::NewTable;

pub(crate) fn policy_replica_migration_tables() -> Vec<NewTable> {
    vec![
        NewTable::new("policy_replicas")
            .column(pk_uuid("process"))
            .column(big_integer("number"))
            .column(big_integer("evaluated"))
            .column(big_integer("agents"))
            .column(big_integer("seen_at")),
    ]
}
