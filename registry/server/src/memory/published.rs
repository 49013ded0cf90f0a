//! The catalog that the registry publishes, as it was last built.

use a2a_registry_domain::timestamp::Timestamp;
use bytes::Bytes;

#[derive(Debug, Clone)]
pub(crate) struct PublishedCatalog {
    /// The state of the index, and the labels of public agents.
    pub(crate) key: String,
    pub(crate) body: Bytes,
    /// Its strong entity tag, in quotes.
    pub(crate) tag: String,
    /// When the last changed agent in it changed.
    pub(crate) changed_at: Timestamp,
}
