//! Accounts with their tokens, sessions, identities, groups, saved searches and feeds; and the registry's settings.

use sea_orm_migration::schema::*;

use crate::new_table::NewTable;

pub(crate) fn people_migration_tables() -> Vec<NewTable> {
    vec![
        NewTable::new("accounts")
            .column(pk_uuid("id"))
            .column(text_uniq("name"))
            .column(text("role"))
            .column(big_integer("created_at"))
            .column(text_null("roles"))
            .column(big_integer_null("disabled_at"))
            .column(big_integer_null("news_seen_at"))
            .column(big_integer_null("claims_valid_at"))
            .column(big_integer_null("access_ended_at")),
        NewTable::new("tokens")
            .column(pk_uuid("id"))
            .foreign_key(uuid("account_id"), "accounts")
            .column(text("name"))
            .column(text("prefix"))
            .column(text_uniq("hash"))
            .column(boolean("bootstrap"))
            .column(big_integer("created_at"))
            .column(big_integer_null("expires_at"))
            .column(text_null("scopes"))
            .column(big_integer_null("last_used_at"))
            .index(["account_id"]),
        NewTable::new("settings")
            .column(text("key").primary_key().take())
            .column(text("value")),
        NewTable::new("account_groups")
            .column(pk_uuid("id"))
            .column(text("origin"))
            .column(text("name"))
            .column(big_integer("created_at"))
            .unique_index(["origin", "name"]),
        NewTable::new("group_members")
            .foreign_key(uuid("group_id"), "account_groups")
            .foreign_key(uuid("account_id"), "accounts")
            .primary_key(["group_id", "account_id"])
            .index(["account_id"]),
        // Not a foreign key, so that a token can be deleted before its sessions.
        NewTable::new("sessions")
            .column(pk_uuid("id"))
            .foreign_key(uuid("account_id"), "accounts")
            .column(text("hash"))
            .column(uuid_null("token_id"))
            .column(text_null("issuer"))
            .column(text_null("scopes"))
            .column(text("roles"))
            .column(text("browser"))
            .column(big_integer("created_at"))
            .column(big_integer("last_seen_at"))
            .column(big_integer("expires_at"))
            .unique_index(["hash"])
            .index(["account_id"]),
        NewTable::new("identities")
            .column(text("issuer"))
            .column(text("subject"))
            .foreign_key(uuid("account_id"), "accounts")
            .column(text("roles"))
            .column(big_integer("claims_at"))
            .column(big_integer("created_at"))
            .primary_key(["issuer", "subject"])
            .index(["account_id"]),
        NewTable::new("used_sign_in_attempts")
            .column(text("state").primary_key().take())
            .column(big_integer("expires_at"))
            .index(["expires_at"]),
        NewTable::new("saved_searches")
            .column(pk_uuid("id"))
            .foreign_key(uuid("account_id"), "accounts")
            .column(text("name"))
            .column(text("query"))
            .column(big_integer("created_at"))
            .unique_index(["account_id", "name"]),
        NewTable::new("feeds")
            .foreign_key(pk_uuid("account_id"), "accounts")
            .column(text("hash").unique_key().take())
            .column(big_integer("created_at"))
            .column(text_null("scopes")),
    ]
}
