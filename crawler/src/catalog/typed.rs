//! Entries of other types than cards and catalogs: MCP servers, skills, registries, and whatever else is listed.
//!
//! No type is refused because it is unknown. An entry that JSON parsers read differently is refused: others would see
//! another identifier in the same bytes.

use std::cmp::Ordering;

use a2a_card::exact_json;
use serde_json::{Map, Value};
use time::OffsetDateTime;
use url::Url;

use super::authority::{Authority, authority};
use super::entry::{
    EntryContent, content, declared_identity, essence, identifier, kind_of, updated_at,
};
use super::finding::PassedOver;
use super::manifest::ManifestFault;
use crate::fetch::bounded;

/// Most bytes of one entry.
pub const MAX_ENTRY_BYTES: usize = 32 * 1024;
/// Most bytes of an entry's media type.
pub const MAX_MEDIA_TYPE: usize = 200;
/// Most characters that are kept of a name and a version.
pub const MAX_NAME: usize = 200;
/// Most characters that are kept of a description.
pub const MAX_DESCRIPTION: usize = 2_000;

/// The type of MCP servers' cards.
pub const MCP_SERVER: &str = "application/mcp-server-card+json";
/// The former type of MCP servers' cards.
const FORMER_MCP_SERVER: &str = "application/mcp-server+json";
/// The types of registries.
const REGISTRIES: [&str; 2] = ["application/ai-registry+json", "application/ai-registry"];

/// Whether a manifest endorses an entry.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Endorsement {
    /// It has no manifest that its publisher has signed.
    #[default]
    None,
    /// A manifest that this domain has signed is verified.
    Verified {
        /// The signer's domain.
        domain: String,
        /// When the signature expires, if it says so.
        expires_at: Option<OffsetDateTime>,
    },
    /// Its publisher's manifest is not verified.
    Failed(ManifestFault),
    /// Its publisher's manifest could not be checked, for this reason: a failed request, or no request left.
    Unchecked(String),
}

/// An entry that is neither a card nor a catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedEntry {
    /// The publisher's identifier; the retired prefix `urn:ai:` reads as `urn:air:`.
    pub identifier: String,
    /// The identifier as listed, where it has the retired prefix.
    pub listed_as: Option<String>,
    /// The media type, its essence in lower case; the former type of MCP servers reads as [`MCP_SERVER`].
    pub media_type: String,
    /// `displayName`, or the last part of the identifier.
    pub display_name: String,
    /// `description`.
    pub description: Option<String>,
    /// `version`.
    pub version: Option<String>,
    /// `updatedAt`.
    pub updated_at: Option<OffsetDateTime>,
    /// `url`, absolute; `None` for an entry with `data`.
    pub url: Option<Url>,
    /// The entry as it stands in the document.
    pub raw: String,
    /// Host of the document, with its port if that is not the scheme's own; empty if it did not come over https.
    pub served_by: String,
    /// What `trustManifest` declares as the identity.
    pub identity: Option<String>,
    /// Whether a manifest endorses it.
    pub endorsement: Endorsement,
}

impl TypedEntry {
    /// Reads an entry of a document from `base`.
    pub(super) fn read(raw: &str, base: &Url) -> Result<Self, PassedOver> {
        if raw.len() > MAX_ENTRY_BYTES {
            return Err(PassedOver::TooLarge);
        }
        let Some(Value::Object(entry)) = exact_json(raw.as_bytes()) else {
            return Err(PassedOver::Ambiguous);
        };
        let listed = entry.get("identifier").and_then(Value::as_str);
        let identifier = identifier(&entry).ok_or(PassedOver::Malformed)?;
        let url = match content(&entry, base)? {
            EntryContent::Url(url) if !matches!(url.scheme(), "https" | "http") => {
                return Err(PassedOver::Malformed);
            }
            EntryContent::Url(url) => Some(url),
            EntryContent::Inline => None,
        };
        let media_type = media_type(&entry).ok_or(PassedOver::Malformed)?;
        let served_by = served_by(base);
        let identity = declared_identity(&entry).map(str::to_owned);
        if authority(&identifier, &served_by, identity.as_deref(), None).is_err() {
            return Err(PassedOver::OtherPublisher);
        }
        let text = |name: &str, most: usize| {
            let text = entry.get(name).and_then(Value::as_str);
            let text = text.map(|text| bounded(text.trim(), most));
            text.filter(|text| !text.is_empty())
        };
        let last = identifier.rsplit(':').next().unwrap_or_default();
        let named = text("displayName", MAX_NAME);
        Ok(Self {
            listed_as: listed
                .filter(|listed| *listed != identifier)
                .map(str::to_owned),
            media_type,
            display_name: named.unwrap_or_else(|| bounded(last, MAX_NAME)),
            description: text("description", MAX_DESCRIPTION),
            version: text("version", MAX_NAME),
            updated_at: updated_at(&entry),
            url,
            raw: raw.to_owned(),
            served_by,
            identity,
            endorsement: Endorsement::None,
            identifier,
        })
    }

