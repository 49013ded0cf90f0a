//! Entries of catalogs that are no cards.

use sea_orm_migration::schema::*;

use crate::new_table::NewTable;

pub(crate) fn tables() -> Vec<NewTable> {
    vec![
        NewTable::new("entries")
            .columns([
                pk_uuid("id"),
                big_integer("domain_id"),
                big_integer("catalog_id"),
                text("identifier").unique_key().take(),
                text_null("listed_as"),
                text("media_type"),
                boolean("registry"),
                text("display_name"),
                text_null("description"),
                text_null("version"),
                big_integer_null("updated_at"),
                text_null("url"),
                text("raw"),
                text("words"),
                text("authority"),
                text_null("verification"),
                big_integer_null("verified_until"),
                boolean("denied"),
                big_integer_null("unlisted_since"),
                integer("unlisted_looks"),
                big_integer("created_at"),
                big_integer("changed_at"),
            ])
            .references("domain_id", "domains")
            .references("catalog_id", "sources")
            .index(["domain_id"])
            .index(["catalog_id"]),
    ]
}
