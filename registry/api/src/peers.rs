//! Peers that this registry queries, and candidates for peers.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The registries that federated searches reach.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PeerList {
    /// The peers, by name.
    pub peers: Vec<PeerView>,
    /// Registries that catalogs of proved domains list and that are not peers: they are not queried until an operator
    /// adds them in `[federation]`. At most 100.
    #[serde(default)]
    pub candidates: Vec<PeerCandidate>,
}

/// A registry that a catalog lists.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PeerCandidate {
    /// Its identifier.
    pub identifier: String,
    /// Its name, as its publisher gives it.
    pub display_name: String,
    /// The base URL of its API.
    pub url: String,
    /// The domain whose catalog lists it.
    pub domain: String,
}

/// A registry that federated searches reach.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PeerView {
    /// Its name in the configuration.
    pub name: String,
    /// The base URL of its API.
    pub url: String,
    /// Whether searches of signed-in callers are sent to it.
    pub share_private: bool,
    /// Whether this process does not query it for now, because it has failed several times.
    pub left_alone: bool,
    /// Why the last query of this process returned no results; null if it returned some.
    pub last_failure: Option<String>,
}
