//! The registries that catalogs name, which are candidates for peers.

use sea_orm_migration::schema::*;

use crate::new_table::NewTable;

pub(crate) fn tables() -> Vec<NewTable> {
    vec![
        NewTable::new("peer_candidates")
            .columns([
                big_integer("catalog_id"),
                text("identifier"),
                text("display_name"),
                text("url"),
            ])
            .primary_key(["catalog_id", "identifier"])
            .references("catalog_id", "sources"),
    ]
}
