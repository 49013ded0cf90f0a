//! Typing corrections: similar words that a word of a query may stand for.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use tantivy::query::FuzzyTermQuery;
use tantivy::{Searcher, Term};

use super::analysis::{AnalyzedQuery, QueryWord};
use super::error::IndexError;
use super::everyday_words::is_everyday_word;
use super::keys::visit_prefixed_terms;
use super::languages::{LanguageSet, STEM_MARK, stem_by_script};
use super::schema::IndexFields;
use super::statistics::CorpusStatistics;
use super::visible_agents::{CountTermDocs, LazyVisibleAgents, VisibleAgentSet};

/// Shorter words, in letters, are not corrected.
const MIN_LETTERS: usize = 5;
/// Words from this length on may have two errors, if no similar word has only one.
const MIN_LETTERS_OF_TWO_ERRORS: usize = 7;
/// The longest ending, in letters, of a word whose stem is corrected: a much shorter stem is similar to other words.
const MAX_ENDING_LETTERS: usize = 3;

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

/// Maximum number of terms read to find a word with a stem; below, the maximum number read for one form of a word.
const MAX_INFLECTIONS: usize = 64;
const MAX_SCANNED_TERMS: usize = 1_024;

/// Whether a folded word may be a typing error, as far as the word alone shows.
pub(super) fn may_be_misspelled(word: &str) -> bool {
    is_long_word(word) && word.chars().all(char::is_alphabetic) && !is_everyday_word(word)
}

