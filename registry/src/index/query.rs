//! The query objects: a plain-language text over the weighted fields, and a text under a filter.

use tantivy::query::{
    BooleanQuery, BooleanWeight, BoostQuery, EnableScoring, Explanation, Occur, Query,
    ScoreCombiner, Scorer, TermQuery, Weight,
};
use tantivy::schema::IndexRecordOption;
use tantivy::{
    COLLECT_BLOCK_BUFFER_LEN, DocId, DocSet, Score, SegmentReader, TERMINATED, TantivyError, Term,
};

use super::analysis::QueryWord;
use super::bits::Bits;
use super::explained::Explained;
use super::filter::Filter;
use super::schema::Fields;

/// What a match by stem alone is worth beside one of the exact form.
const STEM_WEIGHT: Score = 0.6;

/// How much an agent gains that holds every word of a query, as a part of its score.
const ALL_WORDS_BONUS: Score = 0.5;

/// With fewer candidates than one document of so many, the text is asked about each candidate instead of every
/// match of the text about the candidates.
const FEW_CANDIDATES: u32 = 64;

/// The query for words of which any may match: the more different words an agent holds, the better.
pub(super) fn text_query(fields: &Fields, words: &[QueryWord]) -> Option<Box<dyn Query>> {
    let mut queries: Vec<Box<dyn Query>> =
        words.iter().map(|word| word_query(fields, word)).collect();
    match queries.len() {
        0 => None,
        1 => queries.pop(),
        _ => Some(Box::new(AnyWords { words: queries })),
    }
}

/// One word in any of the searched fields.
pub(super) fn word_query(fields: &Fields, word: &QueryWord) -> Box<dyn Query> {
    let stem = word.stem.as_ref().unwrap_or(&word.exact);
    let mut parts: Vec<(Occur, Box<dyn Query>)> = Vec::with_capacity(fields.searched.len() * 2);
    for (field, weight) in fields.searched {
        let mut add = |form: &str, boost: Score| {
            let term = TermQuery::new(
                Term::from_field_text(field, form),
                IndexRecordOption::WithFreqs,
            );
            parts.push((
                Occur::Should,
                Box::new(BoostQuery::new(Box::new(term), boost * weight)),
            ));
        };
        if *stem == word.exact {
            add(stem, 1.0 + STEM_WEIGHT);
        } else {
            add(&word.exact, 1.0);
            add(stem, STEM_WEIGHT);
        }
    }
    Box::new(Explained(Box::new(BooleanQuery::new(parts))))
}

/// Any of several words, with a bonus for more of them.
#[derive(Debug)]
struct AnyWords {
    words: Vec<Box<dyn Query>>,
}

impl Clone for AnyWords {
    fn clone(&self) -> Self {
        Self {
            words: self.words.iter().map(|word| word.box_clone()).collect(),
        }
    }
}

impl Query for AnyWords {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        let weights = self
            .words
            .iter()
            .map(|word| Ok((Occur::Should, word.weight(scoring)?)))
            .collect::<tantivy::Result<Vec<_>>>()?;
        let words = u16::try_from(weights.len()).unwrap_or(u16::MAX);
        let enabled = scoring.is_scoring_enabled();
        Ok(Box::new(BooleanWeight::with_minimum_number_should_match(
            weights,
            1,
            enabled,
            Box::new(move || Coordination::new(words)),
        )))
    }

    fn query_terms<'a>(&'a self, visitor: &mut dyn FnMut(&'a Term, bool)) {
        for word in &self.words {
            word.query_terms(visitor);
        }
    }
}

/// Adds up the scores of the words and rewards that there are many.
#[derive(Debug, Clone, Copy, Default)]
struct Coordination {
    sum: Score,
    matched: u16,
    step: Score,
}

impl Coordination {
    fn new(words: u16) -> Self {
        Self {
            step: ALL_WORDS_BONUS / Score::from(words.saturating_sub(1).max(1)),
            ..Self::default()
        }
    }
}

impl ScoreCombiner for Coordination {
    fn update<S: Scorer>(&mut self, scorer: &mut S) {
        self.sum += scorer.score();
        self.matched += 1;
    }

    fn clear(&mut self) {
        self.sum = 0.0;
        self.matched = 0;
    }

    fn score(&self) -> Score {
        self.sum * (1.0 + self.step * Score::from(self.matched.saturating_sub(1)))
    }
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
