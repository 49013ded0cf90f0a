//! What belongs to one account alone: its feed and its saved searches.

use a2a_registry_domain::timestamp::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::limits;

/// The feed of an account with its new address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreatedFeed {
    /// Address of the feed, which whoever knows it can read. It is shown this once; only a hash of its secret is stored.
    pub url: String,
    /// Time since which it is valid.
    pub created_at: Timestamp,
}

/// A search that an account has saved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SavedSearch {
    /// Id of the saved search.
    pub id: Uuid,
    /// Its name, unique for the account.
    pub name: String,
    /// The parameters of the search, as in an address.
    pub query: String,
    /// Time of creation.
    pub created_at: Timestamp,
}

/// The saved searches of an account, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SavedSearchList {
    /// All of them; there are 50 at most.
    pub searches: Vec<SavedSearch>,
}

/// A search to save.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSavedSearch {
    /// Its name; a search that the account has saved under it is replaced.
    #[schema(value_type = limits::Name)]
    pub name: String,
    /// The parameters of `GET /v1/agents`, as in an address: `q=book+a+trip&tag=travel`. Those of a page are left out.
    #[schema(value_type = limits::SearchText)]
    pub query: String,
}
