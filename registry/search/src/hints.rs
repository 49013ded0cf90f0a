//! Search hints. Without hits: the filters that hide agents, and the words that no agent uses. For every search: the
//! parts of the query that were ignored, and whether all hits are weak.

use tantivy::collector::Count;
use tantivy::query::Query;

use super::answer::{Hint, HintKind, HitRow};
use super::error::IndexError;
use super::filter::{Clause, clauses};
use super::filtered::FilteredQuery;
use super::query::{TextQuery, word_query};
use super::request::{Filters, SearchRequest};
use super::search::PreparedQuery;
use super::seen::VisibleAgents;
use super::syntax::{ParsedQuery, QueryPart};
use super::typing_errors::near;
use super::{IndexView, Inner};

/// The most words looked up one by one after a search without hits.
const MAX_WORDS: usize = 8;

/// In a hint, the name of the filters one of which must pass.
const WITHIN: &str = "collection";

impl Hint {
    fn of(kind: HintKind, text: String) -> Self {
        Self {
            kind,
            text,
            hidden: None,
            near: Vec::new(),
        }
    }
}

/// A part of a search that narrows it, and the search without that part.
struct Narrowing {
    text: String,
    filters: Filters,
    written: ParsedQuery,
}

impl Inner {
    /// Hints for a search with this many matches and this first hit. Only agents that the caller may see are counted.
    pub(super) fn hints(
        &self,
        request: &SearchRequest,
        prepared: &PreparedQuery,
        total: u64,
        first: Option<&HitRow>,
    ) -> Result<Vec<Hint>, IndexError> {
        let mut hints = what_did_not_count(prepared);
        // Weak hits come last, so if the first hit of all is weak, every hit is.
        if request.after.is_none() && first.is_some_and(|hit| hit.weak) {
            hints.push(Hint::of(HintKind::OnlyWeak, String::new()));
        }
        if total > 0 {
            return Ok(hints);
        }
        if self.matches(request, &prepared.view, None, Vec::new())? == 0 {
            hints.push(Hint::of(HintKind::Empty, String::new()));
            return Ok(hints);
        }
        hints.extend(self.unknown_words(request, prepared)?);
        hints.extend(self.hiding_filters(request, prepared)?);
        Ok(hints)
    }

    fn matches(
        &self,
        request: &SearchRequest,
        view: &IndexView,
        text: Option<Box<dyn Query>>,
        clauses: Vec<Clause>,
    ) -> Result<u64, IndexError> {
        let query = FilteredQuery::new(text, self.filter(view, clauses, &request.visible_to));
        Ok(view.searcher.search(&query, &Count)? as u64)
    }

    fn unknown_words(
        &self,
        request: &SearchRequest,
        prepared: &PreparedQuery,
    ) -> Result<Vec<Hint>, IndexError> {
        let view = &prepared.view;
        let mut hints = Vec::new();
        let everyone = clauses(&self.fields, &Filters::default())?;
        let mut seen = VisibleAgents::new(self.filter(view, everyone.clone(), &request.visible_to));
        let words = &prepared.query.words;
        let prefixes = &prepared.written.prefixes;
        // Expanded prefixes come last, and a prefix has no similar words.
        let first_prefix = words.len().saturating_sub(prefixes.len());
        for (place, word) in words.iter().enumerate().take(MAX_WORDS) {
            let alone = word_query(&self.fields, word);
            if self.matches(request, view, Some(alone), everyone.clone())? > 0 {
                continue;
            }
            let prefix = place.checked_sub(first_prefix);
            let unknown = match prefix.and_then(|place| prefixes.get(place)) {
                Some(prefix) => Hint::of(HintKind::UnknownWord, format!("{prefix}*")),
                None => Hint {
                    near: near(&view.searcher, &self.fields, word, &mut seen)?,
                    ..Hint::of(HintKind::UnknownWord, word.exact.clone())
                },
            };
            hints.push(unknown);
        }
        Ok(hints)
    }

