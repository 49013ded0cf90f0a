//! Credentials of sources for the crawler, sealed with a key that is not in the database.

use sea_orm_migration::schema::*;

use crate::new_table::NewTable;

pub(crate) fn source_credential_migration_tables() -> Vec<NewTable> {
    vec![
        NewTable::new("source_credentials")
            .column(big_pk_auto("id"))
            .foreign_key(big_integer("source_id"), "sources")
            .foreign_key(big_integer("domain_id"), "domains")
            .column(text("kind"))
            .column(text("origin"))
            .column(text("sealed"))
            .column(uuid_null("owner_id"))
            .column(big_integer("generation"))
            .column(text("set_by"))
            .column(big_integer("set_at"))
            .unique_index(["source_id"])
            .index(["domain_id"]),
    ]
}
