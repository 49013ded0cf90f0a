//! Parser of one catalog entry, member by member.

use a2a_card::{bytes_digest, canonical_json, parse_exact_json};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use url::Url;

use super::MAX_IDENTIFIER_BYTES;
use super::identifier::{is_identity_mismatch, with_current_urn_prefix};
use super::registry::{ListedRegistry, REGISTRY_MEDIA_TYPES};
use super::skipped_entries::EntrySkipReason;
use crate::guard::{MAX_URL_BYTES, normalize_url};

/// An entry that names or contains an A2A agent card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogCardEntry {
    /// The publisher's identifier of the agent; compared exactly. The retired prefix `urn:ai:` is read as `urn:air:`.
    pub identifier: String,
    /// URL of the card, in normal form and without a fragment. A card inside the entry has the URL of the document,
    /// where it can be viewed, with the identifier as its fragment, so that no other card has this URL.
    pub url: Url,
    /// Time at which the publisher says that the entry last changed; of two entries with one identifier the later one
    /// counts.
    pub updated_at: Option<OffsetDateTime>,
    /// The digest that the entry states for the card at its URL: `sha256:` and 64 digits. The digest of a card inside
    /// the entry has already been compared.
    pub digest: Option<String>,
    /// The card inside the entry, byte for byte as in the document.
    pub inline_card: Option<Vec<u8>>,
}

pub(super) enum ParsedCatalogEntry<'a> {
    Card(CatalogCardEntry),
    CatalogUrl(Url),
    InlineCatalog(&'a RawValue),
    Registry(ListedRegistry),
}

const CARD_MEDIA_TYPE: &str = "application/a2a-agent-card+json";
const CATALOG_MEDIA_TYPE: &str = "application/ai-catalog+json";

/// Parses an entry. Its URL is relative to `base`, the URL of the document. Registries are read only if
/// `read_registries` is true; of any other entry that is neither a card nor a catalog, only the type is read.
pub(super) fn parse_catalog_entry<'a>(
    raw: &'a RawValue,
    base: &Url,
    read_registries: bool,
) -> Result<ParsedCatalogEntry<'a>, EntrySkipReason> {
    let value: Value = serde_json::from_str(raw.get()).map_err(|_| EntrySkipReason::Malformed)?;
    let entry = value.as_object().ok_or(EntrySkipReason::Malformed)?;
    match media_type_essence(declared_media_type(entry).ok_or(EntrySkipReason::Malformed)?).as_str()
    {
        CARD_MEDIA_TYPE => parse_card_entry(raw, entry, base).map(ParsedCatalogEntry::Card),
        CATALOG_MEDIA_TYPE => match catalog_entry_content(entry, base)? {
            CatalogEntryContent::Url(url) => Ok(ParsedCatalogEntry::CatalogUrl(url)),
            CatalogEntryContent::Inline => {
                Ok(ParsedCatalogEntry::InlineCatalog(raw_entry_data(raw)?))
            }
        },
        media_type if read_registries && REGISTRY_MEDIA_TYPES.contains(&media_type) => {
            ListedRegistry::parse(raw.get(), base).map(ParsedCatalogEntry::Registry)
        }
        _ => Err(EntrySkipReason::NotACard),
    }
}

/// The media type that an entry states: `type` or, in older documents, `mediaType`.
fn declared_media_type(entry: &Map<String, Value>) -> Option<&str> {
    let text = |name| entry.get(name).and_then(Value::as_str);
    text("type").or_else(|| text("mediaType"))
}

fn parse_card_entry(
    raw: &RawValue,
    entry: &Map<String, Value>,
    base: &Url,
) -> Result<CatalogCardEntry, EntrySkipReason> {
    let identifier = catalog_entry_identifier(entry).ok_or(EntrySkipReason::Malformed)?;
    if is_identity_mismatch(&identifier, declared_identity(entry)) {
        return Err(EntrySkipReason::PublisherMismatch);
    }
    let stated_digest = stated_digest(entry)?.map(str::to_owned);
    let updated_at = catalog_entry_updated_at(entry);
    let (url, digest, inline) = match catalog_entry_content(entry, base)? {
        CatalogEntryContent::Url(url) => (url, stated_digest, None),
        CatalogEntryContent::Inline => {
            let bytes = raw_entry_data(raw)?.get().as_bytes().to_vec();
            if stated_digest.is_some() && stated_digest != entry_data_digest(&bytes) {
                return Err(EntrySkipReason::DigestMismatch);
            }
            (inline_card_url(base, &identifier), None, Some(bytes))
        }
    };
    Ok(CatalogCardEntry {
        identifier,
        url,
        updated_at,
        digest,
        inline_card: inline,
    })
}

