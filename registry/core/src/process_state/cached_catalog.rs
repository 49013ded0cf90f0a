//! The catalog that the registry publishes, as it was last built.

use a2a_registry_domain::timestamp::Timestamp;
use bytes::Bytes;

#[derive(Debug, Clone)]
pub struct CachedCatalog {
    /// The key of the state of the index and the labels of public agents.
    pub key: String,
    pub body: Bytes,
    /// Its strong entity tag, in quotes.
    pub tag: String,
    /// When the last changed agent in it changed.
    pub changed_at: Timestamp,
}
