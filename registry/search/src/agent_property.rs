//! Agent properties: values for exact filters, all of which can be counted.

use a2a_registry_domain::facet::Facet;
use tantivy::Term;

use super::document::{AgentDocument, MAX_VALUE_BYTES};
use super::keys::{ATTRIBUTE_COLUMN, IDENTIFIER_COLUMN, KeyField, KeyKind};

/// Maximum number of indexed attributes of one agent; the rest are left out.
pub const MAX_ATTRIBUTES: usize = 128;

/// Separates the path and the value of an attribute in the index.
pub(super) const PATH_SEPARATOR: char = '\u{1}';

/// A property of agents, whose values are compared byte by byte.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AgentProperty {
    /// The values of a facet, as they are indexed.
    Facet(Facet),
    /// The attributes with this path.
    Attribute(String),
    /// The identifier in catalogs.
    Identifier,
    /// The id. It is different for every agent, so it has no column.
    Id,
}

/// A condition on one property: an agent must have one of these values, or no value if the list is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExactFilter {
    pub property: AgentProperty,
    /// The values of which an agent must have one.
    pub values: Vec<String>,
}

impl AgentProperty {
    pub(super) fn term(&self, keys: KeyField, value: &str) -> Term {
        match self {
            Self::Facet(facet) => keys.facet_term(*facet, value),
            Self::Attribute(path) => keys.term(KeyKind::Attribute, &attribute_key(path, value)),
            Self::Identifier => keys.term(KeyKind::Identifier, value),
            // No agent has the nil id.
            Self::Id => keys.id_term(value.parse().unwrap_or_default()),
        }
    }

    pub(super) fn document_has_value(&self, agent: &AgentDocument, value: &str) -> bool {
        match self {
            Self::Facet(facet) => has_exact_facet_value(agent, *facet, value),
            Self::Attribute(path) => {
                let mut attributes = agent.attributes.iter().take(MAX_ATTRIBUTES);
                attributes.any(|(one, held)| one == path && held == value)
            }
            Self::Identifier => agent.identifier == value,
            Self::Id => value.parse().is_ok_and(|id: uuid::Uuid| id == agent.id),
        }
    }

    pub(super) fn column_name(&self) -> &'static str {
        match self {
            Self::Facet(facet) => facet.as_str(),
            Self::Attribute(_) => ATTRIBUTE_COLUMN,
            Self::Identifier | Self::Id => IDENTIFIER_COLUMN,
        }
    }

    /// The prefix of its values in the column.
    pub(super) fn column_prefix(&self) -> String {
        match self {
            Self::Attribute(path) => attribute_key(path, ""),
            Self::Facet(_) | Self::Identifier | Self::Id => String::new(),
        }
    }
}

/// The indexed form of an attribute.
pub(super) fn attribute_key(path: &str, value: &str) -> String {
    format!("{path}{PATH_SEPARATOR}{value}")
}

/// Whether an agent has this value of a facet, byte by byte.
pub(super) fn has_exact_facet_value(agent: &AgentDocument, facet: Facet, value: &str) -> bool {
    is_indexable_value(value) && agent.facets[facet].iter().any(|one| one == value)
}

/// Whether this value is indexed: empty and long values are not.
fn is_indexable_value(value: &str) -> bool {
    !value.is_empty() && value.len() <= MAX_VALUE_BYTES
}
