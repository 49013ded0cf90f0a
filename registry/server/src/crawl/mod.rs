//! Crawling: which visits are due, what becomes of what they bring, and deriving again what is kept.

pub mod derivation;
pub mod ingest;
pub mod job;
pub mod page;
