//! Text queries: tantivy queries over the weighted text field, built from parsed text.

use tantivy::query::{
    AllQuery, BooleanQuery, BoostQuery, ConstScoreQuery, DisjunctionMaxQuery, Occur, PhraseQuery,
    Query, TermQuery,
};
use tantivy::schema::IndexRecordOption;
use tantivy::{Score, Term};

use super::analysis::{
    AnalyzedQuery, MAX_QUERY_WORDS, QueryWord, analyze_query, split_query_words,
};
use super::explainable_query::ExplainableQuery;
use super::filter::any_condition_clause;
use super::ordered_intersection::OrderedIntersection;
use super::query_parser::{Disjunction, ParsedQuery, QueryPart};
use super::schema::IndexFields;

/// A query that matches any of the words.
fn any_word_query(fields: &IndexFields, words: &[QueryWord]) -> Option<Box<dyn Query>> {
    let mut queries: Vec<Box<dyn Query>> =
        words.iter().map(|word| word_query(fields, word)).collect();
    match queries.len() {
        0 => None,
        1 => queries.pop(),
        _ => Some(Box::new(BooleanQuery::union(queries))),
    }
}

/// Required and excluded parts, besides the optional words.
#[derive(Debug, Default)]
struct BooleanClauses {
    required: Vec<Box<dyn Query>>,
    excluded: Vec<Box<dyn Query>>,
}

impl BooleanClauses {
    fn into_query(self, words: Option<Box<dyn Query>>) -> Option<Box<dyn Query>> {
        if self.required.is_empty() && self.excluded.is_empty() {
            return words;
        }
        let mut parts: Vec<(Occur, Box<dyn Query>)> = Vec::new();
        // Without other operands, exclusions apply to all agents.
        if self.required.is_empty() && words.is_none() {
            parts.push((Occur::Must, Box::new(AllQuery)));
        }
        let words_occur = match self.required.is_empty() {
            true => Occur::Must,
            false => Occur::Should,
        };
        // With required parts the words are optional, and a missing word must be explained too.
        let words = words.map(|words| Box::new(ExplainableQuery(words)) as Box<dyn Query>);
        parts.extend(words.map(|words| (words_occur, words)));
        let required = combine_queries(self.required, |all| Box::new(OrderedIntersection(all)));
        parts.extend(required.map(|required| (Occur::Must, required)));
        parts.extend(self.excluded.into_iter().map(|one| (Occur::MustNot, one)));
        Some(Box::new(BooleanQuery::new(parts)))
    }
}

/// Builder of text queries from expanded words; expanded prefixes come last.
pub(super) struct TextQueryBuilder<'a> {
    pub fields: &'a IndexFields,
    pub parsed: &'a ParsedQuery,
    pub query: &'a AnalyzedQuery,
}