fn inline_card_url(base: &Url, identifier: &str) -> Url {
    let mut url = normalize_url(base.clone());
    url.set_fragment(Some(identifier));
    url
}

/// Label of an entry in a skipped-entry report: its identifier, its URL, or its number.
pub(super) fn catalog_entry_label(raw: &RawValue, number: usize) -> String {
    let value: Value = serde_json::from_str(raw.get()).unwrap_or_default();
    let text = |name| value.get(name).and_then(Value::as_str);
    let label = text("identifier").or_else(|| text("url"));
    let label = label.filter(|text| !text.trim().is_empty());
    label.map_or_else(|| format!("entry {number}"), str::to_owned)
}

pub(super) enum CatalogEntryContent {
    Url(Url),
    Inline,
}

/// The content of an entry: exactly one of `url` and `data`; null counts as missing.
pub(super) fn catalog_entry_content(
    entry: &Map<String, Value>,
    base: &Url,
) -> Result<CatalogEntryContent, EntrySkipReason> {
    let present_member = |name| entry.get(name).filter(|value| !value.is_null());
    match (present_member("url"), present_member("data")) {
        (Some(Value::String(text)), None) if text.len() <= MAX_URL_BYTES => {
            let mut url = base
                .join(text.trim())
                .map_err(|_| EntrySkipReason::Malformed)?;
            url.set_fragment(None);
            Ok(CatalogEntryContent::Url(normalize_url(url)))
        }
        (None, Some(_)) => Ok(CatalogEntryContent::Inline),
        _ => Err(EntrySkipReason::Malformed),
    }
}

/// The member `data` of an entry exactly as in the document; if it is repeated, the last one counts, as elsewhere.
fn raw_entry_data(raw: &RawValue) -> Result<&RawValue, EntrySkipReason> {
    let members = super::parser::object_members(raw).ok_or(EntrySkipReason::Malformed)?;
    members
        .get("data")
        .copied()
        .ok_or(EntrySkipReason::Malformed)
}

/// The digest of `data` in its canonical form. `None` if JSON parsers read it differently.
pub(super) fn entry_data_digest(bytes: &[u8]) -> Option<String> {
    Some(bytes_digest(&canonical_json(&parse_exact_json(bytes)?)?))
}

/// The digest that an entry states. A digest with an algorithm that AI Catalog does not define is ignored.
pub(super) fn stated_digest(entry: &Map<String, Value>) -> Result<Option<&str>, EntrySkipReason> {
    let Some(text) = entry.get("digest").and_then(Value::as_str) else {
        return Ok(None);
    };
    let Some(digits) = text.strip_prefix("sha256:") else {
        return Ok(None);
    };
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_whole = digits.len() == 64 && digits.bytes().all(is_digit);
    is_whole
        .then_some(Some(text))
        .ok_or(EntrySkipReason::DigestMismatch)
}

/// The essence of a media type: without parameters, in lower case.
fn media_type_essence(text: &str) -> String {
    let essence = text.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

pub(super) fn catalog_entry_identifier(entry: &Map<String, Value>) -> Option<String> {
    let text = entry.get("identifier")?.as_str()?;
    let usable = !text.trim().is_empty()
        && text.len() <= MAX_IDENTIFIER_BYTES
        && !text.contains(char::is_control);
    usable.then(|| with_current_urn_prefix(text))
}

/// The identity that the entry's `trustManifest` declares (ARD 4.5.1).
pub(super) fn declared_identity(entry: &Map<String, Value>) -> Option<&str> {
    entry.get("trustManifest")?.get("identity")?.as_str()
}

fn catalog_entry_updated_at(entry: &Map<String, Value>) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(entry.get("updatedAt")?.as_str()?, &Rfc3339).ok()
}
