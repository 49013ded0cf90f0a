//! Other registries that this one asks.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The registries that federated searches reach.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PeerList {
    /// By name.
    pub peers: Vec<PeerView>,
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
