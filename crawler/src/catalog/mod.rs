//! Catalogs: the documents in which a domain names its agents (`ard.json`, `ai-catalog.json`).
//!
//! [`read`] is pure and tolerant: what it does not understand costs one entry, never the document.
//! [`CatalogWalk`] gathers what a catalog and those nested in it say together;
//! [`Fetcher::fetch_source`](crate::fetch::Fetcher::fetch_source) does the asking.

mod entry;
mod finding;
mod read;
#[cfg(test)]
mod tests;
mod walk;

pub use entry::CatalogEntry;
pub use finding::{Finding, Findings, MAX_FINDINGS, PassedOver};
pub use read::{CatalogDocument, NoCatalog, read};
pub use walk::{CatalogWalk, Nested};

/// Where ARD puts a domain's catalog.
pub const ARD_PATH: &str = "/.well-known/ard.json";
/// Where AI Catalog puts it.
pub const AI_CATALOG_PATH: &str = "/.well-known/ai-catalog.json";
/// How deep catalogs may be nested below the first one, inline ones counted (AI Catalog 1.0 recommends 4).
pub const MAX_DEPTH: usize = 4;
/// Most entries that are looked at in one catalog and all that is nested in it, whatever they are.
pub const MAX_ENTRIES: usize = 1_000;
/// Most requests for one catalog and all that is nested in it.
pub const MAX_REQUESTS: usize = 6;
/// Most bytes of one catalog and all that is nested in it; a single document is bounded by
/// [`FetchLimits::body`](crate::fetch::FetchLimits::body) too.
pub const MAX_BYTES: usize = 2 * 1024 * 1024;
/// Most bytes of an entry's identifier.
pub const MAX_IDENTIFIER_BYTES: usize = 512;
