//! Search hints. Without hits: the filters that hide agents, and the words that no agent uses. For every search: the
//! ignored and the corrected parts of the query, and whether no match fits.

use tantivy::Term;
use tantivy::collector::Count;
use tantivy::query::Query;

use super::error::IndexError;
use super::filter::{FilterClause, build_filter_clauses};
use super::filtered_query::FilteredQuery;
use super::prepared_query::PreparedQuery;
use super::query_parser::{ParsedQuery, QueryPart};
use super::request::{Filters, SearchRequest};
use super::response::{Hint, HintKind};
use super::text_query::{TextQueryBuilder, word_query};
use super::typing_errors::similar_words;
use super::visible_agents::{CountTermDocs as _, LazyVisibleAgents};
use super::{IndexInner, IndexView};

/// Maximum number of words looked up one by one after a search without hits.
const MAX_CHECKED_WORDS: usize = 8;

/// Name used in a hint for the alternative filters.
const COLLECTION_HINT: &str = "collection";

impl Hint {
    pub fn new(kind: HintKind, text: String) -> Self {
        Self {
            kind,
            text,
            matches_without: None,
            similar_words: Vec::new(),
        }
    }
}

/// A constraint of a search, and the search without it.
struct RelaxedSearch {
    text: String,
    filters: Filters,
    parsed: ParsedQuery,
}

impl IndexInner {
    /// Hints for a search with this many matches, and as many that fit. Only agents that the caller may see are counted.
    pub(super) fn build_hints(
        &self,
        request: &SearchRequest,
        prepared: &PreparedQuery,
        total: u64,
        total_fitting: u64,
    ) -> Result<Vec<Hint>, IndexError> {
        if request.is_test {
            return Ok(Vec::new());
        }
        let mut hints = ignored_part_hints(prepared);
        hints.extend(self.correction_hints(request, prepared)?);
        let has_query = request
            .text
            .as_deref()
            .is_some_and(|text| !text.trim().is_empty());
        if has_query && prepared.text.is_none() && prepared.parsed.conditions.is_empty() {
            hints.push(Hint::new(HintKind::NoWords, String::new()));
        }
        if request.after.is_none() && total > 0 && total_fitting == 0 {
            hints.push(Hint::new(HintKind::OnlyWeak, String::new()));
        }
        if total > 0 {
            return Ok(hints);
        }
        if self.count_matches(request, &prepared.view, None, Vec::new())? == 0 {
            hints.push(Hint::new(HintKind::Empty, String::new()));
            return Ok(hints);
        }
        hints.extend(self.unknown_word_hints(request, prepared)?);
        hints.extend(self.filter_hints(request, prepared)?);
        Ok(hints)
    }

    /// Hints for corrected words. The statistics in which a correction was found still count the agents that were
    /// hidden since the last commit, so a correction is only named if an agent that the caller may see contains it.
    fn correction_hints(
        &self,
        request: &SearchRequest,
        prepared: &PreparedQuery,
    ) -> Result<Vec<Hint>, IndexError> {
        let view = &prepared.view;
        let mut visible = self.visible_agents(view, &request.visible_to)?;
        let mut hints = Vec::new();
        for word in &prepared.query.words {
            let Some(correction) = &word.correction else {
                continue;
            };
            let agents = visible.get_or_compute(&view.searcher)?;
            let term = Term::from_field_text(self.fields.text, correction);
            if agents.count_term_docs(&term, 1)? > 0 {
                hints.push(Hint {
                    similar_words: vec![correction.clone()],
                    ..Hint::new(HintKind::Corrected, word.exact.clone())
                });
            }
        }
        Ok(hints)
    }

    fn count_matches(
        &self,
        request: &SearchRequest,
        view: &IndexView,
        text: Option<Box<dyn Query>>,
        clauses: Vec<FilterClause>,
    ) -> Result<u64, IndexError> {
        let query = FilteredQuery::new(
            text,
            self.document_filter(view, clauses, &request.visible_to),
        );
        Ok(view.searcher.search(&query, &Count)? as u64)
    }

    fn unknown_word_hints(
        &self,
        request: &SearchRequest,
        prepared: &PreparedQuery,
    ) -> Result<Vec<Hint>, IndexError> {
        let view = &prepared.view;
        let mut hints = Vec::new();
        let default_clauses = build_filter_clauses(&self.fields, &Filters::default())?;
        let mut visible = LazyVisibleAgents::new(self.document_filter(
            view,
            default_clauses.clone(),
            &request.visible_to,
        ));
        let words = &prepared.query.words;
        let prefixes = &prepared.parsed.prefixes;
        // Expanded prefixes come last, and a prefix has no similar words.
        let first_prefix = words.len().saturating_sub(prefixes.len());
        for (index, word) in words.iter().enumerate().take(MAX_CHECKED_WORDS) {
            let alone = word_query(&self.fields, word);
            if self.count_matches(request, view, Some(alone), default_clauses.clone())? > 0 {
                continue;
            }
            let prefix = index.checked_sub(first_prefix);
            let unknown = match prefix.and_then(|place| prefixes.get(place)) {
                Some(prefix) => Hint::new(HintKind::UnknownWord, format!("{prefix}*")),
                None => Hint {
                    similar_words: similar_words(&view.searcher, &self.fields, word, &mut visible)?,
                    ..Hint::new(HintKind::UnknownWord, word.exact.clone())
                },
            };
            hints.push(unknown);
        }
        Ok(hints)
    }

