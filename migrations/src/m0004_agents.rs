//! Agents, the versions of their cards with the sources that served them, and the decisions on them.

use sea_orm_migration::{prelude::*, schema::*};

use crate::new_table::NewTable;

pub(crate) fn agent_migration_tables() -> Vec<NewTable> {
    vec![
        agents_table(),
        NewTable::new("holds")
            .foreign_key(uuid("agent_id"), "agents")
            .column(text("hold"))
            .column(text("reason"))
            .column(text("actor"))
            .column(big_integer("since"))
            .primary_key(["agent_id", "hold"]),
        NewTable::new("bodies")
            .column(text("digest").primary_key().take())
            .column(blob("bytes")),
        versions_table(),
        NewTable::new("version_sources")
            .foreign_key(uuid("version_id"), "versions")
            .foreign_key(big_integer("source_id"), "sources")
            .column(text("answered_by"))
            .primary_key(["version_id", "source_id"])
            .index(["source_id"])
            .index(["answered_by"]),
        NewTable::new("decisions")
            .column(big_pk_auto("id"))
            .foreign_key(uuid("agent_id"), "agents")
            .column(uuid("version_id"))
            .column(text("content_digest"))
            .column(text("signing"))
            .column(boolean("approved"))
            .column(text("rule"))
            .column(text("actor"))
            .column(text_null("reason"))
            .column(boolean("self_approved"))
            .column(big_integer("at"))
            .index(["agent_id", "id"]),
    ]
}

fn agents_table() -> NewTable {
    let live = Expr::col("retired_at").is_null();
    NewTable::new("agents")
        .column(pk_uuid("id"))
        .foreign_key(big_integer("domain_id"), "domains")
        .column(text("domain"))
        .column(text("slot"))
        .column(text_null("urn").unique_key().take())
        .column(text("lifecycle"))
        .column(text("visibility"))
        .column(text("labels"))
        .column(text("pins"))
        .column(uuid_null("claimed_by"))
        .column(uuid_null("owner_id"))
        .column(uuid_null("submitter"))
        .column(uuid_null("approved_version"))
        .column(uuid_null("newest_version"))
        .column(boolean("tls"))
        .column(text("liveness"))
        .column(text_null("liveness_reason"))
        .column(big_integer_null("last_seen_at"))
        .column(big_integer_null("last_changed_at"))
        .column(big_integer_null("gone_since"))
        .column(big_integer("changes_since"))
        .column(integer("changes"))
        .column(big_integer("created_at"))
        .column(big_integer("updated_at"))
        .column(big_integer_null("retired_at"))
        .column(text_null("deprecation"))
        .column(uuid_null("sponsor_id"))
        .column(text_null("audience"))
        .column(big_integer_null("certified_at"))
        .column(big_integer_null("recertify_at"))
        .column(text_null("collections"))
        .column(text_null("collection_audience"))
        .column(boolean("derived_queries").default(false).take())
        .unique_partial_index("ux_agents_slot_live", ["domain_id", "slot"], live)
        .index(["owner_id"])
        .index(["submitter"])
        .index(["certified_at"])
        .index(["recertify_at"])
}

fn versions_table() -> NewTable {
    NewTable::new("versions")
        .column(pk_uuid("id"))
        .foreign_key(uuid("agent_id"), "agents")
        .column(text("digest"))
        .column(text("content_digest"))
        .column(text("signing"))
        .column(text("signature"))
        .column(text("key_sets"))
        .column(text("thumbprints"))
        .column(text("wire_family"))
        .column(text("model"))
        .column(text("findings"))
        .column(boolean("has_error"))
        .column(integer("derivation"))
        .column(big_integer("observed_at"))
        .column(text_null("change_class"))
        .column(text("state"))
        .column(boolean("ever_approved"))
        .column(big_integer("repeats"))
        .column(text("standing").default("nomination").take())
        .column(text("verdicts").default("[]").take())
        .index(["agent_id", "id"])
        .index(["digest"])
        .index(["derivation"])
}
