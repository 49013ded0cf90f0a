//! Explainable query: a wrapper whose parts can be explained even for documents that they do not match.
//!
//! tantivy explains a union by seeking each part to the document, but a part that has passed the document cannot seek
//! back. This wrapper checks that first.
//!
//! This module also removes the counts of agents from tantivy's explanations, even those of agents that callers may
//! find.

use serde::ser::Error;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use tantivy::query::{EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::{DocAddress, DocId, DocSet, Score, SegmentReader, TantivyError, Term};

use super::error::IndexError;
use super::highlight::Highlighter;
use super::hybrid_ranking::HybridScore;
use super::request::SortValue;
use super::rescore::RescoreBonus;
use super::schema::IndexFields;
use super::score_reasons::{MatchedForms, ScoreParts, ScoreReasonBuilder};
use super::search::PreparedQuery;

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

/// Prefixes of details about other agents: document frequency, number of documents, mean length.
const FOREIGN_COUNT_PREFIXES: [&str; 3] = ["n, ", "N, ", "avgdl, "];

/// An explanation without counts of other agents.
pub(super) struct PublicExplanation(pub Explanation);

impl Serialize for PublicExplanation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut value = serde_json::to_value(&self.0).map_err(S::Error::custom)?;
        strip_foreign_counts(&mut value);
        value.serialize(serializer)
    }
}

fn strip_foreign_counts(explanation: &mut Value) {
    let Some(Value::Array(details)) = explanation.get_mut("details") else {
        return;
    };
    details.retain(|detail| {
        let what = detail.get("description").and_then(Value::as_str);
        !what.is_some_and(|what| {
            FOREIGN_COUNT_PREFIXES
                .iter()
                .any(|other| what.starts_with(other))
        })
    });
    details.iter_mut().for_each(strip_foreign_counts);
}

/// The most terms of a query whose computation is shown in full; beyond it only the most important terms are shown.
const MAX_EXPLAINED_TERMS: usize = 64;

#[derive(Clone, Copy)]
pub(super) struct ScoreExplainer<'a> {
    prepared: &'a PreparedQuery,
    fields: &'a IndexFields,
    /// Weight of the full-text query; `None` if full text does not count.
    text_weight: Option<&'a dyn Weight>,
    highlighter: &'a Highlighter,
    explains_all_terms: bool,
    /// Whether the computation is shown in addition to the sentences.
    with_computation: bool,
}

impl<'a> ScoreExplainer<'a> {
    /// Creates an explainer: in sentences, and with the computation if `with_computation`.
    pub fn new(
        prepared: &'a PreparedQuery,
        fields: &'a IndexFields,
        text_weight: Option<&'a dyn Weight>,
        highlighter: &'a Highlighter,
        with_computation: bool,
    ) -> Self {
        let mut terms = 0;
        if let Some(text) = &prepared.text {
            text.query_terms(&mut |_, _| terms += 1);
        }
        Self {
            prepared,
            fields,
            text_weight,
            highlighter,
            explains_all_terms: terms <= MAX_EXPLAINED_TERMS,
            with_computation,
        }
    }

    /// Explains a hit's score at this position of the order: as the tree of its parts, and in `summary` as sentences.
    /// `joined_texts` are all texts of the agent as stored in the index.
    pub fn explain_score(
        &self,
        address: DocAddress,
        sort_value: &SortValue,
        rescore_bonus: RescoreBonus,
        hybrid_score: Option<HybridScore>,
        joined_texts: &str,
    ) -> Result<Value, IndexError> {
        let searcher = &self.prepared.view.searcher;
        let weight = self
            .text_weight
            .filter(|_| hybrid_score.is_none_or(HybridScore::matches_text));
        let reasons = ScoreReasonBuilder {
            fields: self.fields,
            searcher,
            statistics: &self.prepared.statistics,
            words: &self.prepared.query.words,
            highlighter: self.highlighter,
            address,
            joined_texts,
        };
        let matched_forms = match weight {
            Some(_) => reasons.find_matched_forms(),
            None => MatchedForms::new(),
        };
        let scored_words = reasons.score_words(&matched_forms)?;
        let score = score_before_rescoring(sort_value, rescore_bonus, hybrid_score);
        // Sentences need the text score but not its computation, which costs more than all the rest.
        let known_score = weight.and(score).filter(|_| !self.with_computation);
        let text_explanation = match weight {
            None => None,
            Some(_) if known_score.is_some() => None,
            Some(weight) if self.explains_all_terms => {
                let reader = searcher.segment_reader(address.segment_ord);
                Some(weight.explain(reader, address.doc_id)?)
            }
            Some(_) => Some(reasons.explain_main_terms(&scored_words, score)?),
        };
        let parts = ScoreParts {
            text_score: known_score.or_else(|| text_explanation.as_ref().map(Explanation::value)),
            rescore_bonus,
            hybrid_score,
        };
        let summary = reasons.build_sentences(&scored_words, &parts);
        if !self.with_computation {
            let is_scored = parts.text_score.is_some() || hybrid_score.is_some();
            return Ok(is_scored.then(|| json!({"summary": summary})).into());
        }
        let words = text_explanation.map(|words| add_rescore_bonus(words, rescore_bonus));
        let explanation = match hybrid_score {
            Some(blended) => Some(blended.explanation(words)),
            None => words,
        };
        let damaged = |error: serde_json::Error| IndexError::Damaged(error.to_string());
        let mut shown =
            serde_json::to_value(explanation.map(PublicExplanation)).map_err(damaged)?;
        if let Some(parts) = shown.as_object_mut() {
            parts.insert("summary".to_owned(), summary.into());
        }
        Ok(shown)
    }
}

/// The full-text score of a hit before rescoring, if its position contains it.
fn score_before_rescoring(
    sort_value: &SortValue,
    rescore_bonus: RescoreBonus,
    hybrid_score: Option<HybridScore>,
) -> Option<Score> {
    let score = match (hybrid_score, sort_value) {
        (Some(blended), _) => blended.text_score(),
        (None, SortValue::Score(score)) => Some(*score),
        (None, _) => None,
    };
    score.map(|score| score - rescore_bonus.sum())
}

fn add_rescore_bonus(first: Explanation, rescore_bonus: RescoreBonus) -> Explanation {
    if rescore_bonus == RescoreBonus::default() {
        return first;
    }
    let mut whole = Explanation::new("sum of:", first.value() + rescore_bonus.sum());
    whole.add_detail(first);
    for part in rescore_bonus.explanations() {
        whole.add_detail(part);
    }
    whole
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