    /// Whether it is a registry, a place to search and not content.
    pub fn is_registry(&self) -> bool {
        REGISTRIES.contains(&essence(&self.media_type).as_str())
    }

    /// How far its publisher stands behind it.
    pub fn authority(&self) -> Authority {
        let endorsed_by = match &self.endorsement {
            Endorsement::Verified { domain, .. } => Some(domain.as_str()),
            _ => None,
        };
        let identity = self.identity.as_deref();
        authority(&self.identifier, &self.served_by, identity, endorsed_by)
            .unwrap_or(Authority::Unverified)
    }

    /// Whether it is newer than another entry of the same identifier, by its date, else by its version.
    pub(super) fn is_newer_than(&self, other: &Self) -> bool {
        match (self.updated_at, other.updated_at) {
            (Some(own), Some(theirs)) if own != theirs => own > theirs,
            _ => by_version(self.version.as_deref(), other.version.as_deref()).is_gt(),
        }
    }
}

/// The media type of an entry, its essence in lower case and by its name of today.
fn media_type(entry: &Map<String, Value>) -> Option<String> {
    let given = kind_of(entry)?.trim();
    let (name, parameters) = match given.split_once(';') {
        Some((name, parameters)) => (essence(name), parameters.trim()),
        None => (essence(given), ""),
    };
    let name = match name.as_str() {
        FORMER_MCP_SERVER => MCP_SERVER,
        name => name,
    };
    let whole = match parameters {
        "" => name.to_owned(),
        parameters => format!("{name}; {parameters}"),
    };
    let usable = !name.is_empty() && whole.len() <= MAX_MEDIA_TYPE;
    (usable && !whole.contains(char::is_control)).then_some(whole)
}

/// Host of a document, as publishers are compared with it.
fn served_by(base: &Url) -> String {
    let host = base.host_str().unwrap_or_default();
    match (base.scheme(), base.port()) {
        ("https", None) => host.to_owned(),
        ("https", Some(port)) => format!("{host}:{port}"),
        _ => String::new(),
    }
}

/// Compares versions number by number; what is no number is compared as text, and any version is newer than none.
fn by_version(one: Option<&str>, other: Option<&str>) -> Ordering {
    let (Some(one), Some(other)) = (one, other) else {
        return one.is_some().cmp(&other.is_some());
    };
    let mut parts = (one.split('.'), other.split('.'));
    loop {
        let order = match (parts.0.next(), parts.1.next()) {
            (None, None) => return Ordering::Equal,
            (one, other) => {
                let number = |text: Option<&str>| text.unwrap_or("0").parse::<u64>();
                match (number(one), number(other)) {
                    (Ok(one), Ok(other)) => one.cmp(&other),
                    _ => one.cmp(&other),
                }
            }
        };
        if order.is_ne() {
            return order;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_number_by_number() {
        for (older, newer) in [
            (None, Some("0")),
            (Some("1.9"), Some("1.10")),
            (Some("1.2"), Some("1.2.1")),
            (Some("1.2-beta"), Some("1.3")),
            (Some("9"), Some("10.0")),
        ] {
            assert_eq!(
                by_version(older, newer),
                Ordering::Less,
                "{older:?} {newer:?}"
            );
            assert_eq!(by_version(newer, older), Ordering::Greater);
        }
        assert_eq!(by_version(Some("1.0"), Some("1")), Ordering::Equal);
    }
}
