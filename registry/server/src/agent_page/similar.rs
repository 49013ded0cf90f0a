//! The agents that are similar to the one of the page, and its duplicates.

use a2a_registry_api::{Hit, Similar};

use crate::pages::text;
use crate::pages::text::{LINE, TEASER};
use crate::pages::trust::{Badge, trust_badge};

/// The most duplicates that are linked.
const LINKED: usize = 5;

/// Similar agents and duplicates; shown if there is any.
pub(crate) struct SimilarView {
    pub agents: Vec<SimilarAgent>,
    /// Whether they are similar in meaning, and not in words.
    pub by_meaning: bool,
    /// Number of duplicates.
    pub duplicates: u64,
    /// Pages of the first of them.
    pub linked: Vec<String>,
}

/// One similar agent.
pub(crate) struct SimilarAgent {
    pub link: String,
    pub name: String,
    pub domain: String,
    pub description: String,
    pub trust: Badge,
}

impl SimilarView {
    /// The view of similar agents; `None` if there is nothing to show.
    pub fn new(similar: &Similar) -> Option<Self> {
        let duplicates = similar.duplicates.as_ref();
        let linked = duplicates.map(|one| one.agents.as_slice());
        let view = Self {
            agents: similar.agents.iter().map(SimilarAgent::new).collect(),
            by_meaning: similar.mode == "semantic",
            duplicates: duplicates.map_or(0, |one| one.count),
            linked: linked
                .unwrap_or_default()
                .iter()
                .take(LINKED)
                .map(|id| format!("/agents/{id}/"))
                .collect(),
        };
        (!view.agents.is_empty() || view.duplicates > 0).then_some(view)
    }
}

impl SimilarAgent {
    fn new(hit: &Hit) -> Self {
        let summary = &hit.summary;
        let description = summary.description.as_deref().unwrap_or_default();
        Self {
            link: format!("/agents/{}/", summary.id),
            name: text::line(&summary.name, LINE),
            domain: text::line(&summary.domain, LINE),
            description: text::line(description, TEASER),
            trust: trust_badge(&summary.trust),
        }
    }
}
