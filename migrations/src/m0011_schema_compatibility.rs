//! The oldest version of the program that can run on the schema after each migration.

use sea_orm_migration::schema::*;

use crate::new_table::NewTable;

pub(crate) fn compatibility_migration_tables() -> Vec<NewTable> {
    vec![
        NewTable::new("schema_compatibility")
            .column(text("migration").primary_key().take())
            .column(text("min_version")),
    ]
}
