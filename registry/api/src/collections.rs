//! Collections of agents as callers see them.

use a2a_registry_domain::timestamp::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::limits;

/// A collection: the agents that match a filter. It shows no caller an agent that the caller could not see without it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Collection {
    /// Its name, as in `collection=NAME` of a search.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The filter that its agents match.
    pub filter: String,
    /// The groups whose members see the collection: `NAME` of an admin's group, `ORIGIN#NAME` of another one; null if
    /// everyone does. Callers who do not see everything are shown their own groups only.
    pub audience: Option<Vec<String>>,
    /// Names of the accounts that are responsible for it.
    pub owners: Vec<String>,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
}

/// The collections that the caller may see, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CollectionList {
    /// All collections, at most 200.
    pub collections: Vec<Collection>,
}

/// The content of a collection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CollectionContent {
    /// What it is for.
    #[serde(default)]
    #[schema(value_type = limits::CollectionDescription, required = false)]
    pub description: String,
    /// The filter that its agents match, in terms such as `label:env=prod tag:finance provider:"Acme Corp"`: search
    /// filters, without words and without other collections. Values of one name are alternatives, different names must
    /// all match. At most 20 terms.
    #[schema(value_type = limits::FilterText)]
    pub filter: String,
    /// The groups whose members see the collection: `NAME` of an admin's group, `ORIGIN#NAME` of another one; null for
    /// everyone.
    #[serde(default)]
    #[schema(value_type = Option<limits::Audience>, required = false)]
    pub audience: Option<Vec<String>>,
    /// Names of the accounts that are responsible for it; they see it whatever its audience.
    #[serde(default)]
    #[schema(value_type = limits::OwnerNames, required = false)]
    pub owners: Vec<String>,
}
