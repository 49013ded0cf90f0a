//! Explainable query: a wrapper whose parts can be explained even for documents that they do not match.
//!
//! tantivy explains a union by seeking each part to the document, but a part that has passed the document cannot seek
//! back. This wrapper checks that first.

use tantivy::query::{EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::{DocId, DocSet, Score, SegmentReader, TantivyError, Term};

/// Wrapper that reports "does not match" for a document that the query has passed, instead of seeking back.
#[derive(Debug)]
pub(super) struct ExplainableQuery(pub Box<dyn Query>);

impl Clone for ExplainableQuery {
    fn clone(&self) -> Self {
        Self(self.0.box_clone())
    }
}

impl Query for ExplainableQuery {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(ExplainableWeight(self.0.weight(scoring)?)))
    }

    fn query_terms<'a>(&'a self, visitor: &mut dyn FnMut(&'a Term, bool)) {
        self.0.query_terms(visitor);
    }
}

struct ExplainableWeight(Box<dyn Weight>);

impl Weight for ExplainableWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        Ok(Box::new(PositionedScorer(self.0.scorer(reader, boost)?)))
    }

    fn explain(&self, reader: &SegmentReader, document: DocId) -> tantivy::Result<Explanation> {
        let scorer = self.0.scorer(reader, 1.0)?;
        if scorer.doc() > document {
            return Err(TantivyError::InvalidArgument(format!(
                "document #{document} does not match"
            )));
        }
        self.0.explain(reader, document)
    }

    fn count(&self, reader: &SegmentReader) -> tantivy::Result<u32> {
        self.0.count(reader)
    }

    fn for_each(
        &self,
        reader: &SegmentReader,
        callback: &mut dyn FnMut(DocId, Score),
    ) -> tantivy::Result<()> {
        self.0.for_each(reader, callback)
    }

    fn for_each_no_score(
        &self,
        reader: &SegmentReader,
        callback: &mut dyn FnMut(&[DocId]),
    ) -> tantivy::Result<()> {
        self.0.for_each_no_score(reader, callback)
    }

    fn for_each_pruning(
        &self,
        threshold: Score,
        reader: &SegmentReader,
        callback: &mut dyn FnMut(DocId, Score) -> Score,
    ) -> tantivy::Result<()> {
        self.0.for_each_pruning(threshold, reader, callback)
    }
}

/// A scorer that is always on a match. Otherwise tantivy's intersection would leave a phrase between two matches and
/// then seek it to a document that it has passed.
struct PositionedScorer(Box<dyn Scorer>);

impl DocSet for PositionedScorer {
    fn advance(&mut self) -> DocId {
        self.0.advance()
    }

    fn seek(&mut self, target: DocId) -> DocId {
        self.0.seek(target)
    }

    fn doc(&self) -> DocId {
        self.0.doc()
    }

    fn size_hint(&self) -> u32 {
        self.0.size_hint()
    }
}

impl Scorer for PositionedScorer {
    fn score(&mut self) -> Score {
        self.0.score()
    }
}