    /// Filters that each hide agents on their own; if none does, one hint for all filters together.
    fn hiding_filters(
        &self,
        request: &SearchRequest,
        prepared: &PreparedQuery,
    ) -> Result<Vec<Hint>, IndexError> {
        let mut hints = Vec::new();
        let asked = TextQuery {
            fields: &self.fields,
            written: &prepared.written,
            query: &prepared.query,
        };
        let without = |filters: &Filters, written: &ParsedQuery| -> Result<u64, IndexError> {
            let conditions = self.conditions(filters, written)?;
            self.matches(request, &prepared.view, asked.text(written), conditions)
        };
        let narrowings = narrowings(&request.filters, &prepared.written);
        for one in &narrowings {
            let hidden = without(&one.filters, &one.written)?;
            if hidden > 0 {
                hints.push(Hint {
                    hidden: Some(hidden),
                    ..Hint::of(HintKind::Filter, one.text.clone())
                });
            }
        }
        // If leaving out one filter does not help, leaving out all of them may.
        if hints.is_empty() && narrowings.len() > 1 {
            let written = ParsedQuery {
                conditions: Vec::new(),
                excluded: Vec::new(),
                ..prepared.written.clone()
            };
            let hidden = without(&Filters::default(), &written)?;
            if hidden > 0 {
                hints.push(Hint {
                    hidden: Some(hidden),
                    ..Hint::of(HintKind::Filter, String::new())
                });
            }
        }
        Ok(hints)
    }
}

/// Parts of a query that were read differently than they look, or not in full.
fn what_did_not_count(prepared: &PreparedQuery) -> Vec<Hint> {
    let mut hints = Vec::new();
    if prepared.query.cut {
        let most = super::MAX_QUERY_WORDS.to_string();
        hints.push(Hint::of(HintKind::TooManyWords, most));
    }
    for prefix in &prepared.cut_prefixes {
        hints.push(Hint::of(HintKind::TooManyWords, format!("{prefix}*")));
    }
    if prepared.written.misread {
        hints.push(Hint::of(HintKind::Syntax, String::new()));
    }
    if let Some(said) = &prepared.written.said {
        hints.push(Hint::of(HintKind::Syntax, said.clone()));
    }
    hints
}

/// Each filter, condition and exclusion, with the search without it.
fn narrowings(filters: &Filters, written: &ParsedQuery) -> Vec<Narrowing> {
    let used = filters.used().map(|(facet, _)| facet);
    let mut all: Vec<Narrowing> = used
        .map(|facet| {
            let mut rest = filters.clone();
            rest.values[facet].clear();
            Narrowing {
                text: facet.as_str().to_owned(),
                filters: rest,
                written: written.clone(),
            }
        })
        .collect();
    if !filters.within.is_empty() {
        all.push(Narrowing {
            text: WITHIN.to_owned(),
            filters: Filters {
                within: Vec::new(),
                ..filters.clone()
            },
            written: written.clone(),
        });
    }
    let narrowing = |text: String, written: ParsedQuery| Narrowing {
        text,
        filters: filters.clone(),
        written,
    };
    for (place, any) in written.conditions.iter().enumerate() {
        let mut rest = written.clone();
        rest.conditions.remove(place);
        let any = any.iter();
        let any: Vec<String> = any
            .map(|(facet, value)| format!("{}:{}", facet.as_str(), quoted(value)))
            .collect();
        all.push(narrowing(any.join(" OR "), rest));
    }
    for (place, part) in written.excluded.iter().enumerate() {
        let mut rest = written.clone();
        rest.excluded.remove(place);
        let text = match part {
            QueryPart::Phrase(text) => format!("-\"{text}\""),
            QueryPart::Words(text) | QueryPart::Beginning(text) | QueryPart::Condition(_, text) => {
                format!("-{text}")
            }
        };
        all.push(narrowing(text, rest));
    }
    all
}

fn quoted(value: &str) -> String {
    match value.contains(char::is_whitespace) {
        true => format!("\"{value}\""),
        false => value.to_owned(),
    }
}
