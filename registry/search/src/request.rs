//! Search requests: text, filters, sort order, page and facets.

use std::sync::Arc;

use a2a_registry_domain::facet::{Facet, FacetMap};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::agent_property::ExactFilter;
use crate::vectors::VectorStore;

pub const MAX_HITS: usize = 1_000;

/// Maximum number of hits whose scores are explained: the first ones of a page.
pub const MAX_EXPLAINED_HITS: usize = 10;

/// Maximum number of values in all filters of a search together.
pub const MAX_FILTER_VALUES: usize = 256;

/// Maximum number of alternative filters; see [`Filters::any_of`].
pub const MAX_ANY_OF_FILTERS: usize = 16;

/// Lifecycles of the agents that a search without a lifecycle filter finds.
pub(super) const LISTED_LIFECYCLES: [&str; 2] = ["approved", "deprecated"];

#[derive(Debug, Clone, Default)]
pub struct SearchRequest {
    /// Query in plain language. `None`, or a text without words, matches every agent.
    pub text: Option<String>,
    pub filters: Filters,
    /// Visibility labels of the caller: a search finds only agents that have one of them.
    pub visible_to: Vec<String>,
    /// The visibility labels that all members of the caller's class have in common. Scores and all other uses of word
    /// statistics count only agents with at least one of these labels, so they reveal nothing about agents that the
    /// class cannot see.
    pub class_labels: Vec<String>,
    pub sort: SortOrder,
    /// Maximum number of hits on the page, up to [`MAX_HITS`]. With 0, only the total and the facets are computed.
    pub limit: usize,
    /// Maximum size of the hits in bytes, if limited. The page ends before the hit that would exceed it, but always
    /// has at least one hit.
    pub max_bytes: Option<usize>,
    /// Position after which the page begins, taken from an earlier page of the same search.
    pub after: Option<SortPosition>,
    /// Whether quotations are words, as on an earlier page of the same search: an agent that matches them may have
    /// come since.
    pub relaxes_quotations: bool,
    /// Facets to count over all matches, or over those that fit with [`only_fitting`](Self::only_fitting).
    pub facets: Vec<Facet>,
    /// Whether only agents that fit the text are hits, and counted in facets and groups.
    pub only_fitting: bool,
    /// Whether only one agent of each duplicate group is a hit. Totals and facets count all agents.
    pub group_duplicates: bool,
    /// Whether the scores of the first [`MAX_EXPLAINED_HITS`] hits are explained.
    pub explain: bool,
    pub parts: RequestedHitParts,
    pub semantic: Option<SemanticQuery>,
    /// Agents to count that the search leaves out.
    pub left_out: Option<LeftOutAgents>,
    /// Whether this search only tests some agents: quotations stay quotations if none of them matches, and there are no
    /// hints, which would cost more than the search.
    pub is_test: bool,
}

/// Agents that a search leaves out: matches of its full text that pass its filters with `exact` in place of its own
/// exact ones, and fail another filter.
#[derive(Debug, Clone)]
pub struct LeftOutAgents {
    pub exact: Vec<ExactFilter>,
    pub failed: ExactFilter,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestedHitParts {
    pub hit: bool,
    /// Whether hits include the rendered catalog entry.
    pub catalog_entry: bool,
    pub highlights: bool,
    /// Whether explained scores include the computation as a tree, in addition to the explanation in sentences.
    pub computation: bool,
}

impl Default for RequestedHitParts {
    fn default() -> Self {
        Self {
            hit: true,
            catalog_entry: true,
            highlights: true,
            computation: true,
        }
    }
}

/// The semantic part of a query, which finds agents that match in meaning even if they use other words.
#[derive(Debug, Clone)]
pub struct SemanticQuery {
    pub vectors: Arc<VectorStore>,
    /// The query's vector, of unit length. The model that computed it also computed `vectors`.
    pub query: Arc<[f32]>,
    /// Minimum cosine similarity of a close neighbor. The twenty nearest neighbors match even with a lower similarity.
    pub cutoff: f32,
    /// Whether the search is purely semantic, so full text is neither searched nor scored.
    pub semantic_only: bool,
}

/// Filters on agents. Values of one facet are alternatives; different facets must all match; a facet without values
/// has no effect. Values are compared exactly, except for tags and providers, which ignore case; a skill also matches
/// if all words of the value occur in the names of the agent's skills.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filters {
    /// Values by facet. If no lifecycle is given, only `approved` and `deprecated` agents are found; if no liveness is
    /// given, all agents except `gone` ones are found.
    pub values: FacetMap<Vec<String>>,
    pub exact: Vec<ExactFilter>,
    /// Alternative filters, at most [`MAX_ANY_OF_FILTERS`]. If there are any, an agent must pass at least one of them.
    /// An alternative that gives no lifecycle accepts every lifecycle, and likewise for the liveness. Filters nested
    /// in an alternative are ignored.
    pub any_of: Vec<Filters>,
}

impl Filters {
    pub(super) fn used_facets(&self) -> impl Iterator<Item = (Facet, &[String])> {
        let lists = self.values.entries();
        let lists = lists.map(|(facet, values)| (facet, values.as_slice()));
        lists.filter(|(_, values)| !values.is_empty())
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum SortOrder {
    /// Best match first; without a text the same as [`SortOrder::Updated`].
    #[default]
    Relevance,
    /// By name from A to Z, ignoring case and accents.
    Name,
    /// By the last change, newest first.
    Updated,
    /// By the time when the agent was first seen, newest first.
    Newest,
}

impl SortOrder {
    pub const ALL: [Self; 4] = [Self::Relevance, Self::Name, Self::Updated, Self::Newest];

    /// The effective order for this text: without words there is no relevance, so agents are ordered by the last
    /// change.
    pub fn effective(self, text: Option<&str>) -> Self {
        let asks_text =
            || text.is_some_and(|text| super::query_parser::parse_query(text).has_text());
        match self {
            Self::Relevance if !asks_text() => Self::Updated,
            sort => sort,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Relevance => "relevance",
            Self::Name => "name",
            Self::Updated => "updated",
            Self::Newest => "newest",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SortPosition {
    /// Whether the hit is weak and comes after all others. Always false except in the order by relevance.
    pub weak: bool,
    pub value: SortValue,
    /// Rank among agents of equal relevance, the first ones lowest, by whether they answered at their endpoints.
    /// Always 0 except in the order by relevance.
    #[serde(default)]
    pub tie_rank: u8,
    /// Id of the agent. It breaks the remaining ties between equal values.
    pub id: Uuid,
}

impl SortPosition {
    /// What orders positions with equal values.
    pub(crate) const fn tie_key(&self) -> TieKey {
        (self.tie_rank, self.id)
    }
}

/// What orders agents with equal values: the rank by their endpoints, then the id.
pub(crate) type TieKey = (u8, Uuid);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum SortValue {
    /// The score, for [`SortOrder::Relevance`] with a text.
    Score(#[serde(with = "score_bits")] f32),
    /// The folded name, for [`SortOrder::Name`].
    Name(String),
    /// The time in microseconds since 1970 UTC, for [`SortOrder::Updated`] and [`SortOrder::Newest`].
    Time(i64),
}

/// Serializes a score as its bits. With a rounded decimal, the next page could repeat or skip a hit.
mod score_bits {
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(score: &f32, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u32(score.to_bits())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f32, D::Error> {
        u32::deserialize(from).map(f32::from_bits)
    }
}
