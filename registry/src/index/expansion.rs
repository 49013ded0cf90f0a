//! Further forms that count for a word of a query: words that mean the same, and words it may be a typing
//! error of.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use tantivy::query::FuzzyTermQuery;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocSet, Searcher, TERMINATED, Term};

use super::analysis::{QueryWord, fold, pieces, stem};
use super::bits::Bits;
use super::error::IndexError;
use super::filter::Filter;
use super::schema::Fields;

/// The shortest word, in letters, that is taken for a typing error.
const LEAST_LETTERS: usize = 5;

/// Words of one query that are looked at for typing errors.
const MAX_MISTYPED: usize = 8;

/// Words of the index that one word may be an error of; the most used ones count.
const MAX_MEANT: usize = 8;

/// Typing errors in one word up to which another is offered as near, and how many are.
const MAX_ERRORS: u8 = 2;
const MAX_NEAR: usize = 3;

/// Words of the index that are looked at for one word.
const MAX_LOOKED_AT: usize = 256;

/// Words of the index that are looked at for one beginning, and how many of them count.
const MAX_BEGINNING: usize = 4_096;
const MAX_BEGUN: usize = 64;

/// A word that more agents than this hold is no typing error, whoever may see them.
const USED: u64 = 1_000;

/// The forms of other words for each form.
static SYNONYMS: LazyLock<HashMap<String, Vec<String>>> =
    LazyLock::new(|| read(include_str!("synonyms.txt")));

/// Reads groups of words that mean the same.
fn read(text: &str) -> HashMap<String, Vec<String>> {
    let mut synonyms: HashMap<String, Vec<String>> = HashMap::new();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    for line in lines {
        let members: Vec<Vec<String>> = line.split(',').map(forms).collect();
        for (place, member) in members.iter().enumerate() {
            // Several words mean the same only together, so none of them alone leads to the others.
            let [form] = member.as_slice() else { continue };
            let others = members.iter().enumerate();
            let others = others.filter(|(other, _)| *other != place);
            let known = synonyms.entry(form.clone()).or_default();
            known.extend(others.flat_map(|(_, member)| member.clone()));
        }
    }
    synonyms
}

fn forms(text: &str) -> Vec<String> {
    let pieces = pieces(text).into_iter();
    pieces
        .map(|piece| piece.stem.unwrap_or(piece.exact))
        .collect()
}

/// Adds to each word the forms of the others that count for it. `seen` says which agents the caller may see: a
/// word that none of them holds may be a typing error.
///
/// # Errors
/// Where the index cannot be read.
pub(super) fn expand(
    searcher: &Searcher,
    fields: &Fields,
    words: &mut [QueryWord],
    seen: &Filter,
) -> Result<(), IndexError> {
    let mut bits = None;
    let mut mistyped = 0;
    for word in words {
        if let Some(others) = SYNONYMS.get(word.form()) {
            word.others.extend(others.iter().cloned());
        }
        let letters = word.exact.chars();
        if mistyped == MAX_MISTYPED
            || letters.clone().count() < LEAST_LETTERS
            || !letters.clone().all(char::is_alphabetic)
        {
            continue;
        }
        let term = Term::from_field_text(fields.text, word.form());
        if searcher.doc_freq(&term)? > USED {
            continue;
        }
        let bits = match &bits {
            Some(bits) => bits,
            None => bits.insert(seen_bits(searcher, seen)?),
        };
        if is_held(searcher, &term, bits)? {
            continue;
        }
        mistyped += 1;
        let forms = [word.exact.as_str(), word.form()];
        let meant = written_nearly(searcher, fields, &forms, 1, bits)?;
        word.others.extend(meant.into_iter().take(MAX_MEANT));
    }
    Ok(())
}

/// A word for the beginning of words: those of the index that begin so, the most used ones.
///
/// # Errors
/// Where the index cannot be read.
pub(super) fn beginning(
    searcher: &Searcher,
    fields: &Fields,
    prefix: &str,
) -> Result<QueryWord, IndexError> {
    let prefix = fold(prefix).into_owned();
    let mut begun: BTreeMap<String, u64> = BTreeMap::new();
    for reader in searcher.segment_readers() {
        let index = reader.inverted_index(fields.text)?;
        let mut found = index.terms().range().ge(&prefix).into_stream()?;
        let mut looked_at = 0;
        while looked_at < MAX_BEGINNING && found.advance() {
            let Some(form) = std::str::from_utf8(found.key())
                .ok()
                .filter(|form| form.starts_with(&prefix))
            else {
                break;
            };
            looked_at += 1;
            *begun.entry(form.to_owned()).or_default() += u64::from(found.value().doc_freq);
        }
    }
    let mut begun: Vec<(String, u64)> = begun.into_iter().collect();
    begun.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0)));
    begun.truncate(MAX_BEGUN);
    Ok(QueryWord {
        others: begun.into_iter().map(|(form, _)| form).collect(),
        exact: prefix,
        stem: None,
    })
}

