//! Entries of catalogs that are no agents, as callers see them.

use a2a_registry_domain::timestamp::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::Hint;

/// An entry of a catalog that is no agent: an MCP server, a skill, anything. Nobody has reviewed it, and being listed here
/// is no permission to use it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EntryView {
    /// The publisher's identifier, `urn:air:…`.
    pub identifier: String,
    /// The identifier as the catalog has it, where that has the retired prefix `urn:ai:`; else null.
    pub listed_as: Option<String>,
    /// Media type, such as `application/mcp-server-card+json`.
    #[serde(rename = "type")]
    pub media_type: String,
    /// Name for people.
    pub display_name: String,
    /// Description.
    pub description: Option<String>,
    /// Version.
    pub version: Option<String>,
    /// When its publisher says that it last changed.
    pub updated_at: Option<Timestamp>,
    /// Where it is; null if the entry contains it as `data`.
    pub url: Option<String>,
    /// Always false: entries are not reviewed.
    pub reviewed: bool,
    /// The domain whose catalog lists it. Its owner has proved it.
    pub domain: String,
    /// URL of that catalog.
    pub catalog: String,
    /// `domain-verified`: the catalog is its publisher's own. `manifest-verified`: a manifest that its publisher has signed
    /// endorses it.
    pub authority: String,
    /// The result of verifying its publisher's manifest; null if there is none.
    pub verification: Option<EntryVerification>,
    /// When the registry has first seen it.
    pub created_at: Timestamp,
    /// When anything of it last changed.
    pub changed_at: Timestamp,
    /// The entry as the catalog lists it.
    #[schema(value_type = Object)]
    pub entry: Value,
}

/// The result of verifying a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EntryVerification {
    /// `verified`, `failed` or `unchecked`.
    pub result: String,
    /// The profile: `did-web-v1`.
    pub profile: String,
    /// The signer, if it is verified.
    pub signer: Option<String>,
    /// What is wrong, if anything.
    pub fault: Option<String>,
    /// When it was verified.
    pub at: Timestamp,
}

/// A page of entries, those that were seen first first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EntryList {
    /// Entries of this page.
    pub entries: Vec<EntryView>,
    /// Says so where the registry keeps no entries.
    pub hints: Vec<Hint>,
    /// `page_token` of the next page; null on the last page.
    pub next_page_token: Option<String>,
}
