//! Collections as filters: which of them contain an agent, evaluated on its attributes and never by the index.

pub mod collection_rows;
pub mod filters;

use a2a_registry_domain::facet::FacetMap;
use a2a_registry_policy::{AgentAttributes, CollectionMembership};
use a2a_registry_search::{AgentDocument, Filters, SkillText};
use a2a_registry_store::entity::collection;
use a2a_registry_store::{Executor, StoreError, collections};

use crate::collection_filters::collection_rows::parse_collection_filter;

#[derive(Debug, Clone, Default)]
pub struct CollectionFilters {
    filters: Vec<(String, Filters)>,
}

impl CollectionFilters {
    pub fn from_rows(rows: &[collection::Model]) -> Self {
        Self::from_named_filters(
            rows.iter()
                .map(|row| (row.name.as_str(), row.filter.as_str())),
        )
    }

    /// The collections stored with a policy set; empty if they cannot be read.
    pub fn from_stored(kept: &str) -> Self {
        let stored_filters: Vec<(String, String)> = serde_json::from_str(kept)
            .inspect_err(
                |error| tracing::error!(%error, "the collections of a policy set cannot be parsed"),
            )
            .unwrap_or_default();
        Self::from_named_filters(
            stored_filters
                .iter()
                .map(|(name, filter)| (name.as_str(), filter.as_str())),
        )
    }

    fn from_named_filters<'a>(named_filters: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let parse = |(name, filter)| Some((String::from(name), parse_stored_filter(name, filter)?));
        Self {
            filters: named_filters.filter_map(parse).collect(),
        }
    }
}

/// Parses the filter of a collection; `None`, which is logged, if this build does not understand it: then the
/// collection contains no agent.
pub fn parse_stored_filter(name: &str, filter: &str) -> Option<Filters> {
    let parsed = parse_collection_filter(filter);
    parsed
        .map(|(_, filters)| filters)
        .inspect_err(|error| {
            tracing::error!(collection = name, %error, "the filter of a collection cannot be parsed");
        })
        .ok()
}

impl CollectionMembership for CollectionFilters {
    fn collections_containing(&self, agent: &AgentAttributes) -> Vec<String> {
        if self.filters.is_empty() {
            return Vec::new();
        }
        let agent = build_filterable_document(agent);
        let matching = self
            .filters
            .iter()
            .filter(|(_, one)| one.matches_document(&agent));
        matching.map(|(name, _)| name.clone()).collect()
    }
}

/// All collections, in the form stored with a policy set that uses them: a list of names and filters, by name.
pub async fn snapshot_collections(db: &impl Executor) -> Result<String, StoreError> {
    let rows = collections::all_collections(db).await?;
    let named_filters: Vec<(&str, &str)> = rows
        .iter()
        .map(|row| (row.name.as_str(), row.filter.as_str()))
        .collect();
    Ok(serde_json::to_string(&named_filters).unwrap_or_else(|_| "[]".to_owned()))
}

/// The part of a search document that filters use; the rest is empty.
fn build_filterable_document(agent: &AgentAttributes) -> AgentDocument {
    let named = |name: &String| SkillText {
        name: name.clone(),
        ..SkillText::default()
    };
    AgentDocument {
        skills: agent.skill_names.iter().map(named).collect(),
        facets: FacetMap::from_fn(|facet| agent.facet_values(facet)),
        ..AgentDocument::default()
    }
}
