//! Proofs of domains with their challenges and checks, owner fingerprints and enrolled keys.

use sea_orm_migration::schema::*;

use crate::new_table::NewTable;

pub(crate) fn ownership_migration_tables() -> Vec<NewTable> {
    vec![
        NewTable::new("proofs")
            .column(big_pk_auto("id"))
            .foreign_key(big_integer("domain_id"), "domains")
            .column(text("method"))
            .column(text("actor"))
            .foreign_key(uuid_null("account_id"), "accounts")
            .column(text_null("place"))
            .column(text_null("nonce"))
            .column(text_null("reason"))
            .column(big_integer("proved_at"))
            .column(big_integer("held_at"))
            .column(big_integer_null("absent_since"))
            .column(integer("absent_looks"))
            .column(big_integer_null("ended_at"))
            .column(text_null("zone"))
            .column(uuid_null("vouched_account"))
            .index(["domain_id"]),
        NewTable::new("challenges")
            .column(big_pk_auto("id"))
            .foreign_key(big_integer("domain_id"), "domains")
            .foreign_key(uuid("account_id"), "accounts")
            .column(text("nonce"))
            .column(big_integer("expires_at"))
            .unique_index(["domain_id", "account_id"]),
        NewTable::new("proof_checks")
            .column(big_pk_auto("id"))
            .foreign_key(big_integer("domain_id"), "domains")
            .column(uuid_null("account_id"))
            .column(text("actor"))
            .column(big_integer("at"))
            .column(text("method"))
            .column(text("place"))
            .column(text("outcome"))
            .column(text("detail"))
            .column(text_null("wanted"))
            .column(text_null("found"))
            .column(boolean("aliased").default(false).take())
            .index(["domain_id", "id"]),
        NewTable::new("owner_marks")
            .foreign_key(big_integer("domain_id").primary_key().take(), "domains")
            .column(text("name_servers"))
            .column(text_null("tls_key"))
            .column(text("card_keys"))
            .column(big_integer("seen_at")),
        NewTable::new("enrolled_keys")
            .column(big_pk_auto("id"))
            .foreign_key(big_integer("domain_id"), "domains")
            .column(text("kid"))
            .column(text("thumbprint"))
            .column(text("jwk"))
            .column(text("actor"))
            .column(big_integer("created_at"))
            .unique_index(["domain_id", "kid"]),
    ]
}
