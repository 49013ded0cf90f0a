//! Languages of a card or query, detected by function words, and the stems of words in them.
//!
//! Stems of a language are separate terms with a mark, so that no word matches the stem of a word in another language.
//! English, Russian and Arabic need no mark: every word of their scripts has such a stem.

use std::collections::HashMap;
use std::io;
use std::sync::LazyLock;

use frostem::{Algorithm, Stemmer};
use tantivy::termdict::TermDictionary;

use super::text_folding::fold_text;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    German,
    French,
    Spanish,
    Portuguese,
}

impl Language {
    const ALL: [Self; 4] = [Self::German, Self::French, Self::Spanish, Self::Portuguese];

    const fn stemmer_algorithm(self) -> Algorithm {
        match self {
            Self::German => Algorithm::German,
            Self::French => Algorithm::French,
            Self::Spanish => Algorithm::Spanish,
            Self::Portuguese => Algorithm::Portuguese,
        }
    }

    /// The language's letter in an index, and after the mark of its stems.
    const fn code_letter(self) -> char {
        match self {
            Self::German => 'g',
            Self::French => 'f',
            Self::Spanish => 's',
            Self::Portuguese => 'p',
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// First character of the stems of a language; no word contains it.
pub(super) const STEM_MARK: char = '\u{1}';

/// The stem without its mark and language letter; a term without a mark is returned unchanged.
pub(super) fn strip_stem_mark(term: &str) -> &str {
    match term.strip_prefix(STEM_MARK) {
        Some(marked) => marked.get(1..).unwrap_or_default(),
        None => term,
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LanguageSet(u8);

impl LanguageSet {
    /// No language with marked stems, as for English.
    pub const NONE: Self = Self(0);
    pub const ALL: Self = Self(0b1111);

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    fn iter(self) -> impl Iterator<Item = Language> {
        let all = Language::ALL.into_iter();
        all.filter(move |language| self.0 & language.bit() != 0)
    }

    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The languages with stems in a dictionary.
    pub fn from_dictionary(terms: &TermDictionary) -> io::Result<Self> {
        let mut found = Self::NONE;
        for language in Language::ALL {
            let begin = format!("{STEM_MARK}{}", language.code_letter());
            let mut stems = terms.range().ge(&begin).into_stream()?;
            if stems.advance() && stems.key().starts_with(begin.as_bytes()) {
                found.0 |= language.bit();
            }
        }
        Ok(found)
    }

    pub fn language_letters(self) -> String {
        self.iter().map(Language::code_letter).collect()
    }

    pub fn from_letters(letters: &str) -> Self {
        let named = |language: &Language| letters.contains(language.code_letter());
        let all = Language::ALL.into_iter().filter(named);
        Self(all.fold(0, |bits, language| bits | language.bit()))
    }

    /// The marked stems of a word in these languages, both as written and folded, because people leave out accents.
    pub fn stems(self, spelling: &str, folded: &str) -> Vec<String> {
        let mut stems = Vec::new();
        if self.is_empty() || !spelling.chars().next().is_some_and(is_latin) {
            return stems;
        }
        let lower = spelling.to_lowercase();
        for language in self.iter() {
            let stemmer = Stemmer::new(language.stemmer_algorithm());
            let mut add = |word: &str| {
                let stem = format!(
                    "{STEM_MARK}{}{}",
                    language.code_letter(),
                    fold_text(&stemmer.stem(word))
                );
                if !stems.contains(&stem) {
                    stems.push(stem);
                }
            };
            add(&lower);
            if lower != folded {
                add(folded);
            }
        }
        stems
    }
}

fn is_latin(letter: char) -> bool {
    letter.is_alphabetic() && letter < '\u{250}'
}

/// The unmarked stem of a word: English, Russian or Arabic, by its script. `None` if it equals the folded word.
pub(super) fn stem_by_script(spelling: &str, folded: &str) -> Option<String> {
    let first = folded.chars().next()?;
    let stemmed = match first {
        'a'..='z' if folded.len() > 2 => Stemmer::new(Algorithm::English).stem(folded).into_owned(),
        // The stemmer knows endings with `й`, which folding removes.
        '\u{430}'..='\u{44f}' => {
            let lower = spelling.to_lowercase().replace('ё', "е");
            fold_text(&Stemmer::new(Algorithm::Russian).stem(&lower)).into_owned()
        }
        '\u{621}'..='\u{64a}' => {
            fold_text(&Stemmer::new(Algorithm::Arabic).stem(folded)).into_owned()
        }
        _ => return None,
    };
    (stemmed != folded && !stemmed.is_empty()).then_some(stemmed)
}

/// The languages indicated by a function word.
#[derive(Debug, Clone, Copy, Default)]
struct FunctionWordLanguages {
    /// The languages in which the word is a function word.
    languages: u8,
    /// Those of them that the word identifies, because it has no meaning in any other language.
    distinctive: u8,
    /// Whether the word is removed from every query, like English words and those of other scripts.
    always_stop: bool,
    english: bool,
}

static FUNCTION_WORDS: LazyLock<HashMap<String, FunctionWordLanguages>> =
    LazyLock::new(|| parse_function_words(include_str!("stop_words.txt")));

fn parse_function_words(text: &str) -> HashMap<String, FunctionWordLanguages> {
    let mut words: HashMap<String, FunctionWordLanguages> = HashMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some((name, list)) = line.split_once(':') else {
            continue;
        };
        let bit = match name {
            "de" => Language::German.bit(),
            "fr" => Language::French.bit(),
            "es" => Language::Spanish.bit(),
            "pt" => Language::Portuguese.bit(),
            _ => 0,
        };
        for word in list.split_whitespace() {
            let plain = word.strip_prefix('~');
            let entry = words
                .entry(fold_text(plain.unwrap_or(word)).into_owned())
                .or_default();
            entry.languages |= bit;
            entry.always_stop |= bit == 0;
            entry.english |= name == "en";
            if plain.is_none() {
                entry.distinctive |= bit;
            }
        }
    }
    words
}

/// Whether a folded word is a stop word in every query: English, or of a script that identifies its language. Pairs of
/// two hiragana are mostly endings.
pub(super) fn is_universal_stop_word(word: &str) -> bool {
    let hiragana = |letter| matches!(letter, '\u{3041}'..='\u{309f}');
    FUNCTION_WORDS
        .get(word)
        .is_some_and(|known| known.always_stop)
        || (word.starts_with(hiragana) && word.chars().all(hiragana))
}

pub(super) fn is_stop_word_in(languages: LanguageSet, word: &str) -> bool {
    let known = FUNCTION_WORDS.get(word);
    known.is_some_and(|known| known.languages & languages.0 != 0)
}

#[derive(Debug, Clone, Copy, Default)]
struct LanguageEvidence {
    english: u32,
    /// Number of function words of each language alone.
    exclusive: [u32; 4],
    /// Number of those that have no meaning in any other language.
    exclusive_distinctive: [u32; 4],
    /// Number of distinctive words, including those of several languages.
    distinctive: [u32; 4],
}

impl LanguageEvidence {
    fn from_words<'a>(words: impl Iterator<Item = &'a str>) -> Self {
        let mut evidence = Self::default();
        for word in words {
            let Some(function_word) = FUNCTION_WORDS.get(word) else {
                continue;
            };
            if function_word.english {
                evidence.english += u32::from(function_word.languages == 0);
                continue;
            }
            for language in Language::ALL {
                let (index, bit) = (language as usize, language.bit());
                let own = function_word.languages == bit;
                let is_distinctive = function_word.distinctive & bit != 0;
                evidence.exclusive[index] += u32::from(own);
                evidence.exclusive_distinctive[index] += u32::from(own && is_distinctive);
                evidence.distinctive[index] += u32::from(is_distinctive);
            }
        }
        evidence
    }
}

/// The languages with at least `min_count`, and at least a quarter of the highest count.
fn select_frequent_languages(counts: [u32; 4], min_count: u32) -> LanguageSet {
    let most = counts.into_iter().max().unwrap_or_default();
    let is_frequent = |language: &Language| {
        let count = counts[*language as usize];
        count >= min_count && count * 4 >= most
    };
    let all = Language::ALL.into_iter().filter(is_frequent);
    LanguageSet(all.fold(0, |bits, language| bits | language.bit()))
}

/// Bytes of the longest function word, and the most bytes of a text that are read.
const MAX_FUNCTION_WORD_BYTES: usize = 16;
const MAX_SAMPLE_BYTES: usize = 8 * 1024;

/// Detects the languages of a card. Names and keywords indicate little, so a few sentences are needed.
pub(super) fn detect_card_languages<'a>(texts: impl Iterator<Item = &'a str>) -> LanguageSet {
    let mut left = MAX_SAMPLE_BYTES;
    let mut words = Vec::new();
    for text in texts {
        let text = &text[..text.floor_char_boundary(left)];
        left -= text.len();
        let split = text.split(|letter: char| !letter.is_alphanumeric());
        words.extend(
            split
                .filter(|word| (1..=MAX_FUNCTION_WORD_BYTES).contains(&word.len()))
                .map(fold_text),
        );
    }
    let evidence = LanguageEvidence::from_words(words.iter().map(AsRef::as_ref));
    let most = evidence.exclusive.into_iter().max().unwrap_or_default();
    // A few foreign names in an English card do not count as another language.
    match most * 8 >= evidence.english {
        true => select_frequent_languages(evidence.exclusive, 2),
        false => LanguageSet::NONE,
    }
}

/// The possible languages of a query's words, and the languages whose stop words are removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct QueryLanguages {
    pub possible: LanguageSet,
    pub certain: LanguageSet,
}

/// Detects the languages of a query by its folded function words: none if they are English, any if there are none.
pub(super) fn detect_query_languages<'a>(words: impl Iterator<Item = &'a str>) -> QueryLanguages {
    let evidence = LanguageEvidence::from_words(words);
    let telling = evidence
        .exclusive_distinctive
        .into_iter()
        .max()
        .unwrap_or_default();
    if telling > 0 {
        let possible = select_frequent_languages(evidence.exclusive_distinctive, 1);
        let certain = match telling > evidence.english {
            true => possible,
            false => LanguageSet::NONE,
        };
        return QueryLanguages { possible, certain };
    }
    if evidence.english > 0 {
        return QueryLanguages::default();
    }
    let distinctive = select_frequent_languages(evidence.distinctive, 1);
    let possible = match distinctive.is_empty() {
        true => LanguageSet::ALL,
        false => distinctive,
    };
    QueryLanguages {
        possible,
        certain: distinctive,
    }
}
