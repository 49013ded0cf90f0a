//! The query objects: a plain-language text over the weighted fields, and a text under a filter.

use tantivy::query::{
    AllQuery, BooleanQuery, BoostQuery, ConstScoreQuery, DisjunctionMaxQuery, EnableScoring,
    Explanation, Occur, PhraseQuery, Query, Scorer, TermQuery, Weight,
};
use tantivy::schema::IndexRecordOption;
use tantivy::{
    COLLECT_BLOCK_BUFFER_LEN, DocId, DocSet, Score, SegmentReader, TERMINATED, TantivyError, Term,
};

use super::analysis::{QueryText, QueryWord, asked_pieces, query_text};
use super::bits::Bits;
use super::explained::Explained;
use super::filter::{Filter, any_condition};
use super::request::MAX_QUERY_WORDS;
use super::schema::Fields;
use super::syntax::{AnyOf, Part, Written};

/// What a word that stands for one of the query is worth beside it.
pub(super) const OTHER_WEIGHT: Score = 0.5;

/// With fewer candidates than one document of so many, the text is asked about each candidate instead of every
/// match of the text about the candidates.
const FEW_CANDIDATES: u32 = 64;

/// The query for words of which any may match.
fn text_query(fields: &Fields, words: &[QueryWord]) -> Option<Box<dyn Query>> {
    let mut queries: Vec<Box<dyn Query>> =
        words.iter().map(|word| word_query(fields, word)).collect();
    match queries.len() {
        0 => None,
        1 => queries.pop(),
        _ => Some(Box::new(BooleanQuery::union(queries))),
    }
}

/// What a query demands beside its words.
#[derive(Debug, Default)]
struct Demands {
    /// What an agent has to hold.
    required: Vec<Box<dyn Query>>,
    /// What it must not hold.
    excluded: Vec<Box<dyn Query>>,
}

impl Demands {
    /// The words under these demands.
    fn on(self, words: Option<Box<dyn Query>>) -> Option<Box<dyn Query>> {
        if self.required.is_empty() && self.excluded.is_empty() {
            return words;
        }
        let mut parts: Vec<(Occur, Box<dyn Query>)> = Vec::new();
        // Exclusions take something away; where nothing else is asked that is everything.
        if self.required.is_empty() && words.is_none() {
            parts.push((Occur::Must, Box::new(AllQuery)));
        }
        let words_alone = match self.required.is_empty() {
            true => Occur::Must,
            false => Occur::Should,
        };
        // Beside demands the words may be missing, which has to be explained too.
        let words = words.map(|words| Box::new(Explained(words)) as Box<dyn Query>);
        parts.extend(words.map(|words| (words_alone, words)));
        parts.extend(self.required.into_iter().map(|one| (Occur::Must, one)));
        parts.extend(self.excluded.into_iter().map(|one| (Occur::MustNot, one)));
        Some(Box::new(BooleanQuery::new(parts)))
    }
}

/// A query with its words as they were expanded, of which the beginnings of words come last.
pub(super) struct Asked<'a> {
    pub fields: &'a Fields,
    pub written: &'a Written,
    pub query: &'a QueryText,
}

