//! What a search gives: hits, counts and hints.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use uuid::Uuid;

use super::frozen::FrozenOrder;
use super::request::{FacetName, SortPosition};

/// The most values a facet lists; the rest is in [`FacetCounts::other_count`].
pub const FACET_VALUES: usize = 50;

/// The answer to a [`SearchRequest`](super::SearchRequest).
#[derive(Debug, Clone, Default)]
pub struct SearchAnswer {
    /// The last event that the answer reflects.
    pub applied_seq: i64,
    /// Hits of the page, in the requested order.
    pub hits: Vec<HitRow>,
    /// Whether further hits follow this page.
    pub more: bool,
    /// How many agents match, exactly, wherever the page begins.
    pub total: u64,
    /// Requested facets, counted over all matches.
    pub facets: BTreeMap<FacetName, FacetCounts>,
    /// What may help when the answer is empty or the question was cut.
    pub hints: Vec<Hint>,
    /// The order of the pages that follow, where it was to be held and there are any.
    pub frozen: Option<Arc<FrozenOrder>>,
    /// The generation that was searched.
    pub generation: u64,
    /// The version of the overlay that was applied.
    pub overlay_version: u64,
}

/// One agent found.
#[derive(Debug, Clone)]
pub struct HitRow {
    /// The agent.
    pub id: Uuid,
    /// The rendered hit, byte for byte as it was given to the index.
    pub hit: Vec<u8>,
    /// How well it matches, when there was a text; comparable only within one answer.
    pub score: Option<f32>,
    /// Where to continue after this hit.
    pub position: SortPosition,
    /// Where the words of the query were found.
    pub highlights: Vec<Highlight>,
    /// The ids of the skills that hold a word of the query, the one with most different words first.
    pub matched_skills: Vec<String>,
    /// Explanation of the score, if requested.
    pub explain: Option<serde_json::Value>,
}

/// An excerpt with words of the query. It is the card's own text, not escaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Highlight {
    /// Which text it is: `name`, `description`, `provider`, `skill.name`, `skill.description`, `skill.tag` or
    /// `skill.example`.
    pub field: &'static str,
    /// The skill's id where the text belongs to one.
    pub skill: Option<String>,
    /// The piece, cut at word borders.
    pub text: String,
    /// Byte ranges within [`text`](Self::text), ascending and apart, each on character borders.
    pub ranges: Vec<Range<usize>>,
    /// Whether something was cut off before the piece.
    pub cut_before: bool,
    /// Whether something was cut off after the piece.
    pub cut_after: bool,
}

/// The counts of one facet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FacetCounts {
    /// At most [`FACET_VALUES`] values, the most frequent first, equal ones by value.
    pub values: Vec<(String, u64)>,
    /// The sum of the counts of all other values.
    pub other_count: u64,
}

/// A hint for a better search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    /// What kind of hint it is.
    pub kind: HintKind,
    /// The filter's name, nothing for all filters together; or the word, the beginning (with `*`) or the quotation
    /// it is about.
    pub text: String,
    /// How many agents would be found without it, where that is known.
    pub hidden: Option<u64>,
    /// Words of agents that are written nearly so, the most used ones.
    pub near: Vec<String>,
}

/// The kinds of [`Hint`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HintKind {
    /// Without this filter there would be hits.
    Filter,
    /// No agent at all holds this word, or any word that begins so.
    UnknownWord,
    /// The query had more words than are searched for, or there are more words with one of its beginnings.
    TooManyWords,
    /// A part of the query was not valid syntax and was searched as plain words.
    Syntax,
    /// The caller may see no agent at all.
    Empty,
}

impl HintKind {
    /// The name in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Filter => "filter",
            Self::UnknownWord => "unknown_word",
            Self::TooManyWords => "too_many_words",
            Self::Syntax => "syntax",
            Self::Empty => "empty",
        }
    }
}

/// One completion of a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggestion {
    /// The whole name, skill or tag, as it is written in a card.
    pub text: String,
    /// What it is.
    pub kind: SuggestionKind,
    /// How many visible, listed agents have it.
    pub count: u64,
}

/// What a [`Suggestion`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SuggestionKind {
    /// An agent's name.
    Name,
    /// A skill's name.
    Skill,
    /// A tag.
    Tag,
}

impl SuggestionKind {
    /// The name in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Skill => "skill",
            Self::Tag => "tag",
        }
    }
}