/// Adds corrections to each word that may be a typing error: if no agent of the caller's class contains the word, all
/// similar words in use; if hardly any does, only far more frequent ones. Matches of the word itself remain and rank
/// first.
pub(super) fn add_corrections(
    fields: &IndexFields,
    query: &mut AnalyzedQuery,
    statistics: &CorpusStatistics,
) -> Result<(), IndexError> {
    // A word of another language is more likely to be missing than to be misspelled English.
    let is_foreign = !query.languages.is_empty() && query.languages != LanguageSet::ALL;
    let mut corrected = 0;
    for word in &mut query.words {
        if corrected == MAX_CORRECTED_WORDS {
            break;
        }
        if !may_be_misspelled(&word.exact) {
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
        let is_certain_error = doc_freq == 0 && !is_foreign && word.exact.is_ascii();
        let mut corrections = find_one_error_corrections(fields, word, doc_freq, statistics)?;
        if corrections.is_empty() && is_certain_error {
            corrections = find_two_error_corrections(fields, word, statistics)?;
        }
        if let Some(best) = corrections.first().filter(|_| is_certain_error) {
            let agents = statistics.visible_agents();
            word.correction = Some(match best.spelling == best.form {
                true => find_written_word(&agents, fields, &best.form)?,
                false => best.spelling.clone(),
            });
        }
        let forms = corrections.into_iter().map(|correction| correction.form);
        word.other_forms.extend(forms);
    }
    Ok(())
}

/// A word that another one may stand for.
struct Correction {
    /// The whole word, or its stem if only that is similar.
    spelling: String,
    /// The form that every text with the word contains.
    form: String,
}

/// The corrections with one typing error of a word that this many agents contain, the most used first. People rarely
/// mistype the first letter.
fn find_one_error_corrections(
    fields: &IndexFields,
    word: &QueryWord,
    doc_freq: u64,
    statistics: &CorpusStatistics,
) -> Result<Vec<Correction>, IndexError> {
    let agents = statistics.visible_agents();
    let exact = word.exact.as_str();
    let mut similar = fuzzy_forms(&agents, fields, exact, 1, first_letters(exact, 1))?;
    let is_similar_to_word = |stem: &&str| {
        is_long_word(stem) && exact.chars().count() <= stem.chars().count() + MAX_ENDING_LETTERS
    };
    if let Some(stem) = word.stem.as_deref().filter(is_similar_to_word) {
        similar.extend(fuzzy_forms(
            &agents,
            fields,
            stem,
            1,
            first_letters(stem, 1),
        )?);
    }
    if doc_freq > 0 {
        similar.retain(|form| is_long_word(form));
    }
    let least = (doc_freq * CORRECTION_FACTOR).max(1);
    retain_corrections(fields, word, similar, least, statistics)
}

/// The corrections with two typing errors of a word that no agent contains, the most used first. They begin with the
/// same two letters, and lack at most one letter of the word: names of products are often a word with an addition.
fn find_two_error_corrections(
    fields: &IndexFields,
    word: &QueryWord,
    statistics: &CorpusStatistics,
) -> Result<Vec<Correction>, IndexError> {
    let exact = word.exact.as_str();
    if exact.chars().nth(MIN_LETTERS_OF_TWO_ERRORS - 1).is_none() {
        return Ok(Vec::new());
    }
    let agents = statistics.visible_agents();
    let mut similar = fuzzy_forms(&agents, fields, exact, 2, first_letters(exact, 2))?;
    similar.retain(|form| form.chars().count() + 1 >= exact.chars().count());
    retain_corrections(fields, word, similar, 1, statistics)
}

/// The corrections of a word among similar terms that at least this many agents contain, the most used first.
fn retain_corrections(
    fields: &IndexFields,
    word: &QueryWord,
    similar: Vec<String>,
    min_docs: u64,
    statistics: &CorpusStatistics,
) -> Result<Vec<Correction>, IndexError> {
    let count = |form: &str| {
        let term = Term::from_field_text(fields.text, form);
        statistics.count_term_docs(&term, u64::MAX)
    };
    // By form, the longest of its spellings: a stem may be similar too.
    let mut spellings: BTreeMap<String, String> = BTreeMap::new();
    for spelling in similar {
        // The terms may include words of hidden agents.
        if count(&spelling)? == 0 {
            continue;
        }
        let form = match stem_by_script(&spelling, &spelling) {
            Some(stem) if count(&stem)? > 0 => stem,
            _ => spelling.clone(),
        };
        if form == word.exact || form == word.base_form() {
            continue;
        }
        let longest = spellings.entry(form).or_default();
        if spelling.len() > longest.len() {
            *longest = spelling;
        }
    }
    let mut used: Vec<(Reverse<u64>, Correction)> = Vec::new();
    for (form, spelling) in spellings {
        let docs = count(&form)?;
        if docs >= min_docs {
            used.push((Reverse(docs), Correction { spelling, form }));
        }
    }
    used.sort_by_key(|(docs, _)| *docs);
    used.truncate(MAX_CORRECTIONS);
    Ok(used.into_iter().map(|(_, correction)| correction).collect())
}

/// The shortest word of the agents with this stem; the stem itself if it is a word.
fn find_written_word(
    agents: &VisibleAgentSet<'_>,
    fields: &IndexFields,
    stem: &str,
) -> Result<String, IndexError> {
    if is_everyday_word(stem) {
        return Ok(stem.to_owned());
    }
    // Stemming turns a final `y` into `i`.
    let beginning = stem.strip_suffix('i').unwrap_or(stem);
    let scanned = agents.first_terms(fields.text, None, MAX_INFLECTIONS, |terms, found| {
        visit_prefixed_terms(terms, beginning, found)
    })?;
    let words = scanned.terms.iter();
    let words = words.map(|term| &scanned.bytes[term.text.clone()]);
    let inflections = words
        .filter(|word| stem_by_script(word, word).as_deref() == Some(stem))
        .map(ToOwned::to_owned)
        .collect();
    // The terms may include words of hidden agents.
    let inflections = retain_used_forms(fields, inflections, 1, agents)?;
    let shortest = inflections.into_iter().min_by_key(String::len);
    Ok(shortest.unwrap_or_else(|| stem.to_owned()))
}

fn first_letters(word: &str, count: usize) -> &str {
    let end = word.char_indices().nth(count);
    end.map_or(word, |(end, _)| &word[..end])
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
    let forms = fuzzy_forms(&agents, fields, &word.exact, MAX_TYPING_ERRORS, "")?;
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

/// The terms in agents of a set that begin with these letters and differ from a form by at most this many typing
/// errors (a letter inserted, deleted or replaced, or two transposed), in alphabetical order.
fn fuzzy_forms(
    agents: &VisibleAgentSet<'_>,
    fields: &IndexFields,
    form: &str,
    max_errors: u8,
    beginning: &str,
) -> Result<Vec<String>, IndexError> {
    let term = Term::from_field_text(fields.text, form);
    let automaton = FuzzyTermQuery::new(term, max_errors, true).automaton()?;
    // UTF-8 text contains no byte 255, so this bound is after all terms with the beginning and before all others.
    let mut upper_bound = beginning.as_bytes().to_vec();
    match upper_bound.last_mut() {
        Some(last) => *last += 1,
        None => upper_bound.push(u8::MAX),
    }
    let scanned = agents.first_terms(fields.text, None, MAX_SCANNED_TERMS, |terms, found| {
        let begun = terms.search(&automaton).ge(beginning).lt(&upper_bound);
        let mut stream = begun.into_stream()?;
        while stream.advance() && found(stream.key(), stream.value())? {}
        Ok(())
    })?;
    let mut similar: Vec<String> = Vec::new();
    for term in &scanned.terms {
        let text = &scanned.bytes[term.text.clone()];
        // Stems of a language are not spelled words, and several segments contain the same term.
        let is_known = similar.last().is_some_and(|last| last == text);
        if !is_known && !text.starts_with(STEM_MARK) {
            similar.push(text.to_owned());
        }
    }
    Ok(similar)
}
