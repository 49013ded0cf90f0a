//! Search responses: hits, counts and hints.

use std::collections::BTreeMap;
use std::ops::Range;

use a2a_registry_domain::facet::Facet;
use uuid::Uuid;

use super::request::SortPosition;
use super::suggestion_kind::SuggestionKind;

/// Maximum number of values listed for a facet; [`FacetCounts::other_count`] sums up the rest.
pub const MAX_FACET_VALUES: usize = 50;

/// Maximum number of duplicates listed for a hit; [`DuplicateAgents::count`] counts all.
pub const MAX_DUPLICATES: usize = 10;

#[derive(Debug, Clone, Default)]
pub struct IndexSearchResponse {
    /// The last event that the response reflects.
    pub applied_seq: i64,
    pub hits: Vec<HitRow>,
    pub has_more: bool,
    /// Number of all matches, independent of the page.
    pub total: u64,
    /// Number of those that fit the text, and are not weak as hits; all without a text.
    pub total_fitting: u64,
    /// The number of groups, if duplicates are grouped and the page has hits; each group is one hit.
    pub groups: Option<u64>,
    /// Number of the agents that the request counts as left out; 0 if it counts none.
    pub left_out: u64,
    /// Facet counts over all matches, or over those that fit if only they were requested.
    pub facets: BTreeMap<Facet, FacetCounts>,
    /// Hints about an empty result or ignored parts of the query.
    pub hints: Vec<Hint>,
    /// Whether quotations were searched as words, because nothing matched them.
    pub has_relaxed_quotations: bool,
    pub generation: u64,
    pub overlay_version: u64,
}

#[derive(Debug, Clone)]
pub struct HitRow {
    pub id: Uuid,
    /// The hit as rendered in the [`AgentDocument`](super::AgentDocument); if skills are rendered separately, the
    /// skills to show are added.
    pub hit: Vec<u8>,
    /// The entry rendered for catalogs; empty if they do not list the agent.
    pub catalog_entry: Vec<u8>,
    /// Relevance score; `None` if the query has no text. Comparable only within one response, and only among hits with
    /// the same `weak`.
    pub score: Option<f32>,
    /// Whether the agent does not fit the query: it has too few of its words, and is not close to it in meaning. In the
    /// order by relevance, weak hits come after all others.
    pub weak: bool,
    /// Position after which the next page continues.
    pub position: SortPosition,
    pub highlights: Vec<Highlight>,
    /// Skills that contain a word of the query, those with the most distinct query words first.
    pub matched_skills: Vec<String>,
    pub explain: Option<serde_json::Value>,
    /// The hit's duplicates among the matches, if duplicates are grouped and there are any.
    pub duplicates: Option<DuplicateAgents>,
}

impl HitRow {
    pub(super) fn byte_len(&self) -> usize {
        let highlights = self.highlights.iter();
        let highlights =
            highlights.map(|one| one.text.len() + one.skill.as_ref().map_or(0, String::len));
        let skills = self.matched_skills.iter().map(String::len);
        self.hit.len() + self.catalog_entry.len() + highlights.chain(skills).sum::<usize>()
    }
}

pub(super) struct BoundedHits {
    pub hits: Vec<HitRow>,
    bytes_left: Option<usize>,
}

impl BoundedHits {
    /// An empty collection, unbounded if `max_bytes` is `None`.
    pub fn new(max_bytes: Option<usize>) -> Self {
        Self {
            hits: Vec::new(),
            bytes_left: max_bytes,
        }
    }

    /// Adds a hit; `false` if it does not fit. The first one always fits.
    pub fn push(&mut self, hit: HitRow) -> bool {
        if let Some(left) = &mut self.bytes_left {
            let bytes = hit.byte_len();
            if bytes > *left && !self.hits.is_empty() {
                return false;
            }
            *left = left.saturating_sub(bytes);
        }
        self.hits.push(hit);
        true
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DuplicateAgents {
    pub count: u64,
    /// The first [`MAX_DUPLICATES`] of them, in the order of preference.
    pub agents: Vec<Uuid>,
}

/// An excerpt of the card with words of the query, not escaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Highlight {
    /// Kind of text: `name`, `description`, `provider`, `protocol`, `skill.name`, `skill.description`, `skill.tag`,
    /// `skill.example`, or `other` for a text outside the card's model.
    pub field: &'static str,
    pub skill: Option<String>,
    /// The excerpt, cut at word boundaries.
    pub text: String,
    /// Byte ranges of the words in [`text`](Self::text), ascending, disjoint, and on character boundaries.
    pub ranges: Vec<Range<usize>>,
    pub cut_before: bool,
    pub cut_after: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FacetCounts {
    /// At most [`MAX_FACET_VALUES`] values, most frequent first, equally frequent ones by value.
    pub values: Vec<(String, u64)>,
    /// Sum of the counts of all other values.
    pub other_count: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    pub kind: HintKind,
    /// The subject of the hint: a filter (empty for all filters), a word, a prefix (with `*`) or a quoted phrase.
    pub text: String,
    /// The number of agents found without this part, if known.
    pub matches_without: Option<u64>,
    /// Similarly spelled words in agents, most used first.
    pub similar_words: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HintKind {
    /// Without this filter there would be hits.
    Filter,
    /// No visible agent contains this word, or a word with this prefix.
    UnknownWord,
    /// The query has too many words, or one of its prefixes matches more words than are searched.
    TooManyWords,
    /// A part of the query was not valid syntax and was searched as plain words.
    Syntax,
    /// No agent is visible to the caller.
    Empty,
    /// There are matches, but none fits.
    OnlyWeak,
    /// This word, which hardly anybody can find, may be misspelled; the similar word was searched too.
    Corrected,
    /// No match contains the quoted texts, so their words were searched like all others.
    Quotation,
    /// The query contains nothing to search for.
    NoWords,
    /// The model does not know the language of the query, so the search is full text only.
    UnknownLanguage,
}

impl HintKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Filter => "filter",
            Self::UnknownWord => "unknown_word",
            Self::TooManyWords => "too_many_words",
            Self::Syntax => "syntax",
            Self::Empty => "empty",
            Self::OnlyWeak => "only_weak",
            Self::Corrected => "corrected",
            Self::Quotation => "quotation",
            Self::NoWords => "no_words",
            Self::UnknownLanguage => "unknown_language",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggestion {
    /// The whole name, skill or tag, as the card spells it.
    pub text: String,
    pub kind: SuggestionKind,
    /// Number of visible, listed agents with this text.
    pub count: u64,
}
