//! Explanations of the scores of hits: in sentences, and as a tree of the parts.
//!
//! The counts of agents are removed from tantivy's explanations, even those of agents that callers may find.

use serde::ser::Error;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use tantivy::query::{Explanation, Weight};
use tantivy::{DocAddress, Score};

use super::error::IndexError;
use super::highlight::Highlighter;
use super::hybrid_score::HybridScore;
use super::prepared_query::PreparedQuery;
use super::request::SortValue;
use super::rescore_bonus::RescoreBonus;
use super::schema::IndexFields;
use super::score_reasons::{MatchedForms, ScoreParts, ScoreReasonBuilder};

/// Prefixes of details about other agents: document frequency, number of documents, mean length.
const FOREIGN_COUNT_PREFIXES: [&str; 3] = ["n, ", "N, ", "avgdl, "];

/// An explanation without counts of other agents.
struct PublicExplanation(pub Explanation);

impl Serialize for PublicExplanation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut value = serde_json::to_value(&self.0).map_err(S::Error::custom)?;
        strip_corpus_counts(&mut value);
        value.serialize(serializer)
    }
}

fn strip_corpus_counts(explanation: &mut Value) {
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
    details.iter_mut().for_each(strip_corpus_counts);
}

/// Maximum number of terms of a query whose computation is shown in full; beyond it only the most important terms are
/// shown.
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
