//! Query expansion: synonyms, typing corrections, and words with a prefix count for a word of a query.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use tantivy::{Score, Searcher, Term};

use super::analysis::{AnalyzedQuery, QueryWord, split_query_words};
use super::error::IndexError;
use super::keys::visit_prefixed_terms;
use super::schema::IndexFields;
use super::statistics::CorpusStatistics;
use super::text_folding::fold_text;
use super::typing_errors::add_corrections;
use super::visible_agents::{CountTermDocs, FirstVisibleTerms, LazyVisibleAgents};

/// Maximum number of words read for one prefix; below, the maximum number of them that are searched.
const MAX_PREFIX_TERMS: usize = 65_536;
const MAX_PREFIX_WORDS: usize = 64;

static SYNONYMS: LazyLock<SynonymTable> = LazyLock::new(|| {
    let families = include_str!("word_families.txt");
    parse_synonyms(&[include_str!("synonyms.txt"), families].concat())
});

#[derive(Default)]
struct SynonymTable {
    /// By stem, for stems that identify a word: the forms of the other members of its groups.
    stems: HashMap<String, Vec<String>>,
    /// The same by inflection, for words whose stem has another meaning: `local` is not a localization.
    whole_words: HashMap<String, Vec<String>>,
    /// Phrases that are synonyms only as a whole, with the forms of the other members.
    phrases: Vec<(Vec<String>, Vec<String>)>,
}

enum SynonymMember {
    Stem(String),
    WholeWord(Vec<String>),
    Phrase(Vec<String>),
    /// A phrase whose words do not stand for it: "air ticket" is a flight, but not every ticket is.
    LeadingPhrase(Vec<String>),
}

impl SynonymMember {
    /// Parses a member. A word after `=` has a stem that other words share; a phrase after `>` only leads to the
    /// others.
    fn parse(text: &str) -> Self {
        let text = text.trim();
        if let Some(phrase) = text.strip_prefix('>') {
            return Self::LeadingPhrase(stemmed_forms(phrase));
        }
        let (word, marked) = match text.strip_prefix('=') {
            Some(word) => (word, true),
            None => (text, false),
        };
        let mut forms = stemmed_forms(word);
        match (forms.pop(), forms.is_empty()) {
            (Some(stem), true) if marked || !is_unique_stem(word, &stem) => {
                Self::WholeWord(inflections(word))
            }
            (Some(stem), true) => Self::Stem(stem),
            (last, _) => {
                forms.extend(last);
                Self::Phrase(forms)
            }
        }
    }

    fn forms(&self) -> Vec<String> {
        match self {
            Self::Stem(stem) => vec![stem.clone()],
            Self::WholeWord(forms) | Self::Phrase(forms) => forms.clone(),
            Self::LeadingPhrase(_) => Vec::new(),
        }
    }
}

/// Whether a stem is the word without at most its last letter, so that no other word has it.
fn is_unique_stem(word: &str, stem: &str) -> bool {
    let ending = word.strip_prefix(stem.strip_suffix('i').unwrap_or(stem));
    word == stem || matches!(ending, Some("e" | "s" | "y"))
}

/// The inflections of a word that a card may contain: plurals, and the forms of verbs ending in `ize`.
fn inflections(word: &str) -> Vec<String> {
    let mut forms = vec![word.to_owned()];
    match word.strip_suffix('y') {
        Some(begin) => forms.push(format!("{begin}ies")),
        None => forms.push(format!("{word}s")),
    }
    if let Some(begin) = word
        .strip_suffix('e')
        .filter(|begin| begin.ends_with(['z', 's', 't']))
    {
        forms.extend([format!("{word}d"), format!("{begin}ing")]);
    }
    forms
}

fn parse_synonyms(text: &str) -> SynonymTable {
    let mut synonyms = SynonymTable::default();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    for line in lines {
        let members: Vec<SynonymMember> = line.split(',').map(SynonymMember::parse).collect();
        for (place, member) in members.iter().enumerate() {
            let others = members.iter().enumerate();
            let others = others.filter(|(other, _)| *other != place);
            let others: Vec<String> = others.flat_map(|(_, member)| member.forms()).collect();
            match member {
                SynonymMember::Stem(stem) => {
                    let known = synonyms.stems.entry(stem.clone()).or_default();
                    known.extend(others);
                }
                SynonymMember::WholeWord(forms) => {
                    for form in forms {
                        let known = synonyms.whole_words.entry(form.clone()).or_default();
                        known.extend(others.iter().cloned());
                    }
                }
                SynonymMember::Phrase(phrase) | SynonymMember::LeadingPhrase(phrase) => {
                    synonyms.phrases.push((phrase.clone(), others));
                }
            }
        }
    }
    synonyms
}

