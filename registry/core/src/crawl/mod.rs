//! Crawling: leases of visits, ingest of their outcomes, and derivation of stored cards.

pub mod derivation;
pub mod ingest;
pub mod job;