impl TextQueryBuilder<'_> {
    /// The query of the words with the required parts of `parsed`, which may differ from the request's; `None` if no
    /// text is requested.
    pub fn build(&self, parsed: &ParsedQuery) -> Option<Box<dyn Query>> {
        self.build_with_clauses(parsed, any_word_query(self.fields, &self.query.words))
    }

    fn build_with_clauses(
        &self,
        parsed: &ParsedQuery,
        words: Option<Box<dyn Query>>,
    ) -> Option<Box<dyn Query>> {
        let excluded = parsed.excluded.iter();
        let clauses = BooleanClauses {
            required: parsed
                .required
                .iter()
                .filter_map(|any| self.disjunction_query(any))
                .collect(),
            excluded: excluded.filter_map(|part| self.part_query(part)).collect(),
        };
        clauses.into_query(words)
    }

    /// The query of the required parts alone, without pure conditions, which are filters; `None` without such parts.
    pub fn required_query(&self) -> Option<Box<dyn Query>> {
        self.build_with_clauses(self.parsed, None)
    }

    fn disjunction_query(&self, disjunction: &Disjunction) -> Option<Box<dyn Query>> {
        let group = |parts: &Vec<QueryPart>| {
            let parts = parts
                .iter()
                .filter_map(|part| self.part_query(part))
                .collect();
            combine_queries(parts, |all| Box::new(OrderedIntersection(all)))
        };
        let any = disjunction.iter().filter_map(group).collect();
        combine_queries(any, |any| Box::new(BooleanQuery::union(any)))
    }

    /// The query of one part: a word matches in every form that counts for it, several words only in order.
    fn part_query(&self, part: &QueryPart) -> Option<Box<dyn Query>> {
        match part {
            QueryPart::Phrase(text) => phrase_query(self.fields, text, true),
            QueryPart::Words(text) => match analyze_query(text).words.as_slice() {
                [word] => {
                    let mut words = self.query.words.iter();
                    let known = words.find(|known| known.exact == word.exact);
                    Some(word_query(self.fields, known.unwrap_or(word)))
                }
                _ => phrase_query(self.fields, text, false),
            },
            QueryPart::Prefix(prefix) => {
                let prefixes = &self.parsed.prefixes;
                let place = prefixes.iter().position(|known| known == prefix)?;
                let first = self.query.words.len().checked_sub(prefixes.len())?;
                let begun = self.query.words.get(first + place)?;
                Some(word_query(self.fields, begun))
            }
            // A condition has no score: a tag does not make an agent more relevant.
            QueryPart::Condition(facet, value) => {
                let clause = any_condition_clause(self.fields, &[(*facet, value.clone())]);
                let query = ConstScoreQuery::new(clause.query(), 0.0);
                Some(Box::new(ExplainableQuery(Box::new(query))))
            }
        }
    }
}

type CombineQueries = fn(Vec<Box<dyn Query>>) -> Box<dyn Query>;

/// Combines queries; `None` if there are none.
fn combine_queries(
    mut queries: Vec<Box<dyn Query>>,
    combine: CombineQueries,
) -> Option<Box<dyn Query>> {
    match queries.len() {
        0 | 1 => queries.pop(),
        _ => Some(Box::new(ExplainableQuery(combine(queries)))),
    }
}

/// A phrase query: in exact forms if the text was quoted, otherwise in stemmed forms. `None` without words.
fn phrase_query(fields: &IndexFields, text: &str, quoted: bool) -> Option<Box<dyn Query>> {
    let mut terms: Vec<(usize, Term)> = split_query_words(text)
        .map(|piece| {
            let form = match piece.stem {
                Some(stem) if !quoted => stem,
                _ => piece.exact,
            };
            (piece.position, Term::from_field_text(fields.text, &form))
        })
        .collect();
    terms.truncate(MAX_QUERY_WORDS);
    let query: Box<dyn Query> = match terms.len() {
        0 => return None,
        1 => Box::new(TermQuery::new(terms.pop()?.1, IndexRecordOption::WithFreqs)),
        _ => Box::new(PhraseQuery::new_with_offset(terms)),
    };
    Some(Box::new(ExplainableQuery(query)))
}

/// The query of one word or any of its synonyms.
pub(super) fn word_query(fields: &IndexFields, word: &QueryWord) -> Box<dyn Query> {
    let forms = word.weighted_forms();
    let mut queries: Vec<Box<dyn Query>> = forms
        .map(|(form, weight)| form_query(fields, form, weight))
        .collect();
    if queries.len() == 1 {
        return queries.remove(0);
    }
    Box::new(ExplainableQuery(Box::new(DisjunctionMaxQuery::new(
        queries,
    ))))
}

pub(super) fn form_query(fields: &IndexFields, form: &str, weight: Score) -> Box<dyn Query> {
    let term = Term::from_field_text(fields.text, form);
    let query = TermQuery::new(term, IndexRecordOption::WithFreqs);
    match weight < 1.0 {
        true => Box::new(BoostQuery::new(Box::new(query), weight)),
        false => Box::new(query),
    }
}
