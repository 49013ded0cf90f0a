//! Builds tantivy queries from plain text, over the weighted text field.

use tantivy::query::{
    AllQuery, BooleanQuery, BoostQuery, ConstScoreQuery, DisjunctionMaxQuery, Occur, PhraseQuery,
    Query, TermQuery,
};
use tantivy::schema::IndexRecordOption;
use tantivy::{Score, Term};

use super::analysis::{QueryText, QueryWord, asked_pieces, query_text};
use super::demands::AllOf;
use super::explained::Explained;
use super::filter::any_condition;
use super::request::MAX_QUERY_WORDS;
use super::schema::Fields;
use super::syntax::{AnyOf, ParsedQuery, QueryPart};

/// Any of the words may match.
fn text_query(fields: &Fields, words: &[QueryWord]) -> Option<Box<dyn Query>> {
    let mut queries: Vec<Box<dyn Query>> =
        words.iter().map(|word| word_query(fields, word)).collect();
    match queries.len() {
        0 => None,
        1 => queries.pop(),
        _ => Some(Box::new(BooleanQuery::union(queries))),
    }
}

/// What matches must or must not satisfy, besides the optional words.
#[derive(Debug, Default)]
struct Demands {
    required: Vec<Box<dyn Query>>,
    excluded: Vec<Box<dyn Query>>,
}

impl Demands {
    fn on(self, words: Option<Box<dyn Query>>) -> Option<Box<dyn Query>> {
        if self.required.is_empty() && self.excluded.is_empty() {
            return words;
        }
        let mut parts: Vec<(Occur, Box<dyn Query>)> = Vec::new();
        // Exclusions remove matches; without other operands they remove them from all agents.
        if self.required.is_empty() && words.is_none() {
            parts.push((Occur::Must, Box::new(AllQuery)));
        }
        let words_alone = match self.required.is_empty() {
            true => Occur::Must,
            false => Occur::Should,
        };
        // With demands the words are optional, and a missing one must be explained too.
        let words = words.map(|words| Box::new(Explained(words)) as Box<dyn Query>);
        parts.extend(words.map(|words| (words_alone, words)));
        let required = several(self.required, |all| Box::new(AllOf(all)));
        parts.extend(required.map(|required| (Occur::Must, required)));
        parts.extend(self.excluded.into_iter().map(|one| (Occur::MustNot, one)));
        Some(Box::new(BooleanQuery::new(parts)))
    }
}

/// A query with its expanded words; expanded prefixes come last.
pub(super) struct TextQuery<'a> {
    pub fields: &'a Fields,
    pub written: &'a ParsedQuery,
    pub query: &'a QueryText,
}

impl TextQuery<'_> {
    /// The words under the demands of `written`, which may differ from the request's; `None` if no text is requested.
    pub fn text(&self, written: &ParsedQuery) -> Option<Box<dyn Query>> {
        self.under_demands(written, text_query(self.fields, &self.query.words))
    }

    fn under_demands(
        &self,
        written: &ParsedQuery,
        words: Option<Box<dyn Query>>,
    ) -> Option<Box<dyn Query>> {
        let excluded = written.excluded.iter();
        let demands = Demands {
            required: written
                .demands
                .iter()
                .filter_map(|any| self.demand(any))
                .collect(),
            excluded: excluded.filter_map(|part| self.part(part)).collect(),
        };
        demands.on(words)
    }

    /// The demands alone, without pure conditions, which are filters; `None` without demands.
    pub fn demands(&self) -> Option<Box<dyn Query>> {
        self.under_demands(self.written, None)
    }

    fn demand(&self, any: &AnyOf) -> Option<Box<dyn Query>> {
        let group = |parts: &Vec<QueryPart>| {
            let parts = parts.iter().filter_map(|part| self.part(part)).collect();
            several(parts, |all| Box::new(AllOf(all)))
        };
        let any = any.iter().filter_map(group).collect();
        several(any, |any| Box::new(BooleanQuery::union(any)))
    }

    /// A word matches in every form that counts for it in the query, several words only in their order.
    fn part(&self, part: &QueryPart) -> Option<Box<dyn Query>> {
        match part {
            QueryPart::Phrase(text) => phrase_query(self.fields, text, true),
            QueryPart::Words(text) => match query_text(text).words.as_slice() {
                [word] => {
                    let mut words = self.query.words.iter();
                    let known = words.find(|known| known.exact == word.exact);
                    Some(word_query(self.fields, known.unwrap_or(word)))
                }
                _ => phrase_query(self.fields, text, false),
            },
            QueryPart::Beginning(prefix) => {
                let prefixes = &self.written.prefixes;
                let place = prefixes.iter().position(|known| known == prefix)?;
                let first = self.query.words.len().checked_sub(prefixes.len())?;
                let begun = self.query.words.get(first + place)?;
                Some(word_query(self.fields, begun))
            }
            // A tag does not make an agent more relevant, so a condition has no score.
            QueryPart::Condition(facet, value) => {
                let clause = any_condition(self.fields, &[(*facet, value.clone())]);
                let query = ConstScoreQuery::new(clause.query(), 0.0);
                Some(Box::new(Explained(Box::new(query))))
            }
        }
    }
}

type Combine = fn(Vec<Box<dyn Query>>) -> Box<dyn Query>;

/// The only query, or all of them combined; `None` without any.
fn several(mut queries: Vec<Box<dyn Query>>, together: Combine) -> Option<Box<dyn Query>> {
    match queries.len() {
        0 | 1 => queries.pop(),
        _ => Some(Box::new(Explained(together(queries)))),
    }
}

/// Phrase query: in exact forms if the text was quoted, otherwise in stemmed ones. `None` without words.
fn phrase_query(fields: &Fields, text: &str, quoted: bool) -> Option<Box<dyn Query>> {
    let mut terms: Vec<(usize, Term)> = asked_pieces(text)
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
    Some(Box::new(Explained(query)))
}

/// One word, or any of its synonyms.
pub(super) fn word_query(fields: &Fields, word: &QueryWord) -> Box<dyn Query> {
    let forms = word.weighed_forms();
    let mut any: Vec<Box<dyn Query>> = forms
        .map(|(form, weight)| form_query(fields, form, weight))
        .collect();
    if any.len() == 1 {
        return any.remove(0);
    }
    Box::new(Explained(Box::new(DisjunctionMaxQuery::new(any))))
}

pub(super) fn form_query(fields: &Fields, form: &str, weight: Score) -> Box<dyn Query> {
    let term = Term::from_field_text(fields.text, form);
    let query = TermQuery::new(term, IndexRecordOption::WithFreqs);
    match weight < 1.0 {
        true => Box::new(BoostQuery::new(Box::new(query), weight)),
        false => Box::new(query),
    }
}
