//! Filtered query: full-text matches and semantic neighbors among the documents that pass a filter.

use std::sync::Arc;

use tantivy::query::{EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::{
    COLLECT_BLOCK_BUFFER_LEN, DocId, DocSet, Score, SegmentReader, TERMINATED, TantivyError, Term,
};

use super::doc_bit_set::DocBitSet;
use super::explainable_query::ExplainableQuery;
use super::filter::DocumentFilter;
use super::semantic_neighbors::SemanticNeighbors;
use super::statistics::QueryStatistics;

/// If at most one in this many documents passes the filter, these candidates drive the query: the text is tested for
/// each candidate, instead of the filter for each match.
const SPARSE_FRACTION: u32 = 64;

/// Query for the matches of a text, or for all documents, and for semantic neighbors, restricted by a filter.
#[derive(Debug)]
pub(super) struct FilteredQuery {
    text: Option<Box<dyn Query>>,
    /// Statistics for scoring; `None` if the text is not scored.
    statistics: Option<Arc<QueryStatistics>>,
    neighbors: Option<Arc<SemanticNeighbors>>,
    filter: DocumentFilter,
}

impl FilteredQuery {
    /// Creates an unscored query; without a text it matches all documents that pass `filter`.
    pub fn new(text: Option<Box<dyn Query>>, filter: DocumentFilter) -> Self {
        Self {
            text,
            statistics: None,
            neighbors: None,
            filter,
        }
    }

    pub fn with_statistics(self, statistics: Arc<QueryStatistics>) -> Self {
        Self {
            statistics: Some(statistics),
            ..self
        }
    }

    /// Creates a query for matches and neighbors. A neighbor that does not match scores 0.
    pub fn for_text_and_neighbors(
        text: Option<Box<dyn Query>>,
        neighbors: Arc<SemanticNeighbors>,
        filter: DocumentFilter,
    ) -> Self {
        Self {
            // The text must be explainable even for documents that are only neighbors.
            text: text.map(|text| Box::new(ExplainableQuery(text)) as Box<dyn Query>),
            statistics: None,
            neighbors: Some(neighbors),
            filter,
        }
    }
}

impl Clone for FilteredQuery {
    fn clone(&self) -> Self {
        Self {
            text: self.text.as_ref().map(|text| text.box_clone()),
            statistics: self.statistics.clone(),
            neighbors: self.neighbors.clone(),
            filter: self.filter.clone(),
        }
    }
}

impl Query for FilteredQuery {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        // tantivy's statistics cover only the local segments, so they are replaced.
        let weight = |text: &dyn Query| match (&self.statistics, scoring) {
            (Some(statistics), EnableScoring::Enabled { searcher, .. }) => {
                statistics.build_query_weight(text, searcher)
            }
            (None, EnableScoring::Enabled { searcher, .. }) => {
                text.weight(EnableScoring::disabled_from_searcher(searcher))
            }
            (_, EnableScoring::Disabled { .. }) => text.weight(scoring),
        };
        let text = self.text.as_deref().map(weight).transpose()?;
        Ok(Box::new(FilteredWeight {
            text,
            neighbors: self.neighbors.clone(),
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
    neighbors: Option<Arc<SemanticNeighbors>>,
    filter: DocumentFilter,
}

impl FilteredWeight {
    /// Calls `callback` for each match in ascending order; `score` selects whether scores are computed.
    fn visit_matches(
        &self,
        reader: &SegmentReader,
        with_scores: bool,
        callback: &mut dyn FnMut(DocId, Score),
    ) -> tantivy::Result<()> {
        let neighbors = self.neighbors.as_ref();
        let neighbors = neighbors.map(|near| near.in_segment(reader.segment_id()));
        let neighbors = neighbors.unwrap_or_default();
        let mut neighbors = neighbors.iter().map(|(document, _)| *document).peekable();
        let Some(text) = &self.text else {
            match &self.neighbors {
                Some(_) => neighbors.for_each(|document| callback(document, 0.0)),
                None => {
                    let bits = self.filter.matching_docs(reader)?;
                    bits.iter().for_each(|document| callback(document, 1.0));
                }
            }
            return Ok(());
        };
        let bits = self.filter.matching_docs(reader)?;
        let candidates = bits.len();
        let is_sparse = candidates < reader.max_doc() / SPARSE_FRACTION;
        let allowed = (candidates < reader.max_doc()).then_some(&*bits);
        if with_scores && neighbors.peek().is_none() && !is_sparse {
            return visit_text_matches(text.as_ref(), reader, allowed, callback);
        }
        // Neighbors that do not match the text are merged in ascending order.
        let mut emit_match = |document, score| {
            while let Some(neighbor) = neighbors.next_if(|near| *near <= document) {
                if neighbor < document {
                    callback(neighbor, 0.0);
                }
            }
            callback(document, score);
        };
        if is_sparse {
            let mut scorer = text.scorer(reader, 1.0)?;
            for document in bits.iter() {
                if scorer.doc() < document {
                    scorer.seek(document);
                }
                if scorer.doc() == document {
                    emit_match(document, if with_scores { scorer.score() } else { 1.0 });
                }
            }
        } else if with_scores {
            visit_text_matches(text.as_ref(), reader, allowed, &mut emit_match)?;
        } else {
            text.for_each_no_score(reader, &mut |documents| {
                for document in documents {
                    if bits.contains(*document) {
                        emit_match(*document, 1.0);
                    }
                }
            })?;
        }
        neighbors.for_each(|document| callback(document, 0.0));
        Ok(())
    }
}

/// Calls `callback` for each match of the text in this set, with its score; without a set, for every match. Most
/// searches have neither neighbors nor an excluding filter, and need no test per match.
fn visit_text_matches(
    text: &dyn Weight,
    reader: &SegmentReader,
    allowed: Option<&DocBitSet>,
    callback: &mut dyn FnMut(DocId, Score),
) -> tantivy::Result<()> {
    match allowed {
        None => text.for_each(reader, callback),
        Some(among) => text.for_each(reader, &mut |document, score| {
            if among.contains(document) {
                callback(document, score);
            }
        }),
    }
}

impl Weight for FilteredWeight {
    /// Creates a scorer with all matches computed, because searches need all of them.
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let mut matches = Vec::new();
        self.visit_matches(reader, true, &mut |document, score| {
            matches.push((document, score * boost));
        })?;
        Ok(Box::new(MatchListScorer { matches, index: 0 }))
    }

    fn explain(&self, reader: &SegmentReader, document: DocId) -> tantivy::Result<Explanation> {
        let no_match = || {
            let message = format!("document #{document} does not match");
            TantivyError::InvalidArgument(message)
        };
        if !self.filter.matching_docs(reader)?.contains(document) {
            return Err(no_match());
        }
        let neighbors = self.neighbors.as_ref();
        let is_neighbor = neighbors
            .is_some_and(|near| near.similarity_of(reader.segment_id(), document).is_some());
        match &self.text {
            None if self.neighbors.is_none() => Ok(Explanation::new("every agent", 1.0)),
            None if !is_neighbor => Err(no_match()),
            None => Ok(neighbor_explanation()),
            Some(text) => match text.explain(reader, document) {
                Err(_) if is_neighbor => Ok(neighbor_explanation()),
                explained => explained,
            },
        }
    }

    fn count(&self, reader: &SegmentReader) -> tantivy::Result<u32> {
        if self.text.is_none() && self.neighbors.is_none() {
            return Ok(self.filter.matching_docs(reader)?.len());
        }
        let mut count = 0;
        self.visit_matches(reader, false, &mut |_, _| count += 1)?;
        Ok(count)
    }

    fn for_each(
        &self,
        reader: &SegmentReader,
        callback: &mut dyn FnMut(DocId, Score),
    ) -> tantivy::Result<()> {
        self.visit_matches(reader, true, callback)
    }

    fn for_each_no_score(
        &self,
        reader: &SegmentReader,
        callback: &mut dyn FnMut(&[DocId]),
    ) -> tantivy::Result<()> {
        let mut block = [0; COLLECT_BLOCK_BUFFER_LEN];
        let mut filled = 0;
        self.visit_matches(reader, false, &mut |document, _| {
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

    /// Visits every match: block-max bounds, which could skip whole blocks, are based on other statistics than the
    /// scores.
    fn for_each_pruning(
        &self,
        threshold: Score,
        reader: &SegmentReader,
        callback: &mut dyn FnMut(DocId, Score) -> Score,
    ) -> tantivy::Result<()> {
        let mut threshold = threshold;
        self.visit_matches(reader, true, &mut |document, score| {
            if score > threshold {
                threshold = callback(document, score);
            }
        })
    }
}

fn neighbor_explanation() -> Explanation {
    Explanation::new("semantic neighbor", 0.0)
}

struct MatchListScorer {
    matches: Vec<(DocId, Score)>,
    index: usize,
}

impl DocSet for MatchListScorer {
    fn advance(&mut self) -> DocId {
        self.index += 1;
        self.doc()
    }

    fn seek(&mut self, target: DocId) -> DocId {
        let rest = self.matches.get(self.index..).unwrap_or_default();
        self.index += rest.partition_point(|(document, _)| *document < target);
        self.doc()
    }

    fn doc(&self) -> DocId {
        let here = self.matches.get(self.index);
        here.map_or(TERMINATED, |(document, _)| *document)
    }

    fn size_hint(&self) -> u32 {
        u32::try_from(self.matches.len()).unwrap_or(u32::MAX)
    }
}

impl Scorer for MatchListScorer {
    fn score(&mut self) -> Score {
        self.matches
            .get(self.index)
            .map_or(0.0, |(_, score)| *score)
    }
}