    /// Hints for filters that each hide agents on their own; if none does, one hint for all filters together.
    fn filter_hints(
        &self,
        request: &SearchRequest,
        prepared: &PreparedQuery,
    ) -> Result<Vec<Hint>, IndexError> {
        let mut hints = Vec::new();
        let text_builder = TextQueryBuilder {
            fields: &self.fields,
            parsed: &prepared.parsed,
            query: &prepared.query,
        };
        let without = |filters: &Filters, parsed: &ParsedQuery| -> Result<u64, IndexError> {
            let conditions = self.filter_and_query_clauses(filters, parsed)?;
            self.count_matches(
                request,
                &prepared.view,
                text_builder.build(parsed),
                conditions,
            )
        };
        let constraints = list_relaxed_searches(&request.filters, &prepared.parsed);
        for constraint in &constraints {
            let hidden = without(&constraint.filters, &constraint.parsed)?;
            if hidden > 0 {
                hints.push(Hint {
                    matches_without: Some(hidden),
                    ..Hint::new(HintKind::Filter, constraint.text.clone())
                });
            }
        }
        // If removing one filter does not help, removing all of them may.
        if hints.is_empty() && constraints.len() > 1 {
            let parsed = ParsedQuery {
                conditions: Vec::new(),
                excluded: Vec::new(),
                ..prepared.parsed.clone()
            };
            let hidden = without(&Filters::default(), &parsed)?;
            if hidden > 0 {
                hints.push(Hint {
                    matches_without: Some(hidden),
                    ..Hint::new(HintKind::Filter, String::new())
                });
            }
        }
        Ok(hints)
    }
}

/// Hints for parts of a query that were interpreted differently than written, or not in full.
fn ignored_part_hints(prepared: &PreparedQuery) -> Vec<Hint> {
    let mut hints = Vec::new();
    if prepared.query.truncated {
        let most = super::MAX_QUERY_WORDS.to_string();
        hints.push(Hint::new(HintKind::TooManyWords, most));
    }
    for prefix in &prepared.cut_prefixes {
        hints.push(Hint::new(HintKind::TooManyWords, format!("{prefix}*")));
    }
    if prepared.parsed.has_invalid_syntax {
        hints.push(Hint::new(HintKind::Syntax, String::new()));
    }
    if let Some(quotation) = &prepared.parsed.ignored_quotation {
        hints.push(Hint::new(HintKind::Syntax, quotation.clone()));
    }
    if prepared.parsed.has_relaxed_quotations {
        hints.push(Hint::new(HintKind::Quotation, String::new()));
    }
    hints
}

/// The constraints of a search: each filter, condition and exclusion, with the search without it.
fn list_relaxed_searches(filters: &Filters, parsed: &ParsedQuery) -> Vec<RelaxedSearch> {
    let used = filters.used_facets().map(|(facet, _)| facet);
    let mut constraints: Vec<RelaxedSearch> = used
        .map(|facet| {
            let mut rest = filters.clone();
            rest.values[facet].clear();
            RelaxedSearch {
                text: facet.as_str().to_owned(),
                filters: rest,
                parsed: parsed.clone(),
            }
        })
        .collect();
    if !filters.any_of.is_empty() {
        constraints.push(RelaxedSearch {
            text: COLLECTION_HINT.to_owned(),
            filters: Filters {
                any_of: Vec::new(),
                ..filters.clone()
            },
            parsed: parsed.clone(),
        });
    }
    let narrowing = |text: String, parsed: ParsedQuery| RelaxedSearch {
        text,
        filters: filters.clone(),
        parsed,
    };
    for (index, alternatives) in parsed.conditions.iter().enumerate() {
        let mut rest = parsed.clone();
        rest.conditions.remove(index);
        let any = alternatives.iter();
        let any: Vec<String> = any
            .map(|(facet, value)| format!("{}:{}", facet.as_str(), quote_if_spaced(value)))
            .collect();
        constraints.push(narrowing(any.join(" OR "), rest));
    }
    for (place, part) in parsed.excluded.iter().enumerate() {
        let mut rest = parsed.clone();
        rest.excluded.remove(place);
        let text = match part {
            QueryPart::Phrase(text) => format!("-\"{text}\""),
            QueryPart::Words(text) | QueryPart::Prefix(text) | QueryPart::Condition(_, text) => {
                format!("-{text}")
            }
        };
        constraints.push(narrowing(text, rest));
    }
    constraints
}

fn quote_if_spaced(value: &str) -> String {
    match value.contains(char::is_whitespace) {
        true => format!("\"{value}\""),
        false => value.to_owned(),
    }
}
