//! The query of a search: full-text matches and semantic neighbors among the documents that pass a filter.

use std::sync::Arc;

use tantivy::query::{EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::{
    COLLECT_BLOCK_BUFFER_LEN, DocId, DocSet, Score, SegmentReader, TERMINATED, TantivyError, Term,
};

use super::bits::Bits;
use super::explained::Explained;
use super::filter::Filter;
use super::meaning::NearAgents;
use super::statistics::QueryStatistics;

/// If at most one in this many documents passes the filter, these candidates drive the query: the text is tested for
/// each candidate, instead of the filter for each match of the text.
const FEW_CANDIDATES: u32 = 64;

/// Query for the matches of a text, or for all documents, and for semantic neighbors, restricted by a filter.
#[derive(Debug)]
pub(super) struct FilteredQuery {
    text: Option<Box<dyn Query>>,
    /// `None` if the text is not scored.
    statistics: Option<Arc<QueryStatistics>>,
    near: Option<Arc<NearAgents>>,
    filter: Filter,
}

impl FilteredQuery {
    /// Unscored query; without a text for all documents that pass `filter`.
    pub fn new(text: Option<Box<dyn Query>>, filter: Filter) -> Self {
        Self {
            text,
            statistics: None,
            near: None,
            filter,
        }
    }

    pub fn scored_by(self, statistics: Arc<QueryStatistics>) -> Self {
        Self {
            statistics: Some(statistics),
            ..self
        }
    }

    /// Query for matches and neighbors. A neighbor that is no match scores 0.
    pub fn or_near(text: Option<Box<dyn Query>>, near: Arc<NearAgents>, filter: Filter) -> Self {
        Self {
            // The text must be explainable even for a document that is only a neighbor.
            text: text.map(|text| Box::new(Explained(text)) as Box<dyn Query>),
            statistics: None,
            near: Some(near),
            filter,
        }
    }
}

impl Clone for FilteredQuery {
    fn clone(&self) -> Self {
        Self {
            text: self.text.as_ref().map(|text| text.box_clone()),
            statistics: self.statistics.clone(),
            near: self.near.clone(),
            filter: self.filter.clone(),
        }
    }
}

impl Query for FilteredQuery {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        // The statistics that tantivy passes cover the local segments only, so they are replaced.
        let weight = |text: &dyn Query| match (&self.statistics, scoring) {
            (Some(statistics), EnableScoring::Enabled { searcher, .. }) => {
                statistics.weight(text, searcher)
            }
            (None, EnableScoring::Enabled { searcher, .. }) => {
                text.weight(EnableScoring::disabled_from_searcher(searcher))
            }
            (_, EnableScoring::Disabled { .. }) => text.weight(scoring),
        };
        let text = self.text.as_deref().map(weight).transpose()?;
        Ok(Box::new(FilteredWeight {
            text,
            near: self.near.clone(),
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
    near: Option<Arc<NearAgents>>,
    filter: Filter,
}

impl FilteredWeight {
    /// Calls `callback` for each match in ascending order; `score` selects whether scores are computed.
    fn visit(
        &self,
        reader: &SegmentReader,
        score: bool,
        callback: &mut dyn FnMut(DocId, Score),
    ) -> tantivy::Result<()> {
        let near = self.near.as_ref();
        let near = near.map(|near| near.documents(reader.segment_id()));
        let near = near.unwrap_or_default();
        let mut near = near.iter().map(|(document, _)| *document).peekable();
        let Some(text) = &self.text else {
            match &self.near {
                Some(_) => near.for_each(|document| callback(document, 0.0)),
                None => {
                    let bits = self.filter.bits(reader)?;
                    bits.iter().for_each(|document| callback(document, 1.0));
                }
            }
            return Ok(());
        };
        let bits = self.filter.bits(reader)?;
        let candidates = bits.len();
        let is_sparse = candidates < reader.max_doc() / FEW_CANDIDATES;
        let among = (candidates < reader.max_doc()).then_some(&*bits);
        if score && near.peek().is_none() && !is_sparse {
            return scored(text.as_ref(), reader, among, callback);
        }
        // Neighbors that do not match the text are merged in ascending order.
        let mut matched = |document, score| {
            while let Some(near) = near.next_if(|near| *near <= document) {
                if near < document {
                    callback(near, 0.0);
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
                    matched(document, if score { scorer.score() } else { 1.0 });
                }
            }
        } else if score {
            scored(text.as_ref(), reader, among, &mut matched)?;
        } else {
            text.for_each_no_score(reader, &mut |documents| {
                for document in documents {
                    if bits.contains(*document) {
                        matched(*document, 1.0);
                    }
                }
            })?;
        }
        near.for_each(|document| callback(document, 0.0));
        Ok(())
    }
}

/// Calls `callback` for each match of the text in this set, with its score; without a set, for every match. Most
/// searches have neither neighbors nor a filter that excludes anything, and need no test per match.
fn scored(
    text: &dyn Weight,
    reader: &SegmentReader,
    among: Option<&Bits>,
    callback: &mut dyn FnMut(DocId, Score),
) -> tantivy::Result<()> {
    match among {
        None => text.for_each(reader, callback),
        Some(among) => text.for_each(reader, &mut |document, score| {
            if among.contains(document) {
                callback(document, score);
            }
        }),
    }
}

impl Weight for FilteredWeight {
    /// Computes all matches at once, because searches need all of them.
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let mut matches = Vec::new();
        self.visit(reader, true, &mut |document, score| {
            matches.push((document, score * boost));
        })?;
        Ok(Box::new(ListedMatches { matches, place: 0 }))
    }

    fn explain(&self, reader: &SegmentReader, document: DocId) -> tantivy::Result<Explanation> {
        let no_match = || {
            let message = format!("document #{document} does not match");
            TantivyError::InvalidArgument(message)
        };
        if !self.filter.bits(reader)?.contains(document) {
            return Err(no_match());
        }
        let near = self.near.as_ref();
        let is_near = near.is_some_and(|near| near.get(reader.segment_id(), document).is_some());
        match &self.text {
            None if self.near.is_none() => Ok(Explanation::new("every agent", 1.0)),
            None if !is_near => Err(no_match()),
            None => Ok(near_in_meaning()),
            Some(text) => match text.explain(reader, document) {
                Err(_) if is_near => Ok(near_in_meaning()),
                explained => explained,
            },
        }
    }

    fn count(&self, reader: &SegmentReader) -> tantivy::Result<u32> {
        if self.text.is_none() && self.near.is_none() {
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

    /// Visits every match: block-max bounds, which could skip whole blocks, rest on other statistics than the scores.
    fn for_each_pruning(
        &self,
        threshold: Score,
        reader: &SegmentReader,
        callback: &mut dyn FnMut(DocId, Score) -> Score,
    ) -> tantivy::Result<()> {
        let mut threshold = threshold;
        self.visit(reader, true, &mut |document, score| {
            if score > threshold {
                threshold = callback(document, score);
            }
        })
    }
}

fn near_in_meaning() -> Explanation {
    Explanation::new("near in meaning", 0.0)
}

struct ListedMatches {
    matches: Vec<(DocId, Score)>,
    place: usize,
}

impl DocSet for ListedMatches {
    fn advance(&mut self) -> DocId {
        self.place += 1;
        self.doc()
    }

    fn seek(&mut self, target: DocId) -> DocId {
        let rest = self.matches.get(self.place..).unwrap_or_default();
        self.place += rest.partition_point(|(document, _)| *document < target);
        self.doc()
    }

    fn doc(&self) -> DocId {
        let here = self.matches.get(self.place);
        here.map_or(TERMINATED, |(document, _)| *document)
    }

    fn size_hint(&self) -> u32 {
        u32::try_from(self.matches.len()).unwrap_or(u32::MAX)
    }
}

impl Scorer for ListedMatches {
    fn score(&mut self) -> Score {
        self.matches
            .get(self.place)
            .map_or(0.0, |(_, score)| *score)
    }
}
