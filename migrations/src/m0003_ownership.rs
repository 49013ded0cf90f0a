//! Proofs of domains, the challenges and checks for them, and what owners are known by.

use sea_orm_migration::schema::*;

use crate::new_table::NewTable;

pub(crate) fn tables() -> Vec<NewTable> {
    vec![
        NewTable::new("proofs")
            .columns([
                big_pk_auto("id"),
                big_integer("domain_id"),
                text("method"),
                text("actor"),
                uuid_null("account_id"),
                text_null("place"),
                text_null("nonce"),
                text_null("reason"),
                big_integer("proved_at"),
                big_integer("held_at"),
                big_integer_null("absent_since"),
                integer("absent_looks"),
                big_integer_null("ended_at"),
                text_null("zone"),
                uuid_null("vouched_account"),
            ])
            .references("domain_id", "domains")
            .references("account_id", "accounts")
            .index(["domain_id"]),
        NewTable::new("challenges")
            .columns([
                big_pk_auto("id"),
                big_integer("domain_id"),
                uuid("account_id"),
                text("nonce"),
                big_integer("expires_at"),
            ])
            .references("domain_id", "domains")
            .references("account_id", "accounts")
            .unique_index(["domain_id", "account_id"]),
        NewTable::new("proof_checks")
            .columns([
                big_pk_auto("id"),
                big_integer("domain_id"),
                uuid_null("account_id"),
                text("actor"),
                big_integer("at"),
                text("method"),
                text("place"),
                text("outcome"),
                text("detail"),
                text_null("wanted"),
                text_null("found"),
                boolean("aliased").default(false).take(),
            ])
            .references("domain_id", "domains")
            .index(["domain_id", "id"]),
        NewTable::new("owner_marks")
            .columns([
                big_integer("domain_id").primary_key().take(),
                text("name_servers"),
                text_null("tls_key"),
                text("card_keys"),
                big_integer("seen_at"),
            ])
            .references("domain_id", "domains"),
        NewTable::new("enrolled_keys")
            .columns([
                big_pk_auto("id"),
                big_integer("domain_id"),
                text("kid"),
                text("thumbprint"),
                text("jwk"),
                text("actor"),
                big_integer("created_at"),
            ])
            .references("domain_id", "domains")
            .unique_index(["domain_id", "kid"]),
    ]
}