impl Asked<'_> {
    /// The words under the demands of `written`, which may have been asked with more of them; nothing where no text
    /// is asked for.
    pub fn text(&self, written: &Written) -> Option<Box<dyn Query>> {
        self.under_demands(written, text_query(self.fields, &self.query.words))
    }

    fn under_demands(
        &self,
        written: &Written,
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

    /// What is demanded beside the words, as far as it is no condition; nothing where nothing is.
    pub fn demands(&self) -> Option<Box<dyn Query>> {
        self.under_demands(self.written, None)
    }

    fn demand(&self, any: &AnyOf) -> Option<Box<dyn Query>> {
        let group = |parts: &Vec<Part>| {
            let parts = parts.iter().filter_map(|part| self.part(part)).collect();
            several(parts, BooleanQuery::intersection)
        };
        several(any.iter().filter_map(group).collect(), BooleanQuery::union)
    }

    /// A word counts in every form that counts for it in the query, several words as they follow each other.
    fn part(&self, part: &Part) -> Option<Box<dyn Query>> {
        match part {
            Part::Phrase(text) => phrase_query(self.fields, text, true),
            Part::Words(text) => match query_text(text).words.as_slice() {
                [word] => {
                    let mut words = self.query.words.iter();
                    let known = words.find(|known| known.exact == word.exact);
                    Some(word_query(self.fields, known.unwrap_or(word)))
                }
                _ => phrase_query(self.fields, text, false),
            },
            Part::Beginning(prefix) => {
                let prefixes = &self.written.prefixes;
                let place = prefixes.iter().position(|known| known == prefix)?;
                let first = self.query.words.len().checked_sub(prefixes.len())?;
                let begun = self.query.words.get(first + place)?;
                Some(word_query(self.fields, begun))
            }
            // Whoever has a tag does not say more than others, so a condition is worth nothing.
            Part::Condition(facet, value) => {
                let clause = any_condition(self.fields, &[(*facet, value.clone())]);
                let query = ConstScoreQuery::new(clause.query(), 0.0);
                Some(Box::new(Explained(Box::new(query))))
            }
        }
    }
}

/// One query of these, which are put together where there are several.
fn several(
    mut queries: Vec<Box<dyn Query>>,
    together: fn(Vec<Box<dyn Query>>) -> BooleanQuery,
) -> Option<Box<dyn Query>> {
    match queries.len() {
        0 | 1 => queries.pop(),
        _ => Some(Box::new(Explained(Box::new(together(queries))))),
    }
}

/// A text whose words follow each other: in their exact forms where it was quoted, else in any. Nothing for a text
/// without words.
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

/// One word, or another that stands for it.
pub(super) fn word_query(fields: &Fields, word: &QueryWord) -> Box<dyn Query> {
    let term = |form: &str| -> Box<dyn Query> {
        Box::new(TermQuery::new(
            Term::from_field_text(fields.text, form),
            IndexRecordOption::WithFreqs,
        ))
    };
    if word.others.is_empty() {
        return term(word.form());
    }
    let others = word.others.iter();
    let others =
        others.map(|form| Box::new(BoostQuery::new(term(form), OTHER_WEIGHT)) as Box<dyn Query>);
    let any = std::iter::once(term(word.form())).chain(others).collect();
    Box::new(Explained(Box::new(DisjunctionMaxQuery::new(any))))
}

/// A text, or everything, among the documents that a filter lets through.
#[derive(Debug)]
pub(super) struct FilteredQuery {
    text: Option<Box<dyn Query>>,
    filter: Filter,
}

impl FilteredQuery {
    /// Matches of `text`, or everything without one, that pass `filter`.
    pub fn new(text: Option<Box<dyn Query>>, filter: Filter) -> Self {
        Self { text, filter }
    }
}

impl Clone for FilteredQuery {
    fn clone(&self) -> Self {
        Self {
            text: self.text.as_ref().map(|text| text.box_clone()),
            filter: self.filter.clone(),
        }
    }
}

impl Query for FilteredQuery {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        let text = self
            .text
            .as_ref()
            .map(|text| text.weight(scoring))
            .transpose()?;
        Ok(Box::new(FilteredWeight {
            text,
            filter: self.filter.clone(),
        }))
    }

    fn query_terms<'a>(&'a self, visitor: &mut dyn FnMut(&'a Term, bool)) {
        if let Some(text) = &self.text {
            text.query_terms(visitor);
        }
    }
}

struct FilteredWeight {
    text: Option<Box<dyn Weight>>,
    filter: Filter,
}

