//! Registries that catalogs list: candidates for peers.

use sea_orm_migration::schema::*;

use crate::new_table::NewTable;

pub(crate) fn peer_migration_tables() -> Vec<NewTable> {
    vec![
        NewTable::new("peer_candidates")
            .foreign_key(big_integer("catalog_id"), "sources")
            .column(text("identifier"))
            .column(text("display_name"))
            .column(text("url"))
            .primary_key(["catalog_id", "identifier"]),
    ]
}
