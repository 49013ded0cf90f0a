//! Corrections of typing errors: similar words that a word of a query may stand for.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use tantivy::query::FuzzyTermQuery;
use tantivy::{Searcher, Term};

use super::analysis::{QueryText, QueryWord};
use super::error::IndexError;
use super::languages::{STEM_MARK, stem};
use super::schema::Fields;
use super::seen::{CountHolders, SeenAgents, VisibleAgents};
use super::statistics::Statistics;

/// Shorter words, in letters, are not corrected.
const LEAST_LETTERS: usize = 5;

const MAX_MISTYPED: usize = 8;

/// The most corrections of a word; the most used ones count.
const MAX_CORRECTIONS: usize = 8;

/// The most holders of a word that may be a typing error, the caller's or the cards' own; or one in [`RARE_AMONG`]
/// agents, if that is more. More frequent words are not checked for similar ones.
const RARE: u64 = 2;
const RARE_AMONG: u64 = 10_000;

/// How much more frequent than a rare word its correction must be. Two words that are both in use differ less.
const FAR_MORE: u64 = 20;

/// The most typing errors between a word and a suggested similar one, and the most suggestions.
const MAX_ERRORS: u8 = 2;
const MAX_NEAR: usize = 3;

/// The most terms read for one form of a word.
const MAX_LOOKED_AT: usize = 1_024;

/// Adds corrections to each word that may be a typing error: if no agent of the caller's class holds the word, all
/// similar words in use; if hardly any does, only far more frequent ones. Matches of the word itself remain, and rank
/// first.
pub(super) fn add_corrections(
    fields: &Fields,
    query: &mut QueryText,
    statistics: &Statistics,
) -> Result<(), IndexError> {
    let mut mistyped = 0;
    for word in &mut query.words {
        if mistyped == MAX_MISTYPED {
            break;
        }
        if !is_long(&word.exact) || !word.exact.chars().all(char::is_alphabetic) {
            continue;
        }
        let rare = RARE.max(statistics.agents() / RARE_AMONG);
        let mut holders = 0;
        for (form, _) in word.own_forms() {
            let term = Term::from_field_text(fields.text, form);
            holders = holders.max(statistics.holders(&term, rare + 1)?);
        }
        if holders > rare {
            continue;
        }
        mistyped += 1;
        let corrections = corrections(fields, word, holders, statistics)?;
        word.others.extend(corrections);
    }
    Ok(())
}

/// Corrections of a word that this many agents hold.
fn corrections(
    fields: &Fields,
    word: &QueryWord,
    holders: u64,
    statistics: &Statistics,
) -> Result<Vec<String>, IndexError> {
    let own = [word.exact.as_str(), word.form()];
    let mut forms = written_nearly(&statistics.class(), fields, &own, 1)?;
    if holders > 0 {
        forms.retain(|form| is_long(form) && !own.contains(&form.as_str()));
    }
    let least = (holders * FAR_MORE).max(1);
    let mut corrections = used(fields, forms, least, statistics)?;
    if corrections.len() > MAX_CORRECTIONS {
        corrections = most_used(fields, corrections, statistics)?;
        corrections.truncate(MAX_CORRECTIONS);
    }
    Ok(corrections)
}

fn is_long(word: &str) -> bool {
    word.chars().nth(LEAST_LETTERS - 1).is_some()
}

/// Similar words that visible agents hold, for a caller who found nothing; of the forms of a word only the longest.
pub(super) fn near(
    searcher: &Searcher,
    fields: &Fields,
    word: &QueryWord,
    seen: &mut VisibleAgents,
) -> Result<Vec<String>, IndexError> {
    if !is_long(&word.exact) {
        return Ok(Vec::new());
    }
    let agents = seen.agents(searcher)?;
    let forms = written_nearly(&agents, fields, &[&word.exact], MAX_ERRORS)?;
    let forms = used(fields, forms, 1, &agents)?;
    let forms = most_used(fields, forms, &agents)?;
    let whole = |form: &String| {
        let mut others = forms.iter();
        !others.any(|other| other.len() > form.len() && stem(other, other).as_ref() == Some(form))
    };
    let near = forms.iter().filter(|form| whole(form)).cloned();
    Ok(near.take(MAX_NEAR).collect())
}

/// Keeps the forms that at least `least` agents hold.
fn used(
    fields: &Fields,
    forms: Vec<String>,
    least: u64,
    agents: &impl CountHolders,
) -> Result<Vec<String>, IndexError> {
    let mut used = Vec::new();
    for form in forms {
        let term = Term::from_field_text(fields.text, &form);
        if agents.holders(&term, least)? >= least {
            used.push(form);
        }
    }
    Ok(used)
}

fn most_used(
    fields: &Fields,
    forms: Vec<String>,
    agents: &impl CountHolders,
) -> Result<Vec<String>, IndexError> {
    let mut counted = forms
        .into_iter()
        .map(|form| {
            let term = Term::from_field_text(fields.text, &form);
            Ok((Reverse(agents.holders(&term, u64::MAX)?), form))
        })
        .collect::<Result<Vec<_>, IndexError>>()?;
    counted.sort_unstable();
    Ok(counted.into_iter().map(|(_, form)| form).collect())
}

/// Terms that agents of a set hold, and that differ from these forms by at most this many typing errors (a letter
/// inserted, deleted or replaced, or two transposed), in alphabetical order.
fn written_nearly(
    agents: &SeenAgents<'_>,
    fields: &Fields,
    forms: &[&str],
    errors: u8,
) -> Result<Vec<String>, IndexError> {
    let mut near: BTreeSet<String> = BTreeSet::new();
    for form in forms {
        let term = Term::from_field_text(fields.text, form);
        let automaton = FuzzyTermQuery::new(term, errors, true).automaton()?;
        let found = agents.first_terms(fields.text, None, MAX_LOOKED_AT, |terms, found| {
            let mut near = terms.search(&automaton).into_stream()?;
            while near.advance() && found(near.key(), near.value())? {}
            Ok(())
        })?;
        let terms = found
            .terms
            .iter()
            .map(|term| &found.bytes[term.text.clone()]);
        // Stems of a language are not words.
        let words = terms.filter(|term| !term.starts_with(STEM_MARK));
        near.extend(words.map(str::to_owned));
    }
    Ok(near.into_iter().collect())
}
