//! One entry of a catalog, member by member.

use serde_json::{Map, Value};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use url::Url;

use super::MAX_IDENTIFIER_BYTES;
use super::finding::PassedOver;
use crate::guard::{MAX_URL_BYTES, normalised};

/// An entry that names an A2A agent card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogEntry {
    /// The publisher's identifier of the agent; compared exactly. The retired prefix `urn:ai:` reads as `urn:air:`.
    pub identifier: String,
    /// URL of the card, in normal form and without a fragment.
    pub url: Url,
    /// When the publisher says that it last changed; of two entries with one identifier the later one counts.
    pub updated_at: Option<OffsetDateTime>,
}

/// The kind of an entry.
pub(super) enum Kind<'a> {
    Card(CatalogEntry),
    /// A catalog at another URL.
    Elsewhere(Url),
    /// A catalog inside the entry.
    Inline(&'a Value),
}

const CARD: &str = "application/a2a-agent-card+json";
const CATALOG: &str = "application/ai-catalog+json";

/// Reads an entry. Its URL is relative to `base`.
pub(super) fn read_entry<'a>(value: &'a Value, base: &Url) -> Result<Kind<'a>, PassedOver> {
    let entry = value.as_object().ok_or(PassedOver::Malformed)?;
    let kind = entry.get("type").and_then(Value::as_str);
    match media_type(kind.ok_or(PassedOver::Malformed)?).as_str() {
        CARD => {
            let identifier = identifier(entry).ok_or(PassedOver::Malformed)?;
            if names_other_publisher(entry, &identifier) {
                return Err(PassedOver::OtherPublisher);
            }
            match content(entry, base)? {
                EntryContent::Url(url) => Ok(Kind::Card(CatalogEntry {
                    identifier,
                    url,
                    updated_at: updated_at(entry),
                })),
                EntryContent::Inline(_) => Err(PassedOver::InlineCard),
            }
        }
        CATALOG => Ok(match content(entry, base)? {
            EntryContent::Url(url) => Kind::Elsewhere(url),
            EntryContent::Inline(document) => Kind::Inline(document),
        }),
        _ => Err(PassedOver::NotACard),
    }
}

/// Name of an entry in a finding: its identifier, its URL, or its number.
pub(super) fn name_of(value: &Value, number: usize) -> String {
    let text = |name| value.get(name).and_then(Value::as_str);
    let named = text("identifier").or_else(|| text("url"));
    let named = named.filter(|text| !text.trim().is_empty());
    named.map_or_else(|| format!("entry {number}"), str::to_owned)
}

enum EntryContent<'a> {
    Url(Url),
    Inline(&'a Value),
}

/// The content of an entry: exactly one of `url` and `data`; a null counts as missing.
fn content<'a>(entry: &'a Map<String, Value>, base: &Url) -> Result<EntryContent<'a>, PassedOver> {
    let given = |name| entry.get(name).filter(|value| !value.is_null());
    match (given("url"), given("data")) {
        (Some(Value::String(text)), None) if text.len() <= MAX_URL_BYTES => {
            let mut url = base.join(text.trim()).map_err(|_| PassedOver::Malformed)?;
            url.set_fragment(None);
            Ok(EntryContent::Url(normalised(url)))
        }
        (None, Some(data)) => Ok(EntryContent::Inline(data)),
        _ => Err(PassedOver::Malformed),
    }
}

/// The essence of a media type: without parameters, in lower case.
fn media_type(text: &str) -> String {
    let essence = text.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

fn identifier(entry: &Map<String, Value>) -> Option<String> {
    let text = entry.get("identifier")?.as_str()?;
    let usable = !text.trim().is_empty()
        && text.len() <= MAX_IDENTIFIER_BYTES
        && !text.contains(char::is_control);
    let current = |text: &str| match text.strip_prefix("urn:ai:") {
        Some(rest) => format!("urn:air:{rest}"),
        None => text.to_owned(),
    };
    usable.then(|| current(text))
}

/// Whether the entry's `trustManifest` names another publisher than its identifier (ARD 4.5.1). If one of the two
/// names none, there is nothing to compare.
fn names_other_publisher(entry: &Map<String, Value>, identifier: &str) -> bool {
    let declared = entry
        .get("trustManifest")
        .and_then(|trust| trust.get("identity"));
    let declared = declared
        .and_then(Value::as_str)
        .and_then(publisher_of_identity);
    let publisher = identifier
        .strip_prefix("urn:air:")
        .and_then(|rest| rest.split(':').next());
    match (declared, publisher) {
        (Some(declared), Some(publisher)) => declared != publisher.to_ascii_lowercase(),
        _ => false,
    }
}

/// Domain of `did:web:D`, `spiffe://D/…`, `https://D/…` or a bare `D`.
fn publisher_of_identity(identity: &str) -> Option<String> {
    let rest = ["did:web:", "spiffe://", "https://"]
        .iter()
        .find_map(|prefix| identity.strip_prefix(prefix))
        .unwrap_or(identity);
    let domain = rest.split(['/', ':']).next().unwrap_or_default();
    domain.contains('.').then(|| domain.to_ascii_lowercase())
}

fn updated_at(entry: &Map<String, Value>) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(entry.get("updatedAt")?.as_str()?, &Rfc3339).ok()
}
