//! Typing corrections: similar words that a word of a query may stand for.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use tantivy::query::FuzzyTermQuery;
use tantivy::{Searcher, Term};

use super::analysis::{AnalyzedQuery, QueryWord};
use super::error::IndexError;
use super::languages::{STEM_MARK, stem_by_script};
use super::schema::IndexFields;
use super::statistics::CorpusStatistics;
use super::visible_agents::{CountTermDocs, LazyVisibleAgents, VisibleAgentSet};

/// Shorter words, in letters, are not corrected.
const MIN_LETTERS: usize = 5;

const MAX_CORRECTED_WORDS: usize = 8;

/// Maximum number of corrections of a word, starting with the most used ones.
const MAX_CORRECTIONS: usize = 8;

/// Maximum number of agents with a word that may be a typing error, of the caller or of a card; or one in
/// [`RARE_FRACTION`] agents, if that is more. More frequent words are not corrected.
const RARE_DOC_FREQ: u64 = 2;
const RARE_FRACTION: u64 = 10_000;

/// How much more frequent than a rare word its correction must be. Frequencies of two correct words differ less.
const CORRECTION_FACTOR: u64 = 20;

/// Maximum number of typing errors between a word and a suggested similar word; below, the maximum number of
/// suggestions.
const MAX_TYPING_ERRORS: u8 = 2;
const MAX_SIMILAR_WORDS: usize = 3;

/// Maximum number of terms read for one form of a word.
const MAX_SCANNED_TERMS: usize = 1_024;

/// Adds corrections to each word that may be a typing error: if no agent of the caller's class contains the word, all
/// similar words in use; if hardly any does, only far more frequent ones. Matches of the word itself remain and rank
/// first.
pub(super) fn add_corrections(
    fields: &IndexFields,
    query: &mut AnalyzedQuery,
    statistics: &CorpusStatistics,
) -> Result<(), IndexError> {
    let mut corrected = 0;
    for word in &mut query.words {
        if corrected == MAX_CORRECTED_WORDS {
            break;
        }
        if !is_long_word(&word.exact) || !word.exact.chars().all(char::is_alphabetic) {
            continue;
        }
        let rare_limit = RARE_DOC_FREQ.max(statistics.agent_count() / RARE_FRACTION);
        let mut doc_freq = 0;
        for (form, _) in word.own_forms() {
            let term = Term::from_field_text(fields.text, form);
            doc_freq = doc_freq.max(statistics.count_term_docs(&term, rare_limit + 1)?);
        }
        if doc_freq > rare_limit {
            continue;
        }
        corrected += 1;
        let corrections = find_corrections(fields, word, doc_freq, statistics)?;
        word.other_forms.extend(corrections);
    }
    Ok(())
}

/// The corrections of a word that this many agents contain.
fn find_corrections(
    fields: &IndexFields,
    word: &QueryWord,
    doc_freq: u64,
    statistics: &CorpusStatistics,
) -> Result<Vec<String>, IndexError> {
    let own = [word.exact.as_str(), word.base_form()];
    let mut forms = fuzzy_forms(&statistics.visible_agents(), fields, &own, 1)?;
    if doc_freq > 0 {
        forms.retain(|form| is_long_word(form) && !own.contains(&form.as_str()));
    }
    let least = (doc_freq * CORRECTION_FACTOR).max(1);
    let mut corrections = retain_used_forms(fields, forms, least, statistics)?;
    if corrections.len() > MAX_CORRECTIONS {
        corrections = sort_forms_by_use(fields, corrections, statistics)?;
        corrections.truncate(MAX_CORRECTIONS);
    }
    Ok(corrections)
}

fn is_long_word(word: &str) -> bool {
    word.chars().nth(MIN_LETTERS - 1).is_some()
}

/// Similar words in visible agents, for a search without hits; of the forms of a word only the longest.
pub(super) fn similar_words(
    searcher: &Searcher,
    fields: &IndexFields,
    word: &QueryWord,
    visible: &mut LazyVisibleAgents,
) -> Result<Vec<String>, IndexError> {
    if !is_long_word(&word.exact) {
        return Ok(Vec::new());
    }
    let agents = visible.get_or_compute(searcher)?;
    let forms = fuzzy_forms(&agents, fields, &[&word.exact], MAX_TYPING_ERRORS)?;
    let forms = retain_used_forms(fields, forms, 1, &agents)?;
    let forms = sort_forms_by_use(fields, forms, &agents)?;
    let whole = |form: &String| {
        let mut others = forms.iter();
        !others.any(|other| {
            other.len() > form.len() && stem_by_script(other, other).as_ref() == Some(form)
        })
    };
    let similar = forms.iter().filter(|form| whole(form)).cloned();
    Ok(similar.take(MAX_SIMILAR_WORDS).collect())
}

/// Keeps the forms that at least this many agents contain.
fn retain_used_forms(
    fields: &IndexFields,
    forms: Vec<String>,
    min_docs: u64,
    agents: &impl CountTermDocs,
) -> Result<Vec<String>, IndexError> {
    let mut used = Vec::new();
    for form in forms {
        let term = Term::from_field_text(fields.text, &form);
        if agents.count_term_docs(&term, min_docs)? >= min_docs {
            used.push(form);
        }
    }
    Ok(used)
}

fn sort_forms_by_use(
    fields: &IndexFields,
    forms: Vec<String>,
    agents: &impl CountTermDocs,
) -> Result<Vec<String>, IndexError> {
    let mut counted = forms
        .into_iter()
        .map(|form| {
            let term = Term::from_field_text(fields.text, &form);
            Ok((Reverse(agents.count_term_docs(&term, u64::MAX)?), form))
        })
        .collect::<Result<Vec<_>, IndexError>>()?;
    counted.sort_unstable();
    Ok(counted.into_iter().map(|(_, form)| form).collect())
}

/// The terms in agents of a set that differ from these forms by at most this many typing errors (a letter inserted,
/// deleted or replaced, or two transposed), in alphabetical order.
fn fuzzy_forms(
    agents: &VisibleAgentSet<'_>,
    fields: &IndexFields,
    forms: &[&str],
    max_errors: u8,
) -> Result<Vec<String>, IndexError> {
    let mut similar: BTreeSet<String> = BTreeSet::new();
    for form in forms {
        let term = Term::from_field_text(fields.text, form);
        let automaton = FuzzyTermQuery::new(term, max_errors, true).automaton()?;
        let scanned =
            agents.first_terms(fields.text, None, MAX_SCANNED_TERMS, |terms, found| {
                let mut stream = terms.search(&automaton).into_stream()?;
                while stream.advance() && found(stream.key(), stream.value())? {}
                Ok(())
            })?;
        let terms = scanned
            .terms
            .iter()
            .map(|term| &scanned.bytes[term.text.clone()]);
        // Stems of a language are not spelled words.
        let words = terms.filter(|term| !term.starts_with(STEM_MARK));
        similar.extend(words.map(str::to_owned));
    }
    Ok(similar.into_iter().collect())
}