/// Adds the forms of synonyms to each word of a query. Synonyms of a phrase are added to its first word.
fn add_synonyms(synonyms: &SynonymTable, query: &mut AnalyzedQuery) {
    let holds = |form: &String, position: usize| {
        let mut words = query.content_words.iter();
        words.any(|(known, place)| *place == position && known == form)
    };
    let has_phrase = |phrase: &[String]| {
        let mut places = query.content_words.iter().map(|(_, place)| *place);
        places.any(|first| phrase.iter().zip(first..).all(|(form, at)| holds(form, at)))
    };
    let matched_phrases: Vec<_> = synonyms
        .phrases
        .iter()
        .filter(|(phrase, _)| has_phrase(phrase))
        .collect();
    for word in &mut query.words {
        let others = [
            synonyms.stems.get(word.base_form()),
            synonyms.whole_words.get(&word.exact),
        ];
        for other in others.into_iter().flatten().flatten() {
            if !word.other_forms.contains(other) {
                word.other_forms.push(other.clone());
            }
        }
    }
    for (phrase, others) in matched_phrases {
        let mut words = query.words.iter_mut();
        if let Some(word) = words.find(|word| phrase.iter().any(|form| form == word.base_form())) {
            let new = others.iter().filter(|other| !phrase.contains(other));
            word.other_forms.extend(new.cloned());
        }
    }
}

fn stemmed_forms(text: &str) -> Vec<String> {
    split_query_words(text)
        .map(|piece| piece.stem.unwrap_or(piece.exact))
        .collect()
}

pub(super) fn expand_query(
    fields: &IndexFields,
    query: &mut AnalyzedQuery,
    statistics: &CorpusStatistics,
) -> Result<(), IndexError> {
    add_language_stems(fields, query, statistics)?;
    add_synonyms(&SYNONYMS, query);
    add_corrections(fields, query, statistics)
}

/// Adds the stems in the query's languages that agents of the caller's class contain. Most agents are in another
/// language, so such a stem is rare; its weight is limited to that of the word it stems from.
pub(super) fn add_language_stems(
    fields: &IndexFields,
    query: &mut AnalyzedQuery,
    statistics: &CorpusStatistics,
) -> Result<(), IndexError> {
    let languages = query.languages.intersection(statistics.languages());
    if languages.is_empty() {
        return Ok(());
    }
    for word in &mut query.words {
        let stems = languages.stems(&word.spelling, &word.exact);
        if stems.is_empty() {
            continue;
        }
        let written = Term::from_field_text(fields.text, word.base_form());
        let written_idf = match statistics.count_term_docs(&written, 1)? {
            0 => Score::INFINITY,
            _ => statistics.idf(&written)?,
        };
        for stem in stems {
            let term = Term::from_field_text(fields.text, &stem);
            if statistics.count_term_docs(&term, 1)? > 0 {
                let weight = (written_idf / statistics.idf(&term)?).min(1.0);
                word.language_stems.push((stem, weight));
            }
        }
    }
    Ok(())
}

pub(super) struct ExpandedPrefix {
    pub word: QueryWord,
    /// Whether more words have the prefix; they are ignored.
    pub truncated: bool,
}

