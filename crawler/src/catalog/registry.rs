//! Registry entries: further registries to search, named by a catalog.

use a2a_card::parse_exact_json;
use serde_json::Value;
use url::Url;

use super::entry::{
    CatalogEntryContent, catalog_entry_content, catalog_entry_identifier, declared_identity,
};
use super::identifier::is_identity_mismatch;
use super::skipped_entries::EntrySkipReason;
use crate::foreign_text::sanitize_text;

pub(super) const REGISTRY_MEDIA_TYPES: [&str; 2] =
    ["application/ai-registry+json", "application/ai-registry"];
const MAX_NAME_CHARS: usize = 200;

/// A registry that a catalog names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedRegistry {
    /// The publisher's identifier; the retired prefix `urn:ai:` is read as `urn:air:`.
    pub identifier: String,
    /// `displayName`, or the last part of the identifier.
    pub display_name: String,
    /// The base URL of its API, absolute.
    pub url: Url,
}

impl ListedRegistry {
    /// Parses an entry of a document from `base`; an error if JSON parsers read it differently.
    pub(super) fn parse(raw: &str, base: &Url) -> Result<Self, EntrySkipReason> {
        let Some(Value::Object(entry)) = parse_exact_json(raw.as_bytes()) else {
            return Err(EntrySkipReason::Ambiguous);
        };
        let identifier = catalog_entry_identifier(&entry).ok_or(EntrySkipReason::Malformed)?;
        let url = match catalog_entry_content(&entry, base)? {
            CatalogEntryContent::Url(url) if matches!(url.scheme(), "https" | "http") => url,
            _ => return Err(EntrySkipReason::Malformed),
        };
        if is_identity_mismatch(&identifier, declared_identity(&entry)) {
            return Err(EntrySkipReason::PublisherMismatch);
        }
        let display_name = entry.get("displayName").and_then(Value::as_str);
        let display_name = display_name.map(|name| sanitize_text(name.trim(), MAX_NAME_CHARS));
        let display_name = display_name.filter(|name| !name.is_empty());
        let last = identifier.rsplit(':').next().unwrap_or_default();
        Ok(Self {
            display_name: display_name.unwrap_or_else(|| sanitize_text(last, MAX_NAME_CHARS)),
            url,
            identifier,
        })
    }
}
