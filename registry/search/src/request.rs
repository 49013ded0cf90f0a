//! Search request: text, filters, sort order, page and facets.

use std::sync::Arc;

use a2a_registry_domain::facet::{Facet, FacetMap};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::agent_property::ExactFilter;
use crate::vectors::VectorStore;

/// The most words of a query that are searched for; further ones are ignored, which a hint reports.
pub const MAX_QUERY_WORDS: usize = 32;

pub const MAX_HITS: usize = 1_000;

/// Only the first hits of a page are explained.
pub const MAX_EXPLAINED_HITS: usize = 10;

/// The most values of all filters of a search together.
pub const MAX_FILTER_VALUES: usize = 256;

/// The most filters one of which agents must pass.
pub const MAX_ANY_OF_FILTERS: usize = 16;

#[derive(Debug, Clone, Default)]
pub struct SearchRequest {
    /// Plain language. `None`, or a text without words, matches every agent.
    pub text: Option<String>,
    pub filters: Filters,
    /// A search finds the agents that carry one of these visibility labels of the caller.
    pub visible_to: Vec<String>,
    /// The visibility labels that everybody in the caller's class holds. Scores, and all other uses of word statistics,
    /// count only agents that carry one of these, so they reveal nothing about agents outside the class.
    pub class_labels: Vec<String>,
    pub sort: SortOrder,
    /// At most [`MAX_LIMIT`]. With 0 only total and facets are computed.
    pub limit: usize,
    /// The most bytes of the hits, if bounded: a page ends before the hit that would exceed them, after at least one.
    pub max_bytes: Option<usize>,
    /// Position in the same search after which the page continues.
    pub after: Option<SortPosition>,
    /// Counted over all matches.
    pub facets: Vec<Facet>,
    /// Whether of each group of duplicates only one agent is a hit. Totals and facets count all agents.
    pub group_duplicates: bool,
    /// Whether the scores of the first [`MAX_EXPLAINED`] hits are explained.
    pub explain: bool,
    pub parts: HitParts,
    pub semantic: Option<SemanticQuery>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HitParts {
    pub hit: bool,
    /// The agent as rendered for catalogs.
    pub catalog_entry: bool,
    pub highlights: bool,
    /// The computation of an explained score as a tree, beside its sentences.
    pub computation: bool,
}

impl Default for HitParts {
    fn default() -> Self {
        Self {
            hit: true,
            catalog_entry: true,
            highlights: true,
            computation: true,
        }
    }
}

/// The semantic part of a query, which finds agents that express the same in other words.
#[derive(Debug, Clone)]
pub struct SemanticQuery {
    pub vectors: Arc<VectorStore>,
    /// Of unit length, computed by the same model.
    pub query: Arc<[f32]>,
    /// The least cosine of a close neighbor. Of the others the nearest twenty match too.
    pub cutoff: f32,
    /// Whether the search is purely semantic, so that full text is neither searched nor scored.
    pub semantic_only: bool,
}

/// Filters on agents. Values of one facet are alternatives, different facets must all match; one without values has no
/// effect. Values are compared exactly, but tags and providers ignoring case; a skill is also found by words that all
/// occur in the names of the agent's skills.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filters {
    /// Without a lifecycle only `approved` and `deprecated` agents are found; without a liveness all but `gone` ones.
    pub values: FacetMap<Vec<String>>,
    pub exact: Vec<ExactFilter>,
    /// Filters one of which agents must pass, if there are any; at most [`MAX_WITHIN`]. Without a lifecycle or liveness
    /// such a filter asks for none, and filters within it are ignored.
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
    /// Best match first; without a text the same as [`Sort::Updated`].
    #[default]
    Relevance,
    /// By name, ignoring case and accents, A first.
    Name,
    /// By the last change, newest first.
    Updated,
    /// By the time of being first seen, newest first.
    Newest,
}

impl SortOrder {
    pub const ALL: [Self; 4] = [Self::Relevance, Self::Name, Self::Updated, Self::Newest];

    /// The effective order for this text: without words there is no relevance, so the last change decides.
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
    /// Only in the order by relevance, where all weak hits come after the others.
    pub weak: bool,
    pub value: SortValue,
    /// Decides between equal values.
    pub id: Uuid,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum SortValue {
    /// For [`Sort::Relevance`] with a text.
    Score(#[serde(with = "score_bits")] f32),
    /// The folded name, for [`Sort::Name`].
    Name(String),
    /// For [`Sort::Updated`] and [`Sort::Newest`]; microseconds since 1970 UTC.
    Time(i64),
}

/// Writes a score as its bits: a decimal that is read back with an error would repeat or skip a hit on the next page.
mod score_bits {
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(score: &f32, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u32(score.to_bits())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f32, D::Error> {
        u32::deserialize(from).map(f32::from_bits)
    }
}
