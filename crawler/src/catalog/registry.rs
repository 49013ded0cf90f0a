//! Entries of registries, which a catalog names as further places to search.

use a2a_card::exact_json;
use serde_json::Value;
use url::Url;

use super::entry::{EntryContent, content, declared_identity, identifier};
use super::finding::PassedOver;
use super::identifier::names_other_domain;
use crate::fetch::bounded;

pub(super) const REGISTRIES: [&str; 2] =
    ["application/ai-registry+json", "application/ai-registry"];
const MAX_NAME: usize = 200;

/// A registry that a catalog names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedRegistry {
    /// The publisher's identifier; the retired prefix `urn:ai:` reads as `urn:air:`.
    pub identifier: String,
    /// `displayName`, or the last part of the identifier.
    pub display_name: String,
    /// The base URL of its API, absolute.
    pub url: Url,
}

impl ListedRegistry {
    /// Reads an entry of a document from `base`; refused if JSON parsers read it differently.
    pub(super) fn read(raw: &str, base: &Url) -> Result<Self, PassedOver> {
        let Some(Value::Object(entry)) = exact_json(raw.as_bytes()) else {
            return Err(PassedOver::Ambiguous);
        };
        let identifier = identifier(&entry).ok_or(PassedOver::Malformed)?;
        let url = match content(&entry, base)? {
            EntryContent::Url(url) if matches!(url.scheme(), "https" | "http") => url,
            _ => return Err(PassedOver::Malformed),
        };
        if names_other_domain(&identifier, declared_identity(&entry)) {
            return Err(PassedOver::OtherPublisher);
        }
        let named = entry.get("displayName").and_then(Value::as_str);
        let named = named.map(|name| bounded(name.trim(), MAX_NAME));
        let named = named.filter(|name| !name.is_empty());
        let last = identifier.rsplit(':').next().unwrap_or_default();
        Ok(Self {
            display_name: named.unwrap_or_else(|| bounded(last, MAX_NAME)),
            url,
            identifier,
        })
    }
}
