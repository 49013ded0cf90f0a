//! Collections as filters: which of them hold an agent, evaluated on its facts and never by the index.

pub mod collection_rows;
pub mod filters;

use a2a_registry_domain::facet::FacetMap;
use a2a_registry_policy::{AgentFacts, Collections};
use a2a_registry_search::{Document, Filters, SkillText};
use a2a_registry_store::entity::collection;
use a2a_registry_store::{Handle, StoreError, collections};

use crate::collection_filters::collection_rows::read_filter;

#[derive(Debug, Clone, Default)]
pub struct CollectionFilters {
    filters: Vec<(String, Filters)>,
}

impl CollectionFilters {
    pub fn of(rows: &[collection::Model]) -> Self {
        Self::read(
            rows.iter()
                .map(|row| (row.name.as_str(), row.filter.as_str())),
        )
    }

    /// The collections stored with a policy set; empty if they cannot be read.
    pub fn kept(kept: &str) -> Self {
        let kept: Vec<(String, String)> = serde_json::from_str(kept)
            .inspect_err(
                |error| tracing::error!(%error, "the collections of a policy set are broken"),
            )
            .unwrap_or_default();
        Self::read(
            kept.iter()
                .map(|(name, filter)| (name.as_str(), filter.as_str())),
        )
    }

    fn read<'a>(named: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let read = |(name, filter)| Some((String::from(name), understood(name, filter)?));
        Self {
            filters: named.filter_map(read).collect(),
        }
    }
}

/// The filter of a collection; `None`, which is logged, if this program does not understand it: no agent is in it.
pub fn understood(name: &str, filter: &str) -> Option<Filters> {
    let read = read_filter(filter);
    read.map(|(_, filters)| filters)
        .inspect_err(|error| {
            tracing::error!(collection = name, %error, "a collection's filter is not understood");
        })
        .ok()
}

impl Collections for CollectionFilters {
    fn holding(&self, agent: &AgentFacts) -> Vec<String> {
        if self.filters.is_empty() {
            return Vec::new();
        }
        let agent = filtered_part(agent);
        let holding = self.filters.iter().filter(|(_, one)| one.hold(&agent));
        holding.map(|(name, _)| name.clone()).collect()
    }
}

/// All collections as they are stored with a policy set that asks about them: a list of names and filters, by name.
pub async fn collections_to_keep(on: &impl Handle) -> Result<String, StoreError> {
    let rows = collections::collections(on).await?;
    let named: Vec<(&str, &str)> = rows
        .iter()
        .map(|row| (row.name.as_str(), row.filter.as_str()))
        .collect();
    Ok(serde_json::to_string(&named).unwrap_or_else(|_| "[]".to_owned()))
}

/// The part of a search document that filters use; the rest is empty.
fn filtered_part(agent: &AgentFacts) -> Document {
    let named = |name: &String| SkillText {
        name: name.clone(),
        ..SkillText::default()
    };
    Document {
        skills: agent.skill_names.iter().map(named).collect(),
        facets: FacetMap::from_fn(|facet| agent.values(facet)),
        ..Document::default()
    }
}
