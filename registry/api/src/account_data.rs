//! An account's own data: its feed and its saved searches.

use a2a_registry_domain::timestamp::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::limits;

/// The feed of an account with its new URL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreatedFeed {
    /// URL of the feed; anyone who knows it can read the feed. It is shown only once; only a hash of its secret is
    /// stored.
    pub url: String,
    /// Time from which it is valid.
    pub created_at: Timestamp,
}

/// A search that an account has saved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SavedSearch {
    /// Id of the saved search.
    pub id: Uuid,
    /// Its name, unique within the account.
    pub name: String,
    /// The parameters of the search, as in a URL.
    pub query: String,
    /// Time of creation.
    pub created_at: Timestamp,
}

/// The saved searches of an account, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SavedSearchList {
    /// All saved searches, at most 50.
    pub searches: Vec<SavedSearch>,
}

/// A search to save.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSavedSearch {
    /// Its name; a saved search of the account with the same name is replaced.
    #[schema(value_type = limits::Name)]
    pub name: String,
    /// The parameters of `GET /v1/agents`, as in a URL: `q=book+a+trip&tag=travel`. Paging parameters are left out.
    #[schema(value_type = limits::SearchText)]
    pub query: String,
}
