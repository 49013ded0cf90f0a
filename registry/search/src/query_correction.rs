//! Query correction: the words of a query with those that its typing errors stand for, for the encoder of semantic
//! search, to which a misspelled word means nothing. Full text searches both spellings.

use super::Index;
use super::analysis::{AnalyzedQuery, analyze_query, split_query_words};
use super::error::IndexError;
use super::query_expansion::add_language_stems;
use super::query_parser::query_words;
use super::typing_errors::{add_corrections, may_be_misspelled};

/// Whether a query has a word that may be a typing error, which the index decides. Most queries have none.
pub fn may_have_typing_errors(query: &str) -> bool {
    query_words(query)
        .is_some_and(|words| split_query_words(&words).any(|word| may_be_misspelled(&word.exact)))
}

impl Index {
    /// The words of a query with their typing errors corrected to words of the agents that every caller with one of
    /// these labels finds; `None` if there is nothing to correct.
    ///
    /// # Errors
    /// Failures to read the index.
    pub fn correct_query(
        &self,
        query: &str,
        class_labels: &[String],
    ) -> Result<Option<String>, IndexError> {
        let Some(words) = query_words(query) else {
            return Ok(None);
        };
        let inner = &*self.0;
        let view = inner.current_view()?;
        let statistics = inner.corpus_statistics(&view, class_labels)?;
        let mut analyzed = analyze_query(&words);
        add_language_stems(&inner.fields, &mut analyzed, &statistics)?;
        add_corrections(&inner.fields, &mut analyzed, &statistics)?;
        Ok(replace_misspelled(&words, &analyzed))
    }
}

fn replace_misspelled(words: &str, query: &AnalyzedQuery) -> Option<String> {
    let mut corrected = String::new();
    let mut end = 0;
    for piece in split_query_words(words) {
        let mut known = query.words.iter();
        let correction = known
            .find(|word| word.exact == piece.exact)
            .and_then(|word| word.correction.as_ref());
        // The parts of a camel-case word are within it.
        if let Some(correction) = correction.filter(|_| piece.range.start >= end) {
            corrected.push_str(&words[end..piece.range.start]);
            corrected.push_str(correction);
            end = piece.range.end;
        }
    }
    (end > 0).then(|| corrected + &words[end..])
}
