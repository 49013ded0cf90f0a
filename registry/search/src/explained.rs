//! Query wrapper whose parts can be explained even for documents that they do not match.
//!
//! tantivy explains a union by seeking each part to the document, but a part that has passed the document cannot seek
//! back. This wrapper checks that first.
//!
//! It also removes counts of agents from tantivy's explanations, even though callers may find the counted agents.

use serde::ser::Error;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use tantivy::query::{EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::{DocAddress, DocId, DocSet, Score, SegmentReader, TantivyError, Term};

use super::blend::Blended;
use super::error::IndexError;
use super::highlight::Highlighter;
use super::reasons::{FoundForms, Reasons, ScoreParts};
use super::request::SortValue;
use super::rescore::RescoreGain;
use super::schema::Fields;
use super::search::PreparedQuery;

/// Reports "does not match" for a document that the query has passed, instead of seeking back.
#[derive(Debug)]
pub(super) struct Explained(pub Box<dyn Query>);

impl Clone for Explained {
    fn clone(&self) -> Self {
        Self(self.0.box_clone())
    }
}

impl Query for Explained {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(ExplainedWeight(self.0.weight(scoring)?)))
    }

    fn query_terms<'a>(&'a self, visitor: &mut dyn FnMut(&'a Term, bool)) {
        self.0.query_terms(visitor);
    }
}

/// Prefixes of details about other agents: document frequency, number of documents, mean length.
const OF_OTHERS: [&str; 3] = ["n, ", "N, ", "avgdl, "];

/// All parts of a score, without counts of other agents.
pub(super) struct ShownExplanation(pub Explanation);

impl Serialize for ShownExplanation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut value = serde_json::to_value(&self.0).map_err(S::Error::custom)?;
        conceal(&mut value);
        value.serialize(serializer)
    }
}

fn conceal(explanation: &mut Value) {
    let Some(Value::Array(details)) = explanation.get_mut("details") else {
        return;
    };
    details.retain(|detail| {
        let what = detail.get("description").and_then(Value::as_str);
        !what.is_some_and(|what| OF_OTHERS.iter().any(|other| what.starts_with(other)))
    });
    details.iter_mut().for_each(conceal);
}

/// The most terms of a query whose computation is shown in full; beyond it only the terms that matter most are shown.
const MAX_TERMS: usize = 64;

#[derive(Clone, Copy)]
pub(super) struct Explainer<'a> {
    prepared: &'a PreparedQuery,
    fields: &'a Fields,
    /// Full-text query; `None` if full text does not count.
    words: Option<&'a dyn Weight>,
    highlighter: &'a Highlighter,
    is_small: bool,
    /// Whether the computation is shown beside the sentences.
    computes: bool,
}

impl<'a> Explainer<'a> {
    /// Explains the hits of a query with the full text `words`: in sentences, and with the computation if `computes`.
    pub fn new(
        prepared: &'a PreparedQuery,
        fields: &'a Fields,
        words: Option<&'a dyn Weight>,
        highlighter: &'a Highlighter,
        computes: bool,
    ) -> Self {
        let mut terms = 0;
        if let Some(text) = &prepared.text {
            text.query_terms(&mut |_, _| terms += 1);
        }
        Self {
            prepared,
            fields,
            words,
            highlighter,
            is_small: terms <= MAX_TERMS,
            computes,
        }
    }

    /// Explains a hit's score at this position of the order: the tree of its parts, and in `summary` the same in
    /// sentences. `written` holds all texts of the agent, as the index stores them.
    pub fn explain(
        &self,
        address: DocAddress,
        place: &SortValue,
        added: RescoreGain,
        blended: Option<Blended>,
        written: &str,
    ) -> Result<Value, IndexError> {
        let searcher = &self.prepared.view.searcher;
        let weight = self
            .words
            .filter(|_| blended.is_none_or(Blended::matches_words));
        let reasons = Reasons {
            fields: self.fields,
            searcher,
            statistics: &self.prepared.statistics,
            words: &self.prepared.query.words,
            highlighter: self.highlighter,
            address,
            written,
        };
        let found = match weight {
            Some(_) => reasons.find(),
            None => FoundForms::new(),
        };
        let scored = reasons.score_words(&found)?;
        let score = first_score(place, added, blended);
        // Sentences need the words' score but not its computation, which costs more than all the rest.
        let known = weight.and(score).filter(|_| !self.computes);
        let words = match weight {
            None => None,
            Some(_) if known.is_some() => None,
            Some(weight) if self.is_small => {
                let reader = searcher.segment_reader(address.segment_ord);
                Some(weight.explain(reader, address.doc_id)?)
            }
            Some(_) => Some(reasons.explain_main_terms(&scored, score)?),
        };
        let parts = ScoreParts {
            words: known.or_else(|| words.as_ref().map(Explanation::value)),
            added,
            blended,
        };
        let summary = reasons.sentences(&scored, &parts);
        if !self.computes {
            let is_scored = parts.words.is_some() || blended.is_some();
            return Ok(is_scored.then(|| json!({"summary": summary})).into());
        }
        let words = words.map(|words| with_added(words, added));
        let whole = match blended {
            Some(blended) => Some(blended.explanation(words)),
            None => words,
        };
        let damaged = |error: serde_json::Error| IndexError::Damaged(error.to_string());
        let mut shown = serde_json::to_value(whole.map(ShownExplanation)).map_err(damaged)?;
        if let Some(parts) = shown.as_object_mut() {
            parts.insert("summary".to_owned(), summary.into());
        }
        Ok(shown)
    }
}

/// The full-text score of a hit before rescoring, if its position tells it.
fn first_score(place: &SortValue, added: RescoreGain, blended: Option<Blended>) -> Option<Score> {
    let score = match (blended, place) {
        (Some(blended), _) => blended.words(),
        (None, SortValue::Score(score)) => Some(*score),
        (None, _) => None,
    };
    score.map(|score| score - added.sum())
}

fn with_added(first: Explanation, added: RescoreGain) -> Explanation {
    if added == RescoreGain::default() {
        return first;
    }
    let mut whole = Explanation::new("sum of:", first.value() + added.sum());
    whole.add_detail(first);
    for part in added.explanations() {
        whole.add_detail(part);
    }
    whole
}

struct ExplainedWeight(Box<dyn Weight>);

impl Weight for ExplainedWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        Ok(Box::new(SettledScorer(self.0.scorer(reader, boost)?)))
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

/// A scorer that is always on a match. tantivy's intersection would otherwise leave a phrase between two matches, and
/// then seek it to a document that it has passed.
struct SettledScorer(Box<dyn Scorer>);

impl DocSet for SettledScorer {
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

impl Scorer for SettledScorer {
    fn score(&mut self) -> Score {
        self.0.score()
    }
}
