//! Parser of one catalog document.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use url::Url;

use super::entry::{CatalogEntry, Kind, name_of, read_entry};
use super::finding::{Findings, PassedOver};
use super::registry::ListedRegistry;
use super::{MAX_DEPTH, MAX_ENTRIES};

/// Why a document is not a catalog.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoCatalog {
    /// It is not JSON in UTF-8.
    #[error("it is not JSON: {0}")]
    NotJson(String),
    /// It is not an object with a list `entries`.
    #[error("it is not an object with a list `entries`")]
    NoEntries,
    /// Its `specVersion` has another major version than 1.
    #[error("its specVersion has an unknown major version: {0:?}")]
    Version(String),
}

/// What is read of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadOptions {
    /// How deep it is nested: 0 for the first.
    pub depth: usize,
    /// Most entries to read, never more than [`MAX_ENTRIES`].
    pub most: usize,
    /// Whether entries of registries are read too.
    pub registries: bool,
}

/// The content of one document, with the catalogs nested in it inline.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CatalogDocument {
    /// The cards that it names or contains, in order.
    pub cards: Vec<CatalogEntry>,
    /// The registries that it names, in order, where they are read.
    pub registries: Vec<ListedRegistry>,
    /// The catalogs that it names by URL, with their depth: 1 for those that the first document names.
    pub nested: Vec<(Url, usize)>,
    /// The entries that were skipped.
    pub findings: Findings,
    /// Number of entries read.
    pub entries: usize,
    /// Whether every entry was read.
    pub complete: bool,
}

/// Parses a document from `base`.
///
/// Only the list of entries is required. Every entry and every member is read on its own, and unknown ones are
/// ignored. `specVersion` may be missing, as in ARD; a document of a higher major version is not read.
pub fn read(bytes: &[u8], base: &Url, options: ReadOptions) -> Result<CatalogDocument, NoCatalog> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let document: &RawValue =
        serde_json::from_slice(bytes).map_err(|error| NoCatalog::NotJson(error.to_string()))?;
    let mut reading = CatalogDocument {
        complete: true,
        ..CatalogDocument::default()
    };
    let options = ReadOptions {
        most: options.most.min(MAX_ENTRIES),
        ..options
    };
    read_document(document, base, options, &mut reading)?;
    Ok(reading)
}

/// The members of an object as they stand in the document, of several with one name the last; `None` for another value.
pub(super) fn members(raw: &RawValue) -> Option<BTreeMap<String, &RawValue>> {
    serde_json::from_str(raw.get()).ok()
}

fn read_document(
    document: &RawValue,
    base: &Url,
    options: ReadOptions,
    reading: &mut CatalogDocument,
) -> Result<(), NoCatalog> {
    let members = members(document).ok_or(NoCatalog::NoEntries)?;
    let version = members.get("specVersion");
    let version = version.and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
    if let Some(version) = version
        && let Some(Ok(major)) = version.split('.').next().map(str::parse::<u64>)
        && major > 1
    {
        let shown = version.chars().take(20).collect();
        return Err(NoCatalog::Version(shown));
    }
    let entries = members.get("entries");
    let entries = entries.and_then(|raw| serde_json::from_str::<Vec<&RawValue>>(raw.get()).ok());
    for (number, entry) in entries.ok_or(NoCatalog::NoEntries)?.into_iter().enumerate() {
        if reading.entries >= options.most {
            reading.complete = false;
            reading
                .findings
                .add(PassedOver::TooMany, &name_of(entry, number));
            break;
        }
        reading.entries += 1;
        if let Err(passed_over) = take_entry(entry, base, options, reading) {
            reading.findings.add(passed_over, &name_of(entry, number));
        }
    }
    Ok(())
}

fn take_entry(
    entry: &RawValue,
    base: &Url,
    options: ReadOptions,
    reading: &mut CatalogDocument,
) -> Result<(), PassedOver> {
    let depth = options.depth;
    match read_entry(entry, base, options.registries)? {
        Kind::Card(card) => reading.cards.push(card),
        Kind::Registry(registry) => reading.registries.push(registry),
        Kind::Elsewhere(_) | Kind::Inline(_) if depth >= MAX_DEPTH => {
            return Err(PassedOver::TooDeep);
        }
        Kind::Elsewhere(url) => reading.nested.push((url, depth + 1)),
        Kind::Inline(document) => {
            let deeper = ReadOptions {
                depth: depth + 1,
                ..options
            };
            read_document(document, base, deeper, reading).map_err(|_| PassedOver::Malformed)?;
        }
    }
    Ok(())
}
