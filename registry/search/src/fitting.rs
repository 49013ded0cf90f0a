//! Fit: whether a match answers a query, or only shares something with it.
//!
//! Evidence comes from words and from meaning, and each is measured against what suffices alone; an agent fits if both
//! together suffice. Evidence from words is the full-text score of the first scoring, in which rare words, names and
//! tags count most, relative to the most informative words of the query: a word that no agent has counts there too.
//! Evidence from meaning is the similarity, measured by the model's cutoff, which unrelated texts seldom reach.
//!
//! Both are known of every match while matches are collected, so that the agents that fit are counted exactly, and
//! marks, totals and facets are one notion.

use tantivy::{Score, Term};

use super::analysis::QueryWord;
use super::error::IndexError;
use super::request_phrases::AGENT_WORDS;
use super::schema::IndexFields;
use super::statistics::CorpusStatistics;
use super::visible_agents::CountTermDocs as _;

/// Evidence from words that suffices in a full-text search. An agent of average length that has each of the query's
/// most informative words once has about 1.
const LEXICAL_FIT: Score = 0.38;
/// Evidence from words that suffices in a hybrid search without any from meaning, which agents that fit mostly have.
const HYBRID_FIT: Score = 0.9;
/// Number of the query's most informative words that evidence from words is relative to: no agent has all words of a
/// long sentence.
const INFORMATIVE_WORDS: usize = 4;
/// Similarity, relative to the model's cutoff, up to which meaning is no evidence.
const NO_MEANING: f32 = 0.7;
/// Similarity, relative to the model's cutoff, that suffices without any word.
const ENOUGH_MEANING: f32 = 0.98;

/// What suffices for an agent to fit one query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct FitModel {
    /// Full-text score that suffices alone.
    sufficient_text_score: Score,
    /// Similarity from which meaning counts; `None` in a full-text search.
    cutoff: Option<f32>,
}

impl FitModel {
    /// Creates the model of a query with these words, which must not be empty; `cutoff` is that of the sentence
    /// encoder, in a hybrid search. Any match of a single word suffices.
    pub fn for_words(
        statistics: &CorpusStatistics,
        fields: &IndexFields,
        words: &[QueryWord],
        cutoff: Option<f32>,
    ) -> Result<Self, IndexError> {
        // Few cards say that they are one of an agent, so "agent" would be the rarest word of "weather agent".
        let is_telling = |word: &&QueryWord| !AGENT_WORDS.contains(&&*word.exact);
        let mut idfs = words
            .iter()
            .filter(is_telling)
            .map(|word| word_idf(statistics, fields, word))
            .collect::<Result<Vec<Score>, _>>()?;
        idfs.sort_unstable_by(|left, right| right.total_cmp(left));
        let share = match (idfs.len(), cutoff) {
            (..=1, _) => 0.0,
            (_, None) => LEXICAL_FIT,
            (_, Some(_)) => HYBRID_FIT,
        };
        let informative = idfs.iter().take(INFORMATIVE_WORDS).sum::<Score>();
        Ok(Self {
            // Not zero, so that an agent without any of the words has no evidence.
            sufficient_text_score: (share * informative).max(Score::MIN_POSITIVE),
            cutoff,
        })
    }

    /// Creates the model of a query that is compared by meaning only.
    pub fn by_meaning(cutoff: f32) -> Self {
        Self {
            sufficient_text_score: Score::INFINITY,
            cutoff: Some(cutoff),
        }
    }

    /// Whether a match fits, by its full-text score before rescoring, 0 if it has none of the words, and by its
    /// similarity if it is a semantic neighbor.
    pub fn fits(self, text_score: Score, similarity: Option<f32>) -> bool {
        let meaning = match self.cutoff.zip(similarity) {
            Some((cutoff, similarity)) => meaning_evidence(similarity, cutoff),
            None => 0.0,
        };
        text_score / self.sufficient_text_score + meaning >= 1.0
    }

    /// The lowest full-text score of a match that fits without being a neighbor.
    pub fn sufficient_text_score(self) -> Score {
        self.sufficient_text_score
    }
}

/// Evidence from the similarity to a query, relative to what suffices alone.
fn meaning_evidence(similarity: f32, cutoff: f32) -> f32 {
    let (none, enough) = (NO_MEANING * cutoff, ENOUGH_MEANING * cutoff);
    (similarity - none).max(0.0) / (enough - none).max(f32::EPSILON)
}

/// The idf of the form by which agents have this word, weighted as in scores: a corrected typing error and a synonym
/// are evidence like the word itself. The idf of the word if no agent has any form.
fn word_idf(
    statistics: &CorpusStatistics,
    fields: &IndexFields,
    word: &QueryWord,
) -> Result<Score, IndexError> {
    for (form, weight) in word.weighted_forms() {
        let term = Term::from_field_text(fields.text, form);
        if statistics.count_term_docs(&term, 1)? > 0 {
            return Ok(weight * statistics.idf(&term)?);
        }
    }
    let term = Term::from_field_text(fields.text, word.base_form());
    Ok(statistics.idf(&term)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(sufficient_text_score: Score, cutoff: Option<f32>) -> FitModel {
        FitModel {
            sufficient_text_score,
            cutoff,
        }
    }

    #[test]
    fn either_evidence_suffices_and_both_add_up() {
        let cutoff = 0.25;
        let (none, alone) = (NO_MEANING * cutoff, ENOUGH_MEANING * cutoff + 1e-6);
        let hybrid = model(4.0, Some(cutoff));
        assert!(hybrid.fits(4.0, None) && !hybrid.fits(3.99, None));
        assert!(hybrid.fits(0.0, Some(alone)) && !hybrid.fits(0.0, Some(alone - 0.01)));
        let half = none + (alone - none) / 2.0;
        assert!(hybrid.fits(2.0, Some(half)) && !hybrid.fits(1.9, Some(half)));
        // A similarity below the cutoff is no evidence against an agent either.
        assert!(hybrid.fits(4.0, Some(-1.0)));
        // Without a model no similarity counts.
        assert!(!model(4.0, None).fits(3.99, Some(1.0)));
    }

    #[test]
    fn any_match_of_a_single_word_fits_and_none_is_no_evidence() {
        let single = model(Score::MIN_POSITIVE, Some(0.25));
        assert!(single.fits(1e-6, None) && single.fits(Score::MAX, Some(0.0)));
        assert!(!single.fits(0.0, None) && !single.fits(0.0, Some(0.2)));
    }

    #[test]
    fn by_meaning_only_words_are_no_evidence() {
        let meaning = FitModel::by_meaning(0.25);
        assert!(!meaning.fits(100.0, None) && !meaning.fits(100.0, Some(0.2)));
        assert!(meaning.fits(0.0, Some(0.25)));
        // Not even a cutoff of 0 divides by zero.
        assert!(FitModel::by_meaning(0.0).fits(0.0, Some(0.1)));
        assert!(!FitModel::by_meaning(0.0).fits(0.0, Some(0.0)));
    }
}
