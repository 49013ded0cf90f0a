//! One entry of a catalog, member by member.

use a2a_card::{canonical_json, digest, exact_json};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use url::Url;

use super::MAX_IDENTIFIER_BYTES;
use super::finding::PassedOver;
use super::identifier::{current, names_other_domain};
use super::registry::{ListedRegistry, REGISTRIES};
use crate::guard::{MAX_URL_BYTES, normalised};

/// An entry that names or contains an A2A agent card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogEntry {
    /// The publisher's identifier of the agent; compared exactly. The retired prefix `urn:ai:` reads as `urn:air:`.
    pub identifier: String,
    /// URL of the card, in normal form and without a fragment. A card inside the entry has the URL of the document,
    /// where it can be seen, with the identifier as its fragment, so that no other card has this URL.
    pub url: Url,
    /// When the publisher says that it last changed; of two entries with one identifier the later one counts.
    pub updated_at: Option<OffsetDateTime>,
    /// The digest that the entry states for the card at its URL: `sha256:` and 64 digits. That of a card inside the
    /// entry was compared already.
    pub digest: Option<String>,
    /// The card inside the entry, byte for byte as it stands in the document.
    pub inline: Option<Vec<u8>>,
}

pub(super) enum Kind<'a> {
    Card(CatalogEntry),
    Elsewhere(Url),
    Inline(&'a RawValue),
    Registry(ListedRegistry),
}

const CARD: &str = "application/a2a-agent-card+json";
const CATALOG: &str = "application/ai-catalog+json";

/// Reads an entry. Its URL is relative to `base`, where the document came from. Registries are read only if
/// `registries` is true; of any other entry that is neither card nor catalog only the type is read.
pub(super) fn read_entry<'a>(
    raw: &'a RawValue,
    base: &Url,
    registries: bool,
) -> Result<Kind<'a>, PassedOver> {
    let value: Value = serde_json::from_str(raw.get()).map_err(|_| PassedOver::Malformed)?;
    let entry = value.as_object().ok_or(PassedOver::Malformed)?;
    match essence(kind_of(entry).ok_or(PassedOver::Malformed)?).as_str() {
        CARD => read_card(raw, entry, base).map(Kind::Card),
        CATALOG => match content(entry, base)? {
            EntryContent::Url(url) => Ok(Kind::Elsewhere(url)),
            EntryContent::Inline => Ok(Kind::Inline(data_of(raw)?)),
        },
        kind if registries && REGISTRIES.contains(&kind) => {
            ListedRegistry::read(raw.get(), base).map(Kind::Registry)
        }
        _ => Err(PassedOver::NotACard),
    }
}

/// The media type that an entry states: `type` or, in older documents, `mediaType`.
fn kind_of(entry: &Map<String, Value>) -> Option<&str> {
    let text = |name| entry.get(name).and_then(Value::as_str);
    text("type").or_else(|| text("mediaType"))
}

fn read_card(
    raw: &RawValue,
    entry: &Map<String, Value>,
    base: &Url,
) -> Result<CatalogEntry, PassedOver> {
    let identifier = identifier(entry).ok_or(PassedOver::Malformed)?;
    if names_other_domain(&identifier, declared_identity(entry)) {
        return Err(PassedOver::OtherPublisher);
    }
    let stated = stated_digest(entry)?.map(str::to_owned);
    let updated_at = updated_at(entry);
    let (url, digest, inline) = match content(entry, base)? {
        EntryContent::Url(url) => (url, stated, None),
        EntryContent::Inline => {
            let bytes = data_of(raw)?.get().as_bytes().to_vec();
            if stated.is_some() && stated != digest_of_data(&bytes) {
                return Err(PassedOver::OtherDigest);
            }
            (inline_url(base, &identifier), None, Some(bytes))
        }
    };
    Ok(CatalogEntry {
        identifier,
        url,
        updated_at,
        digest,
        inline,
    })
}

fn inline_url(base: &Url, identifier: &str) -> Url {
    let mut url = normalised(base.clone());
    url.set_fragment(Some(identifier));
    url
}

/// Name of an entry in a finding: its identifier, its URL, or its number.
pub(super) fn name_of(raw: &RawValue, number: usize) -> String {
    let value: Value = serde_json::from_str(raw.get()).unwrap_or_default();
    let text = |name| value.get(name).and_then(Value::as_str);
    let named = text("identifier").or_else(|| text("url"));
    let named = named.filter(|text| !text.trim().is_empty());
    named.map_or_else(|| format!("entry {number}"), str::to_owned)
}

pub(super) enum EntryContent {
    Url(Url),
    Inline,
}

/// The content of an entry: exactly one of `url` and `data`; a null counts as missing.
pub(super) fn content(entry: &Map<String, Value>, base: &Url) -> Result<EntryContent, PassedOver> {
    let given = |name| entry.get(name).filter(|value| !value.is_null());
    match (given("url"), given("data")) {
        (Some(Value::String(text)), None) if text.len() <= MAX_URL_BYTES => {
            let mut url = base.join(text.trim()).map_err(|_| PassedOver::Malformed)?;
            url.set_fragment(None);
            Ok(EntryContent::Url(normalised(url)))
        }
        (None, Some(_)) => Ok(EntryContent::Inline),
        _ => Err(PassedOver::Malformed),
    }
}

/// The member `data` of an entry as it stands in the document; of several the last, as elsewhere.
fn data_of(raw: &RawValue) -> Result<&RawValue, PassedOver> {
    let members = super::read::members(raw).ok_or(PassedOver::Malformed)?;
    members.get("data").copied().ok_or(PassedOver::Malformed)
}

/// The digest of `data`: of its canonical form. `None` if JSON parsers read it differently.
pub(super) fn digest_of_data(bytes: &[u8]) -> Option<String> {
    Some(digest(&canonical_json(&exact_json(bytes)?)?))
}

/// The digest that an entry states. An algorithm that AI Catalog does not know states nothing.
pub(super) fn stated_digest(entry: &Map<String, Value>) -> Result<Option<&str>, PassedOver> {
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
        .ok_or(PassedOver::OtherDigest)
}

/// The essence of a media type: without parameters, in lower case.
fn essence(text: &str) -> String {
    let essence = text.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

pub(super) fn identifier(entry: &Map<String, Value>) -> Option<String> {
    let text = entry.get("identifier")?.as_str()?;
    let usable = !text.trim().is_empty()
        && text.len() <= MAX_IDENTIFIER_BYTES
        && !text.contains(char::is_control);
    usable.then(|| current(text))
}

/// What the entry's `trustManifest` declares as its identity (ARD 4.5.1).
pub(super) fn declared_identity(entry: &Map<String, Value>) -> Option<&str> {
    entry.get("trustManifest")?.get("identity")?.as_str()
}

fn updated_at(entry: &Map<String, Value>) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(entry.get("updatedAt")?.as_str()?, &Rfc3339).ok()
}
