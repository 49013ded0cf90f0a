//! Search request: text, filters, sort order, page and facets.

use std::sync::Arc;

use a2a_registry_domain::facet::{Facet, FacetMap};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::property::ExactFilter;
use crate::vectors::Vectors;

/// The most words of a query that are searched for; the rest is ignored, which a hint reports.
pub const MAX_QUERY_WORDS: usize = 32;

/// The most hits of one search.
pub const MAX_LIMIT: usize = 1_000;

/// The most hits of a page whose scores are explained: the first ones.
pub const MAX_EXPLAINED: usize = 10;

/// The most values of one search over all its filters.
pub const MAX_FILTER_VALUES: usize = 256;

/// The most filters of which agents must pass one.
pub const MAX_WITHIN: usize = 16;

/// A search over the agents a caller may see.
#[derive(Debug, Clone, Default)]
pub struct SearchRequest {
    /// Text of the query, in plain language. `None`, or a text without words, matches every agent.
    pub text: Option<String>,
    /// Filters that agents must pass.
    pub filters: Filters,
    /// The caller's visibility labels; a search finds the agents that carry one of them.
    pub visible_to: Vec<String>,
    /// Visibility labels that everybody of the caller's class holds. Scores, and all other uses of word statistics,
    /// count the agents that carry one of these and no others, so they reveal nothing about agents outside the class.
    pub class: Vec<String>,
    /// Sort order of the hits.
    pub sort: Sort,
    /// The most hits to return, at most [`MAX_LIMIT`]. With 0 only total and facets are computed.
    pub limit: usize,
    /// The most bytes of the hits, if they are bounded: a page ends before the hit that would exceed them, and has at least
    /// one hit.
    pub max_bytes: Option<usize>,
    /// Position of the same search after which the page continues.
    pub after: Option<SortPosition>,
    /// Facets to count over all matches.
    pub facets: Vec<Facet>,
    /// Whether duplicates are folded: of each group of duplicates among the matches one agent is a hit. Totals and facets
    /// count agents all the same.
    pub grouped: bool,
    /// Whether the first [`MAX_EXPLAINED`] hits have an explanation of their score.
    pub explain: bool,
    /// What is read of each hit.
    pub parts: HitParts,
    /// Semantic part of the search, if requested.
    pub meaning: Option<Meaning>,
}

/// What is read of each hit, beside its id and its position: nothing costs anything that the caller does not show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HitParts {
    /// The rendered hit, and which of its skills match.
    pub hit: bool,
    /// The agent as it is rendered in catalogs.
    pub entry: bool,
    /// Excerpts with words of the query.
    pub highlights: bool,
    /// The computation of an explained score as a tree, beside its sentences.
    pub computation: bool,
}

impl Default for HitParts {
    /// Everything.
    fn default() -> Self {
        Self {
            hit: true,
            entry: true,
            highlights: true,
            computation: true,
        }
    }
}

/// Semantic part of a query, which finds agents that express the same in other words.
#[derive(Debug, Clone)]
pub struct Meaning {
    /// Vectors of all agents.
    pub vectors: Arc<Vectors>,
    /// Vector of the query, of unit length, computed by the same model.
    pub query: Arc<[f32]>,
    /// The least similarity, as a cosine, of a neighbour that is close. Of the others the nearest twenty match too.
    pub cutoff: f32,
    /// Whether the search is purely semantic, so that full text is neither searched nor scored.
    pub alone: bool,
}

/// Filters on agents. Values of one facet are alternatives, different facets must all match; one without values has no
/// effect. Values are compared exactly, but tags and providers in any case; a skill is also found by words that all occur
/// in the names of the agent's skills.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filters {
    /// Values of each facet. Without a lifecycle only `approved` and `deprecated` agents are found, and without a liveness
    /// all agents except the `gone` ones.
    pub values: FacetMap<Vec<String>>,
    /// Conditions on properties, which must all hold.
    pub exact: Vec<ExactFilter>,
    /// Filters of which agents must pass one, if there are any, at most [`MAX_WITHIN`]. Of these a filter without a
    /// lifecycle or liveness asks for none, and those within them are ignored.
    pub within: Vec<Filters>,
}

impl Filters {
    /// The facets that are filtered by, each with its values.
    pub(super) fn used(&self) -> impl Iterator<Item = (Facet, &[String])> {
        let lists = self.values.entries();
        let lists = lists.map(|(facet, values)| (facet, values.as_slice()));
        lists.filter(|(_, values)| !values.is_empty())
    }
}

/// Sort order of hits. Equal hits are ordered by id.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Sort {
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

impl Sort {
    /// All sort orders.
    pub const ALL: [Self; 4] = [Self::Relevance, Self::Name, Self::Updated, Self::Newest];

    /// The effective sort order of a search for this text: without words no relevance exists, so the last change
    /// decides.
    pub fn in_force(self, text: Option<&str>) -> Self {
        let asks_text = || text.is_some_and(|text| super::syntax::read(text).asks_text());
        match self {
            Self::Relevance if !asks_text() => Self::Updated,
            sort => sort,
        }
    }

    /// The name in requests and responses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Relevance => "relevance",
            Self::Name => "name",
            Self::Updated => "updated",
            Self::Newest => "newest",
        }
    }
}

/// Position of one hit in a sort order: whether it is weak, its sort value and its id.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SortPosition {
    /// Whether the hit is weak. In the order by relevance all weak hits come after the others; elsewhere none is weak.
    pub weak: bool,
    /// Value that the order compares first.
    pub value: SortValue,
    /// Id of the agent, which decides between equal values.
    pub id: Uuid,
}

/// Value that a sort order compares.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum SortValue {
    /// The score of [`Sort::Relevance`] with a text.
    Score(#[serde(with = "score_bits")] f32),
    /// The folded name of [`Sort::Name`].
    Name(String),
    /// The time of [`Sort::Updated`] and [`Sort::Newest`], in microseconds since 1970 UTC.
    Time(i64),
}

/// A score in a written position, as its bits: a decimal that is read as the neighbour of what was written would repeat a
/// hit on the next page, or lose one.
mod score_bits {
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(score: &f32, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u32(score.to_bits())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f32, D::Error> {
        u32::deserialize(from).map(f32::from_bits)
    }
}
