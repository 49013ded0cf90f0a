//! Accounts with what belongs to each: tokens, sessions, identities, groups, saved searches and feeds; and settings of the
//! registry itself.

use sea_orm_migration::schema::*;

use crate::new_table::NewTable;

pub(crate) fn tables() -> Vec<NewTable> {
    vec![
        NewTable::new("accounts").columns([
            pk_uuid("id"),
            text_uniq("name"),
            text("role"),
            big_integer("created_at"),
            text_null("roles"),
            big_integer_null("disabled_at"),
            big_integer_null("news_seen_at"),
            big_integer_null("claims_valid_at"),
            big_integer_null("access_ended_at"),
        ]),
        NewTable::new("tokens")
            .columns([
                pk_uuid("id"),
                uuid("account_id"),
                text("name"),
                text("prefix"),
                text_uniq("hash"),
                boolean("bootstrap"),
                big_integer("created_at"),
                big_integer_null("expires_at"),
                text_null("scopes"),
                big_integer_null("last_used_at"),
            ])
            .references("account_id", "accounts")
            .index(["account_id"]),
        NewTable::new("settings").columns([text("key").primary_key().take(), text("value")]),
        NewTable::new("account_groups")
            .columns([
                pk_uuid("id"),
                text("origin"),
                text("name"),
                big_integer("created_at"),
            ])
            .unique_index(["origin", "name"]),
        NewTable::new("group_members")
            .columns([uuid("group_id"), uuid("account_id")])
            .primary_key(["group_id", "account_id"])
            .references("group_id", "account_groups")
            .references("account_id", "accounts")
            .index(["account_id"]),
        // The token is not a reference, so that it can be deleted before its sessions.
        NewTable::new("sessions")
            .columns([
                pk_uuid("id"),
                uuid("account_id"),
                text("hash"),
                uuid_null("token_id"),
                text_null("issuer"),
                text_null("scopes"),
                text("roles"),
                text("browser"),
                big_integer("created_at"),
                big_integer("last_seen_at"),
                big_integer("expires_at"),
            ])
            .references("account_id", "accounts")
            .unique_index(["hash"])
            .index(["account_id"]),
        NewTable::new("identities")
            .columns([
                text("issuer"),
                text("subject"),
                uuid("account_id"),
                text("roles"),
                big_integer("claims_at"),
                big_integer("created_at"),
            ])
            .primary_key(["issuer", "subject"])
            .references("account_id", "accounts")
            .index(["account_id"]),
        NewTable::new("used_sign_in_attempts")
            .columns([
                text("state").primary_key().take(),
                big_integer("expires_at"),
            ])
            .index(["expires_at"]),
        NewTable::new("saved_searches")
            .columns([
                pk_uuid("id"),
                uuid("account_id"),
                text("name"),
                text("query"),
                big_integer("created_at"),
            ])
            .references("account_id", "accounts")
            .unique_index(["account_id", "name"]),
        NewTable::new("feeds")
            .columns([
                pk_uuid("account_id"),
                text("hash").unique_key().take(),
                big_integer("created_at"),
                text_null("scopes"),
            ])
            .references("account_id", "accounts"),
    ]
}
