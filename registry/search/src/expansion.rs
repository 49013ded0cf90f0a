//! Query expansion: other forms that count for a word of a query, namely synonyms, corrections of typing errors, and
//! words with a prefix.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use tantivy::{Searcher, Term};

use super::analysis::{QueryText, QueryWord, asked_pieces, fold};
use super::error::IndexError;
use super::schema::Fields;
use super::seen::{CountHolders, FirstTerms, VisibleAgents};
use super::statistics::Statistics;
use super::typing_errors::add_corrections;

/// Words read for one prefix, and the most of them that count.
const MAX_BEGINNING: usize = 65_536;
const MAX_BEGUN: usize = 64;

/// The synonyms of this crate.
static SYNONYMS: LazyLock<Synonyms> = LazyLock::new(|| read(include_str!("synonyms.txt")));

/// Synonym groups, in the (stemmed) forms of their words.
#[derive(Default)]
struct Synonyms {
    /// The forms of the other words of its groups, for each form.
    words: HashMap<String, Vec<String>>,
    /// Phrases that are synonyms only as a whole, with the forms of the others.
    phrases: Vec<(Vec<String>, Vec<String>)>,
}

/// Parses synonym groups, one per line.
fn read(text: &str) -> Synonyms {
    let mut synonyms = Synonyms::default();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    for line in lines {
        let members: Vec<Vec<String>> = line.split(',').map(forms).collect();
        for (place, member) in members.iter().enumerate() {
            let others = members.iter().enumerate();
            let others = others.filter(|(other, _)| *other != place);
            let others = others.flat_map(|(_, member)| member.clone());
            match member.as_slice() {
                [form] => synonyms
                    .words
                    .entry(form.clone())
                    .or_default()
                    .extend(others),
                _ => synonyms.phrases.push((member.clone(), others.collect())),
            }
        }
    }
    synonyms
}

/// Adds to each word of a query the forms of its synonyms. Synonyms of a phrase are added to its first word.
fn add_synonyms(synonyms: &Synonyms, query: &mut QueryText) {
    let holds = |form: &String, place: usize| query.content.contains(&(form.clone(), place));
    let said = |phrase: &[String]| {
        let mut places = query.content.iter().map(|(_, place)| *place);
        places.any(|first| phrase.iter().zip(first..).all(|(form, at)| holds(form, at)))
    };
    let said: Vec<_> = synonyms
        .phrases
        .iter()
        .filter(|(phrase, _)| said(phrase))
        .collect();
    for word in &mut query.words {
        if let Some(others) = synonyms.words.get(word.form()) {
            word.others.extend(others.iter().cloned());
        }
    }
    for (phrase, others) in said {
        let mut words = query.words.iter_mut();
        if let Some(word) = words.find(|word| phrase.iter().any(|form| form == word.form())) {
            let new = others.iter().filter(|other| !phrase.contains(other));
            word.others.extend(new.cloned());
        }
    }
}

fn forms(text: &str) -> Vec<String> {
    asked_pieces(text)
        .map(|piece| piece.stem.unwrap_or(piece.exact))
        .collect()
}

/// Adds to each word of a query the forms that count for it: synonyms, and corrections of typing errors.
pub(super) fn expand(
    fields: &Fields,
    query: &mut QueryText,
    statistics: &Statistics,
) -> Result<(), IndexError> {
    add_synonyms(&SYNONYMS, query);
    add_corrections(fields, query, statistics)
}

/// Words that match a prefix of a query.
pub(super) struct ExpandedPrefix {
    pub word: QueryWord,
    /// Whether further words have the prefix, which do not count.
    pub cut: bool,
}

/// Expands a prefix to the words of visible agents that begin with it, ordered by the number of agents of the caller's
/// class that hold them.
pub(super) fn beginning(
    searcher: &Searcher,
    fields: &Fields,
    prefix: &str,
    seen: &mut VisibleAgents,
    statistics: &Statistics,
) -> Result<ExpandedPrefix, IndexError> {
    let agents = seen.agents(searcher)?;
    let prefix = fold(prefix).into_owned();
    let FirstTerms {
        bytes,
        terms,
        mut cut,
    } = agents.first_terms(fields.text, None, MAX_BEGINNING, |terms, found| {
        let mut begun = terms.range().ge(&prefix).into_stream()?;
        while begun.advance()
            && begun.key().starts_with(prefix.as_bytes())
            && found(begun.key(), begun.value())?
        {}
        Ok(())
    })?;
    let mut bounds: BTreeMap<&str, u64> = BTreeMap::new();
    for term in &terms {
        *bounds.entry(&bytes[term.text.clone()]).or_default() += u64::from(term.info.doc_freq);
    }
    // The document frequency bounds the count of the class, so most forms need not be counted.
    let mut bounds: Vec<(Reverse<u64>, String)> = bounds
        .into_iter()
        .map(|(form, bound)| (Reverse(bound), form.to_owned()))
        .collect();
    bounds.sort_unstable();
    let mut begun: Vec<(Reverse<u64>, String)> = Vec::new();
    for bound in bounds {
        if begun.get(MAX_BEGUN).is_some_and(|last| bound > *last) {
            break;
        }
        let term = Term::from_field_text(fields.text, &bound.1);
        if agents.holders(&term, 1)? > 0 {
            let one = (Reverse(statistics.holders(&term, u64::MAX)?), bound.1);
            begun.insert(begun.partition_point(|kept| *kept < one), one);
            begun.truncate(MAX_BEGUN + 1);
        }
    }
    cut |= begun.len() > MAX_BEGUN;
    begun.truncate(MAX_BEGUN);
    let word = QueryWord {
        others: begun.into_iter().map(|(_, form)| form).collect(),
        exact: prefix,
        stem: None,
    };
    Ok(ExpandedPrefix { word, cut })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::query_text;

    #[test]
    fn groups_lead_to_each_other() {
        let read = read("# a comment\nforex, fx, currency exchange\ncar, vehicle\n");
        assert_eq!(read.words["forex"], ["fx", "currenc", "exchang"]);
        assert_eq!(read.words["car"], ["vehicl"]);
        assert!(
            !read.words.contains_key("currenc"),
            "half of a group's member"
        );
    }

    #[test]
    fn several_words_lead_to_others_only_together() {
        let synonyms = read("forex, fx, currency exchange\ntts, text speech\n");
        let others = |text: &str| {
            let mut query = query_text(text);
            add_synonyms(&synonyms, &mut query);
            let words = query.words.into_iter();
            words.flat_map(|word| word.others).collect::<Vec<_>>()
        };
        assert_eq!(others("the currency exchanges of today"), ["forex", "fx"]);
        assert_eq!(others("turn text to speech"), ["tts"]);
        for apart in [
            "exchange currency",
            "currency stock exchange",
            "currency",
            "text",
        ] {
            assert!(others(apart).is_empty(), "{apart}");
        }
        // The first member counts as much as before, and the words of a phrase are not synonyms of each other.
        assert_eq!(others("fx"), ["forex", "currenc", "exchang"]);
    }

    #[test]
    fn the_list_stays_short() {
        let lines = include_str!("synonyms.txt").lines();
        let groups: Vec<&str> = lines.filter(|line| !line.starts_with('#')).collect();
        assert!(groups.len() < 150);
        assert!(groups.iter().all(|group| group.split(',').count() > 1));
    }
}
