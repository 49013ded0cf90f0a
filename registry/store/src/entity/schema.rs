//! Rows: which versions can run on the schema.

/// The oldest version of the program that can run on the schema after a migration.
pub mod schema_compatibility {
    table_row! { "schema_compatibility":
        #[sea_orm(primary_key, auto_increment = false)]
        pub migration: String,
        pub min_version: String,
    }
}