fn seen_bits(searcher: &Searcher, seen: &Filter) -> Result<Vec<Bits>, IndexError> {
    let readers = searcher.segment_readers().iter();
    let bits = readers.map(|reader| seen.bits(reader));
    Ok(bits.collect::<tantivy::Result<_>>()?)
}

/// Whether an agent in these sets, one of each segment, holds a term.
fn is_held(searcher: &Searcher, term: &Term, bits: &[Bits]) -> Result<bool, IndexError> {
    for (reader, bits) in searcher.segment_readers().iter().zip(bits) {
        let index = reader.inverted_index(term.field())?;
        let Some(mut postings) = index.read_postings(term, IndexRecordOption::Basic)? else {
            continue;
        };
        while postings.doc() != TERMINATED {
            if bits.contains(postings.doc()) {
                return Ok(true);
            }
            postings.advance();
        }
    }
    Ok(false)
}

/// Words that agents which the caller may see hold and that are written nearly like this one, for somebody who has
/// found nothing. Of the forms of a word only the longest.
///
/// # Errors
/// Where the index cannot be read.
pub(super) fn near(
    searcher: &Searcher,
    fields: &Fields,
    word: &QueryWord,
    seen: &Filter,
) -> Result<Vec<String>, IndexError> {
    if word.exact.chars().count() < LEAST_LETTERS {
        return Ok(Vec::new());
    }
    let bits = seen_bits(searcher, seen)?;
    let forms = written_nearly(searcher, fields, &[&word.exact], MAX_ERRORS, &bits)?;
    let whole = |form: &String| {
        let mut others = forms.iter();
        !others.any(|other| other.len() > form.len() && stem(other).as_ref() == Some(form))
    };
    let near = forms.iter().filter(|form| whole(form)).cloned();
    Ok(near.take(MAX_NEAR).collect())
}

/// The terms at most so many typing errors away from these forms (a letter too many, too few, another, or two that changed places)
/// that agents in these sets hold, the most used first; at most twice [`MAX_MEANT`].
fn written_nearly(
    searcher: &Searcher,
    fields: &Fields,
    forms: &[&str],
    errors: u8,
    bits: &[Bits],
) -> Result<Vec<String>, IndexError> {
    let mut near: BTreeMap<String, u64> = BTreeMap::new();
    for form in forms {
        let term = Term::from_field_text(fields.text, form);
        for reader in searcher.segment_readers() {
            let automaton = FuzzyTermQuery::new(term.clone(), errors, true).automaton()?;
            let index = reader.inverted_index(fields.text)?;
            let mut found = index.terms().search(automaton).into_stream()?;
            while found.advance() && near.len() < MAX_LOOKED_AT {
                if let Ok(text) = std::str::from_utf8(found.key()) {
                    *near.entry(text.to_owned()).or_default() += u64::from(found.value().doc_freq);
                }
            }
        }
    }
    let mut near: Vec<(String, u64)> = near.into_iter().collect();
    near.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0)));
    let mut held = Vec::new();
    for (form, _) in near {
        if held.len() == 2 * MAX_MEANT {
            break;
        }
        if is_held(searcher, &Term::from_field_text(fields.text, &form), bits)? {
            held.push(form);
        }
    }
    Ok(held)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_lead_to_each_other() {
        let read = read("# a comment\nforex, fx, currency exchange\ncar, vehicle\n");
        assert_eq!(read["forex"], ["fx", "currenc", "exchang"]);
        assert_eq!(read["car"], ["vehicl"]);
        assert!(!read.contains_key("currenc"), "half of a group's member");
    }

    #[test]
    fn the_list_stays_short() {
        let lines = include_str!("synonyms.txt").lines();
        let groups: Vec<&str> = lines.filter(|line| !line.starts_with('#')).collect();
        assert!(groups.len() < 150);
        assert!(groups.iter().all(|group| group.split(',').count() > 1));
    }
}
