//! Agents, the versions of their cards with the sources that gave them, and the decisions on them.

use sea_orm_migration::{prelude::*, schema::*};

use crate::new_table::NewTable;

pub(crate) fn tables() -> Vec<NewTable> {
    vec![
        agents(),
        NewTable::new("holds")
            .columns([
                uuid("agent_id"),
                text("hold"),
                text("reason"),
                text("actor"),
                big_integer("since"),
            ])
            .primary_key(["agent_id", "hold"])
            .references("agent_id", "agents"),
        NewTable::new("bodies").columns([text("digest").primary_key().take(), blob("bytes")]),
        versions(),
        NewTable::new("version_sources")
            .columns([
                uuid("version_id"),
                big_integer("source_id"),
                text("answered_by"),
            ])
            .primary_key(["version_id", "source_id"])
            .references("version_id", "versions")
            .references("source_id", "sources")
            .index(["source_id"])
            .index(["answered_by"]),
        NewTable::new("decisions")
            .columns([
                big_pk_auto("id"),
                uuid("agent_id"),
                uuid("version_id"),
                text("content_digest"),
                text("signing"),
                boolean("approved"),
                text("rule"),
                text("actor"),
                text_null("reason"),
                boolean("self_approved"),
                big_integer("at"),
            ])
            .references("agent_id", "agents")
            .index(["agent_id", "id"]),
    ]
}

fn agents() -> NewTable {
    let live = Expr::col("retired_at").is_null();
    NewTable::new("agents")
        .columns([
            pk_uuid("id"),
            big_integer("domain_id"),
            text("domain"),
            text("slot"),
            text_null("urn").unique_key().take(),
            text("lifecycle"),
            text("visibility"),
            text("labels"),
            text("pins"),
            uuid_null("claimed_by"),
            uuid_null("owner_id"),
            uuid_null("submitter"),
            uuid_null("approved_version"),
            uuid_null("newest_version"),
            boolean("tls"),
            text("liveness"),
            text_null("liveness_reason"),
            big_integer_null("last_seen_at"),
            big_integer_null("last_changed_at"),
            big_integer_null("gone_since"),
            big_integer("changes_since"),
            integer("changes"),
            big_integer("created_at"),
            big_integer("updated_at"),
            big_integer_null("retired_at"),
            text_null("deprecation"),
            uuid_null("sponsor_id"),
            text_null("audience"),
            big_integer_null("certified_at"),
            big_integer_null("recertify_at"),
            text_null("collections"),
            text_null("collection_audience"),
            boolean("derived_queries").default(false).take(),
        ])
        .references("domain_id", "domains")
        .unique_partial_index("ux_agents_slot_live", ["domain_id", "slot"], live)
        .index(["owner_id"])
        .index(["submitter"])
        .index(["certified_at"])
        .index(["recertify_at"])
}

fn versions() -> NewTable {
    NewTable::new("versions")
        .columns([
            pk_uuid("id"),
            uuid("agent_id"),
            text("digest"),
            text("content_digest"),
            text("signing"),
            text("signature"),
            text("key_sets"),
            text("thumbprints"),
            text("wire_family"),
            text("model"),
            text("findings"),
            boolean("has_error"),
            integer("derivation"),
            big_integer("observed_at"),
            text_null("change_class"),
            text("state"),
            boolean("ever_approved"),
            big_integer("repeats"),
            text("standing").default("nomination").take(),
            text("verdicts").default("[]").take(),
        ])
        .references("agent_id", "agents")
        .index(["agent_id", "id"])
        .index(["digest"])
        .index(["derivation"])
}