/// Expands a prefix to words of visible agents, ordered by how many agents of the caller's class contain them.
pub(super) fn expand_prefix(
    searcher: &Searcher,
    fields: &IndexFields,
    prefix: &str,
    visible: &mut LazyVisibleAgents,
    statistics: &CorpusStatistics,
) -> Result<ExpandedPrefix, IndexError> {
    let agents = visible.get_or_compute(searcher)?;
    let prefix = fold_text(prefix).into_owned();
    let FirstVisibleTerms {
        bytes,
        terms,
        truncated: mut cut,
    } = agents.first_terms(fields.text, None, MAX_PREFIX_TERMS, |terms, found| {
        visit_prefixed_terms(terms, &prefix, found)
    })?;
    let mut bounds: BTreeMap<&str, u64> = BTreeMap::new();
    for term in &terms {
        *bounds.entry(&bytes[term.text.clone()]).or_default() += u64::from(term.info.doc_freq);
    }
    // The document frequency is an upper bound of the count in the class, so most forms need no count.
    let mut bounds: Vec<(Reverse<u64>, String)> = bounds
        .into_iter()
        .map(|(form, bound)| (Reverse(bound), form.to_owned()))
        .collect();
    bounds.sort_unstable();
    let mut best_words: Vec<(Reverse<u64>, String)> = Vec::new();
    for bound in bounds {
        if best_words
            .get(MAX_PREFIX_WORDS)
            .is_some_and(|last| bound > *last)
        {
            break;
        }
        let term = Term::from_field_text(fields.text, &bound.1);
        if agents.count_term_docs(&term, 1)? > 0 {
            let one = (
                Reverse(statistics.count_term_docs(&term, u64::MAX)?),
                bound.1,
            );
            best_words.insert(best_words.partition_point(|kept| *kept < one), one);
            best_words.truncate(MAX_PREFIX_WORDS + 1);
        }
    }
    cut |= best_words.len() > MAX_PREFIX_WORDS;
    best_words.truncate(MAX_PREFIX_WORDS);
    let word = QueryWord {
        other_forms: best_words.into_iter().map(|(_, form)| form).collect(),
        spelling: prefix.clone(),
        exact: prefix,
        stem: None,
        language_stems: Vec::new(),
        correction: None,
    };
    Ok(ExpandedPrefix {
        word,
        truncated: cut,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::analyze_query;

    #[test]
    fn groups_lead_to_each_other() {
        let read = parse_synonyms("# a comment\nforex, fx, currency exchange\ncar, vehicle\n");
        assert_eq!(read.stems["forex"], ["fx", "currenc", "exchang"]);
        assert_eq!(read.stems["car"], ["vehicl"]);
        assert!(
            !read.stems.contains_key("currenc"),
            "half of a group's member"
        );
    }

    #[test]
    fn a_word_whose_stem_means_something_else_counts_as_a_whole() {
        let synonyms = parse_synonyms(
            "localize, localization, translate\ncustomer, client\n=excel, spreadsheet\n",
        );
        let others = |text: &str| {
            let mut query = analyze_query(text);
            add_synonyms(&synonyms, &mut query);
            let words = query.words.into_iter();
            words.flat_map(|word| word.other_forms).collect::<Vec<_>>()
        };
        assert_eq!(
            others("translating"),
            [
                "localize",
                "localizes",
                "localized",
                "localizing",
                "localization",
                "localizations"
            ]
        );
        assert!(others("localizing").contains(&"translat".to_owned()));
        assert_eq!(others("clients"), ["customer", "customers"]);
        assert_eq!(others("customers"), ["client"]);
        assert_eq!(others("spreadsheet"), ["excel", "excels"]);
        for other in ["local", "locals", "custom", "excellent"] {
            assert!(others(other).is_empty(), "{other}");
        }
    }

    #[test]
    fn several_words_lead_to_others_only_together() {
        let synonyms = parse_synonyms("forex, fx, currency exchange\ntts, text speech\n");
        let others = |text: &str| {
            let mut query = analyze_query(text);
            add_synonyms(&synonyms, &mut query);
            let words = query.words.into_iter();
            words.flat_map(|word| word.other_forms).collect::<Vec<_>>()
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
        // The first member keeps its weight, and the words of a phrase are not synonyms of each other.
        assert_eq!(others("fx"), ["forex", "currenc", "exchang"]);
    }

    #[test]
    fn a_phrase_may_lead_to_words_that_do_not_lead_to_it() {
        let synonyms = parse_synonyms("flight, airfare, >air ticket\n");
        let others = |text: &str| {
            let mut query = analyze_query(text);
            add_synonyms(&synonyms, &mut query);
            let words = query.words.into_iter();
            words.flat_map(|word| word.other_forms).collect::<Vec<_>>()
        };
        assert_eq!(others("cheap air tickets"), ["flight", "airfar"]);
        assert_eq!(others("flights"), ["airfar"]);
        for apart in ["ticket", "air", "ticket air"] {
            assert!(others(apart).is_empty(), "{apart}");
        }
    }

    #[test]
    fn words_of_a_family_lead_to_each_other_and_not_to_words_that_look_like_them() {
        let others = |text: &str| {
            let mut query = analyze_query(text);
            add_synonyms(&SYNONYMS, &mut query);
            let words = query.words.into_iter();
            words.flat_map(|word| word.other_forms).collect::<Vec<_>>()
        };
        for (word, other) in [
            ("convert", "conversion"),
            ("converter", "conversions"),
            ("conversion", "convert"),
            ("classification", "classifi"),
            ("verify", "verification"),
            ("diagnosis", "diagnos"),
            ("subscribe", "subscription"),
        ] {
            let others = others(word);
            assert!(others.contains(&other.to_owned()), "{word} {others:?}");
        }
        for other in ["conversation", "product", "local", "customs"] {
            assert!(others(other).is_empty(), "{other}");
        }
    }

    #[test]
    fn the_lists_stay_short() {
        for list in [
            include_str!("synonyms.txt"),
            include_str!("word_families.txt"),
        ] {
            let lines = list.lines();
            let groups: Vec<&str> = lines.filter(|line| !line.starts_with('#')).collect();
            assert!(groups.len() < 150);
            assert!(groups.iter().all(|group| group.split(',').count() > 1));
            assert!(list.ends_with('\n'), "the lists are read as one");
        }
    }
}
