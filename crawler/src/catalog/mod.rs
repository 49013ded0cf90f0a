//! Catalogs: documents that list the agents of a domain (`ard.json`, `ai-catalog.json`).
//!
//! [`parse_catalog`] is pure and tolerant: an unreadable part costs one entry, never the document. [`CatalogWalk`]
//! collects the entries of a catalog and of its nested catalogs;
//! [`Fetcher::fetch_source`](crate::fetch::Fetcher::fetch_source) makes the requests.

mod entry;
mod identifier;
mod parser;
mod registry;
mod skipped_entries;
#[cfg(test)]
mod tests;
mod walk;

pub use entry::CatalogCardEntry;
pub use identifier::{identifier_publisher, identity_domain, is_publisher_domain};
pub use parser::{CatalogDocument, CatalogError, CatalogReadOptions, parse_catalog};
pub use registry::ListedRegistry;
pub use skipped_entries::{EntrySkipReason, MAX_SKIPPED_ENTRIES, SkippedEntry, SkippedEntryList};
pub use walk::{CatalogContents, CatalogWalk, NestedCatalog};

/// Path of a domain's catalog in ARD.
pub const ARD_PATH: &str = "/.well-known/ard.json";
/// Path of a domain's catalog in AI Catalog.
pub const AI_CATALOG_PATH: &str = "/.well-known/ai-catalog.json";
/// Maximum depth of catalogs nested below the first one, inline ones included (AI Catalog 1.0 recommends 4).
pub const MAX_DEPTH: usize = 4;
/// Maximum number of entries of any type read from a catalog and its nested catalogs.
pub const MAX_ENTRIES: usize = 1_000;
/// Maximum number of requests for a catalog and its nested catalogs.
pub const MAX_CATALOG_REQUESTS: usize = 6;
/// Maximum number of bytes of a catalog and its nested catalogs; a single document is also limited by
/// [`FetchLimits::body_bytes`](crate::fetch::FetchLimits::body_bytes).
pub const MAX_CATALOG_BYTES: usize = 2 * 1024 * 1024;
/// Maximum length of an entry's identifier in bytes.
pub const MAX_IDENTIFIER_BYTES: usize = 512;
/// Maximum number of inline cards read from a catalog and its nested catalogs. Each costs a request whenever it is
/// due.
pub const MAX_INLINE_CARDS: usize = 10;
/// Maximum number of registries read from a catalog and its nested catalogs.
pub const MAX_REGISTRIES: usize = 50;
