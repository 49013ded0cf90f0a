//! Search response: hits, counts and hints.

use std::collections::BTreeMap;
use std::ops::Range;

use a2a_registry_domain::facet::Facet;
use uuid::Uuid;

use super::request::SortPosition;

/// The most values that a facet lists; [`FacetCounts::other_count`] sums up the rest.
pub const FACET_VALUES: usize = 50;

/// The most duplicates of a hit that are listed; [`Duplicates::count`] counts all.
pub const MAX_DUPLICATES: usize = 10;

/// The response to a [`SearchRequest`](super::SearchRequest).
#[derive(Debug, Clone, Default)]
pub struct SearchAnswer {
    /// The last event that the response reflects.
    pub applied_seq: i64,
    /// Hits of the page, in the requested order.
    pub hits: Vec<HitRow>,
    /// Whether further hits follow this page.
    pub more: bool,
    /// Exact number of matches, independent of the page.
    pub total: u64,
    /// Exact number of groups, of which each is one hit, if duplicates are folded and the
    /// page has room for hits.
    pub groups: Option<u64>,
    /// Requested facets, counted over all matches.
    pub facets: BTreeMap<Facet, FacetCounts>,
    /// Hints for an empty result, or for parts of the query that did not count.
    pub hints: Vec<Hint>,
    /// Generation of the index that was searched.
    pub generation: u64,
    /// Version of the overlay that was applied.
    pub overlay_version: u64,
}

/// One hit.
#[derive(Debug, Clone)]
pub struct HitRow {
    /// Id of the agent.
    pub id: Uuid,
    /// The rendered hit as in its [`Document`](super::Document), with the skills to show where they are rendered apart.
    pub hit: Vec<u8>,
    /// The agent as it is rendered in catalogs; empty for one that they do not list.
    pub entry: Vec<u8>,
    /// Relevance score, if there was a text; comparable only within one response, and only among hits that are equally
    /// weak.
    pub score: Option<f32>,
    /// Whether the hit fits the query badly: it has only words that say little about the query, and is not close in
    /// meaning. In the order by relevance weak hits come after all others.
    pub weak: bool,
    /// Position after which the next page continues.
    pub position: SortPosition,
    /// Excerpts with words of the query.
    pub highlights: Vec<Highlight>,
    /// Ids of the skills that contain a word of the query, the one with most distinct words first.
    pub matched_skills: Vec<String>,
    /// Explanation of the score, if requested.
    pub explain: Option<serde_json::Value>,
    /// Its duplicates among the matches, if they are folded and there are any.
    pub duplicates: Option<Duplicates>,
}

impl HitRow {
    /// The bytes of what is shown of the agent and of its texts, apart from the explanation.
    pub(super) fn bytes(&self) -> usize {
        let highlights = self.highlights.iter();
        let highlights =
            highlights.map(|one| one.text.len() + one.skill.as_ref().map_or(0, String::len));
        let skills = self.matched_skills.iter().map(String::len);
        self.hit.len() + self.entry.len() + highlights.chain(skills).sum::<usize>()
    }
}

/// Collects hits within a bound of their bytes.
pub(super) struct BoundedHits {
    pub hits: Vec<HitRow>,
    left: Option<usize>,
}

impl BoundedHits {
    /// No hits yet, of at most so many bytes if they are bounded.
    pub fn new(max_bytes: Option<usize>) -> Self {
        Self {
            hits: Vec::new(),
            left: max_bytes,
        }
    }

    /// Adds a hit; `false` where it does not fit any more. The first one always fits.
    pub fn push(&mut self, hit: HitRow) -> bool {
        if let Some(left) = &mut self.left {
            let bytes = hit.bytes();
            if bytes > *left && !self.hits.is_empty() {
                return false;
            }
            *left = left.saturating_sub(bytes);
        }
        self.hits.push(hit);
        true
    }
}

/// The agents that a hit stands for, besides itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Duplicates {
    /// Number of agents.
    pub count: u64,
    /// Ids of the first [`MAX_DUPLICATES`] of them, in the order in which they would stand for the others.
    pub agents: Vec<Uuid>,
}

/// An excerpt with words of the query. It is the card's own text, not escaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Highlight {
    /// Kind of text: `name`, `description`, `provider`, `protocol`, `skill.name`, `skill.description`, `skill.tag`,
    /// `skill.example`, or `other` for a text outside the card's model.
    pub field: &'static str,
    /// Id of the skill, if the text belongs to one.
    pub skill: Option<String>,
    /// The excerpt, cut at word boundaries.
    pub text: String,
    /// Byte ranges of the words within [`text`](Self::text), ascending and disjoint, each on character boundaries.
    pub ranges: Vec<Range<usize>>,
    /// Whether text before the excerpt was cut off.
    pub cut_before: bool,
    /// Whether text after the excerpt was cut off.
    pub cut_after: bool,
}

/// The counts of one facet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FacetCounts {
    /// At most [`FACET_VALUES`] values, the most frequent first, equally frequent ones by value.
    pub values: Vec<(String, u64)>,
    /// The sum of the counts of all other values.
    pub other_count: u64,
}

/// A hint for a better search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    /// Kind of the hint.
    pub kind: HintKind,
    /// Subject of the hint: a filter's name, empty for all filters together; or a word, a prefix (with `*`) or a
    /// quotation.
    pub text: String,
    /// Number of agents found without it, if known.
    pub hidden: Option<u64>,
    /// Similarly spelled words of agents, the most used first.
    pub near: Vec<String>,
}

/// The kinds of [`Hint`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HintKind {
    /// Without this filter there would be hits.
    Filter,
    /// No visible agent contains this word, or any word with this prefix.
    UnknownWord,
    /// The query had more words than are searched for, or more words have one of its prefixes than count.
    TooManyWords,
    /// A part of the query was not valid syntax and was searched as plain words.
    Syntax,
    /// The caller may see no agent at all.
    Empty,
    /// Every match is weak.
    OnlyWeak,
}

impl HintKind {
    /// The name in responses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Filter => "filter",
            Self::UnknownWord => "unknown_word",
            Self::TooManyWords => "too_many_words",
            Self::Syntax => "syntax",
            Self::Empty => "empty",
            Self::OnlyWeak => "only_weak",
        }
    }
}

/// One completion of a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggestion {
    /// The whole name, skill or tag, as written in a card.
    pub text: String,
    /// Kind of the completed text.
    pub kind: SuggestionKind,
    /// Number of visible, listed agents that have it.
    pub count: u64,
}

/// Kind of a [`Suggestion`].
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
    /// The name in responses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Skill => "skill",
            Self::Tag => "tag",
        }
    }
}
