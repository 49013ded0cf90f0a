//! Catalogs: documents that list the agents of a domain (`ard.json`, `ai-catalog.json`).
//!
//! [`read`] is pure and tolerant: an unreadable part costs one entry, never the document. [`CatalogWalk`] collects
//! the entries of a catalog and of those nested in it; [`Fetcher::fetch_source`](crate::fetch::Fetcher::fetch_source)
//! makes the requests.

mod entry;
mod identifier;
mod parser;
mod registry;
mod skipped_entries;
#[cfg(test)]
mod tests;
mod walk;

pub use entry::CatalogEntry;
pub use identifier::{identifier_publisher, identity_domain, is_publisher_domain};
pub use parser::{CatalogDocument, CatalogError, CatalogReadOptions, parse_catalog};
pub use registry::ListedRegistry;
pub use skipped_entries::{MAX_SKIPPED_ENTRIES, SkipReason, SkippedEntry, SkippedEntryList};
pub use walk::{CatalogContents, CatalogWalk, NestedCatalog};

/// Path of a domain's catalog in ARD.
pub const ARD_PATH: &str = "/.well-known/ard.json";
/// Path of a domain's catalog in AI Catalog.
pub const AI_CATALOG_PATH: &str = "/.well-known/ai-catalog.json";
/// How deep catalogs may be nested below the first one, inline ones counted (AI Catalog 1.0 recommends 4).
pub const MAX_DEPTH: usize = 4;
/// Most entries read in one catalog and all catalogs nested in it, of any type.
pub const MAX_ENTRIES: usize = 1_000;
/// Most requests for one catalog and all catalogs nested in it.
pub const MAX_CATALOG_REQUESTS: usize = 6;
/// Most bytes of one catalog and all catalogs nested in it; a single document is also limited by
/// [`FetchLimits::body`](crate::fetch::FetchLimits::body).
pub const MAX_CATALOG_BYTES: usize = 2 * 1024 * 1024;
/// Most bytes of an entry's identifier.
pub const MAX_IDENTIFIER_BYTES: usize = 512;
/// Most cards read from inside a catalog and all nested in it. Each costs a request whenever it is due.
pub const MAX_INLINE_CARDS: usize = 10;
/// Most registries that are taken of one catalog and all catalogs nested in it.
pub const MAX_REGISTRIES: usize = 50;
