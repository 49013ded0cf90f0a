//! Parser of one catalog document.

use serde_json::Value;
use url::Url;

use super::entry::{CatalogEntry, Kind, name_of, read_entry};
use super::finding::{Findings, PassedOver};
use super::{MAX_DEPTH, MAX_ENTRIES};

/// Why a document is not a catalog.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoCatalog {
    /// It is not JSON, or nested too deep for a catalog.
    #[error("it is not JSON: {0}")]
    NotJson(String),
    /// It is not an object with a list `entries`.
    #[error("it is not an object with a list `entries`")]
    NoEntries,
    /// Its `specVersion` has another major version than 1.
    #[error("its specVersion has an unknown major version: {0:?}")]
    Version(String),
}

/// The content of one document, with the catalogs nested in it inline.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CatalogDocument {
    /// The cards that it names, in order.
    pub cards: Vec<CatalogEntry>,
    /// The catalogs that it names by URL, with their depth: 1 for those that the first document names.
    pub nested: Vec<(Url, usize)>,
    /// The entries that were skipped.
    pub findings: Findings,
    /// Entries read.
    pub entries: usize,
    /// Whether every entry was read.
    pub complete: bool,
}

/// Parses a document from `base` that is nested `depth` deep (0 for the first), and reads at most `most` of its
/// entries, never more than [`MAX_ENTRIES`].
///
/// Only the list of entries is required. Every entry and every member is read on its own, and unknown ones are
/// ignored. `specVersion` may be missing, as in ARD; a document of a higher major version is not read.
///
/// # Errors
/// [`NoCatalog`] if there is no such list.
pub fn read(
    bytes: &[u8],
    base: &Url,
    depth: usize,
    most: usize,
) -> Result<CatalogDocument, NoCatalog> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let value: Value =
        serde_json::from_slice(bytes).map_err(|error| NoCatalog::NotJson(error.to_string()))?;
    let mut reading = CatalogDocument {
        complete: true,
        ..CatalogDocument::default()
    };
    let most = most.min(MAX_ENTRIES);
    read_document(&value, base, depth, most, &mut reading)?;
    Ok(reading)
}

fn read_document(
    value: &Value,
    base: &Url,
    depth: usize,
    most: usize,
    reading: &mut CatalogDocument,
) -> Result<(), NoCatalog> {
    let version = value.get("specVersion").and_then(Value::as_str);
    if let Some(version) = version
        && let Some(Ok(major)) = version.split('.').next().map(str::parse::<u64>)
        && major > 1
    {
        let shown = version.chars().take(20).collect();
        return Err(NoCatalog::Version(shown));
    }
    let entries = value.get("entries").and_then(Value::as_array);
    for (number, entry) in entries.ok_or(NoCatalog::NoEntries)?.iter().enumerate() {
        if reading.entries >= most {
            reading.complete = false;
            reading
                .findings
                .add(PassedOver::TooMany, &name_of(entry, number));
            break;
        }
        reading.entries += 1;
        let passed_over = match read_entry(entry, base) {
            Ok(Kind::Card(card)) => {
                reading.cards.push(card);
                continue;
            }
            Ok(Kind::Elsewhere(_) | Kind::Inline(_)) if depth >= MAX_DEPTH => PassedOver::TooDeep,
            Ok(Kind::Elsewhere(url)) => {
                reading.nested.push((url, depth + 1));
                continue;
            }
            Ok(Kind::Inline(document)) => {
                match read_document(document, base, depth + 1, most, reading) {
                    Ok(()) => continue,
                    Err(_) => PassedOver::Malformed,
                }
            }
            Err(passed_over) => passed_over,
        };
        reading.findings.add(passed_over, &name_of(entry, number));
    }
    Ok(())
}
