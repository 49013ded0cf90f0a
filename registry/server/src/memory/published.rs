//! The catalog that the registry publishes, as it was last made.

use a2a_registry_domain::timestamp::Timestamp;
use bytes::Bytes;

/// The catalog with what it was made from.
#[derive(Debug, Clone)]
pub(crate) struct PublishedCatalog {
    /// The state of the index, and the labels of everybody.
    pub(crate) key: String,
    /// The document.
    pub(crate) body: Bytes,
    /// Its strong entity tag, in quotes.
    pub(crate) tag: String,
    /// When the agent in it changed that changed last.
    pub(crate) changed_at: Timestamp,
}
