//! Parser of one catalog document.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use url::Url;

use super::entry::{
    CatalogCardEntry, ParsedCatalogEntry, catalog_entry_label, parse_catalog_entry,
};
use super::registry::ListedRegistry;
use super::skipped_entries::{EntrySkipReason, SkippedEntryList};
use super::{MAX_DEPTH, MAX_ENTRIES};

/// Why a document is not a catalog.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CatalogError {
    /// It is not JSON in UTF-8.
    #[error("it is not JSON: {0}")]
    NotJson(String),
    /// It is not an object with a list `entries`.
    #[error("it is not an object with a list `entries`")]
    NoEntries,
    /// Its `specVersion` has another major version than 1.
    #[error("its specVersion has an unknown major version: {0:?}")]
    UnsupportedVersion(String),
}

/// Options for reading a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatalogReadOptions {
    /// Nesting depth of the document: 0 for the first.
    pub depth: usize,
    /// Maximum number of entries to read, never more than [`MAX_ENTRIES`].
    pub max_entries: usize,
    /// Whether registry entries are read too.
    pub read_registries: bool,
}

/// The content of one document, including the catalogs nested in it inline.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CatalogDocument {
    /// The cards that it names or contains, in document order.
    pub cards: Vec<CatalogCardEntry>,
    /// The registries that it names, in document order, if registries are read.
    pub registries: Vec<ListedRegistry>,
    /// The catalogs that it names by URL, with their depth: 1 for those named by the first document.
    pub nested_urls: Vec<(Url, usize)>,
    /// The entries that were skipped.
    pub skipped: SkippedEntryList,
    /// Number of entries read.
    pub entry_count: usize,
    /// Whether every entry was read.
    pub is_complete: bool,
}

/// Parses a document from `base`.
///
/// Only the list of entries is required. Every entry and every member is read on its own, and unknown ones are
/// ignored. `specVersion` may be missing, as in ARD; a document of a higher major version is rejected.
pub fn parse_catalog(
    bytes: &[u8],
    base: &Url,
    options: CatalogReadOptions,
) -> Result<CatalogDocument, CatalogError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let document: &RawValue =
        serde_json::from_slice(bytes).map_err(|error| CatalogError::NotJson(error.to_string()))?;
    let mut parsed = CatalogDocument {
        is_complete: true,
        ..CatalogDocument::default()
    };
    let options = CatalogReadOptions {
        max_entries: options.max_entries.min(MAX_ENTRIES),
        ..options
    };
    parse_catalog_document(document, base, options, &mut parsed)?;
    Ok(parsed)
}

/// The raw members of an object; of several with one name the last counts. `None` for any other value.
pub(super) fn object_members(raw: &RawValue) -> Option<BTreeMap<String, &RawValue>> {
    serde_json::from_str(raw.get()).ok()
}

fn parse_catalog_document(
    document: &RawValue,
    base: &Url,
    options: CatalogReadOptions,
    parsed: &mut CatalogDocument,
) -> Result<(), CatalogError> {
    let members = object_members(document).ok_or(CatalogError::NoEntries)?;
    let version = members.get("specVersion");
    let version = version.and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
    if let Some(version) = version
        && let Some(Ok(major)) = version.split('.').next().map(str::parse::<u64>)
        && major > 1
    {
        let displayed = version.chars().take(20).collect();
        return Err(CatalogError::UnsupportedVersion(displayed));
    }
    let entries = members.get("entries");
    let entries = entries.and_then(|raw| serde_json::from_str::<Vec<&RawValue>>(raw.get()).ok());
    for (number, entry) in entries
        .ok_or(CatalogError::NoEntries)?
        .into_iter()
        .enumerate()
    {
        if parsed.entry_count >= options.max_entries {
            parsed.is_complete = false;
            parsed.skipped.add(
                EntrySkipReason::LimitReached,
                &catalog_entry_label(entry, number),
            );
            break;
        }
        parsed.entry_count += 1;
        if let Err(reason) = add_catalog_entry(entry, base, options, parsed) {
            parsed
                .skipped
                .add(reason, &catalog_entry_label(entry, number));
        }
    }
    Ok(())
}

fn add_catalog_entry(
    entry: &RawValue,
    base: &Url,
    options: CatalogReadOptions,
    parsed: &mut CatalogDocument,
) -> Result<(), EntrySkipReason> {
    let depth = options.depth;
    match parse_catalog_entry(entry, base, options.read_registries)? {
        ParsedCatalogEntry::Card(card) => parsed.cards.push(card),
        ParsedCatalogEntry::Registry(registry) => parsed.registries.push(registry),
        ParsedCatalogEntry::CatalogUrl(_) | ParsedCatalogEntry::InlineCatalog(_)
            if depth >= MAX_DEPTH =>
        {
            return Err(EntrySkipReason::TooDeep);
        }
        ParsedCatalogEntry::CatalogUrl(url) => parsed.nested_urls.push((url, depth + 1)),
        ParsedCatalogEntry::InlineCatalog(document) => {
            let deeper = CatalogReadOptions {
                depth: depth + 1,
                ..options
            };
            parse_catalog_document(document, base, deeper, parsed)
                .map_err(|_| EntrySkipReason::Malformed)?;
        }
    }
    Ok(())
}
