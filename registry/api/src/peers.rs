//! Other registries that this one asks.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The registries that federated searches reach.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PeerList {
    /// By name.
    pub peers: Vec<PeerView>,
    /// Registries that catalogs of proved domains list and that are no peers: nobody asks them until an operator sets one in
    /// `[federation]`. At most 100.
    #[serde(default)]
    pub candidates: Vec<PeerCandidate>,
}

/// A registry that a catalog lists.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PeerCandidate {
    /// Its identifier.
    pub identifier: String,
    /// Its name, as its publisher has it.
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
    /// Whether it is told what signed-in callers search for.
    pub share_private: bool,
    /// Whether this process leaves it alone for now, because it has failed several times.
    pub left_alone: bool,
    /// Why it gave no results the last time, if it did not; of this process.
    pub last_failure: Option<String>,
}