impl FilteredWeight {
    /// Calls back for each match; `score` says whether scores are wanted.
    fn visit(
        &self,
        reader: &SegmentReader,
        score: bool,
        callback: &mut dyn FnMut(DocId, Score),
    ) -> tantivy::Result<()> {
        let bits = self.filter.bits(reader)?;
        let Some(text) = &self.text else {
            bits.iter().for_each(|document| callback(document, 1.0));
            return Ok(());
        };
        if bits.len() < reader.max_doc() / FEW_CANDIDATES {
            let mut scorer = text.scorer(reader, 1.0)?;
            for document in bits.iter() {
                if scorer.doc() < document {
                    scorer.seek(document);
                }
                if scorer.doc() == document {
                    callback(document, if score { scorer.score() } else { 1.0 });
                }
            }
            return Ok(());
        }
        if score {
            return text.for_each(reader, &mut |document, score| {
                if bits.contains(document) {
                    callback(document, score);
                }
            });
        }
        text.for_each_no_score(reader, &mut |documents| {
            for document in documents
                .iter()
                .filter(|document| bits.contains(**document))
            {
                callback(*document, 1.0);
            }
        })
    }
}

impl Weight for FilteredWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let bits = self.filter.bits(reader)?;
        let inner = match &self.text {
            Some(text) => text.scorer(reader, boost)?,
            None => Box::new(tantivy::query::AllScorer::new(reader.max_doc())),
        };
        let mut scorer = FilteredScorer { inner, bits };
        scorer.settle();
        Ok(Box::new(scorer))
    }

    fn explain(&self, reader: &SegmentReader, document: DocId) -> tantivy::Result<Explanation> {
        if !self.filter.bits(reader)?.contains(document) {
            return Err(TantivyError::InvalidArgument(format!(
                "document #{document} does not match"
            )));
        }
        match &self.text {
            Some(text) => text.explain(reader, document),
            None => Ok(Explanation::new("every agent", 1.0)),
        }
    }

    fn count(&self, reader: &SegmentReader) -> tantivy::Result<u32> {
        if self.text.is_none() {
            return Ok(self.filter.bits(reader)?.len());
        }
        let mut count = 0;
        self.visit(reader, false, &mut |_, _| count += 1)?;
        Ok(count)
    }

    fn for_each(
        &self,
        reader: &SegmentReader,
        callback: &mut dyn FnMut(DocId, Score),
    ) -> tantivy::Result<()> {
        self.visit(reader, true, callback)
    }

    fn for_each_no_score(
        &self,
        reader: &SegmentReader,
        callback: &mut dyn FnMut(&[DocId]),
    ) -> tantivy::Result<()> {
        let mut block = [0; COLLECT_BLOCK_BUFFER_LEN];
        let mut filled = 0;
        self.visit(reader, false, &mut |document, _| {
            block[filled] = document;
            filled += 1;
            if filled == block.len() {
                callback(&block);
                filled = 0;
            }
        })?;
        callback(&block[..filled]);
        Ok(())
    }

    fn for_each_pruning(
        &self,
        threshold: Score,
        reader: &SegmentReader,
        callback: &mut dyn FnMut(DocId, Score) -> Score,
    ) -> tantivy::Result<()> {
        let mut threshold = threshold;
        match &self.text {
            Some(text) => {
                let bits = self.filter.bits(reader)?;
                text.for_each_pruning(threshold, reader, &mut |document, score| {
                    if bits.contains(document) {
                        threshold = callback(document, score);
                    }
                    threshold
                })
            }
            None => self.visit(reader, false, &mut |document, score| {
                if score > threshold {
                    threshold = callback(document, score);
                }
            }),
        }
    }
}

/// The matches of a scorer that are in a set.
struct FilteredScorer {
    inner: Box<dyn Scorer>,
    bits: Bits,
}

impl FilteredScorer {
    fn settle(&mut self) -> DocId {
        let mut document = self.inner.doc();
        while document != TERMINATED && !self.bits.contains(document) {
            document = self.inner.advance();
        }
        document
    }
}

impl DocSet for FilteredScorer {
    fn advance(&mut self) -> DocId {
        self.inner.advance();
        self.settle()
    }

    fn seek(&mut self, target: DocId) -> DocId {
        self.inner.seek(target);
        self.settle()
    }

    fn doc(&self) -> DocId {
        self.inner.doc()
    }

    fn size_hint(&self) -> u32 {
        self.inner.size_hint().min(self.bits.len())
    }
}

impl Scorer for FilteredScorer {
    fn score(&mut self) -> Score {
        self.inner.score()
    }
}
