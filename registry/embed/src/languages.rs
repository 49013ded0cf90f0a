//! Languages that a model knows, and whether a question is in one of them.
//!
//! A model of one language gives a question in another one a vector that means nothing. Only what speaks clearly for a
//! language that the model does not know counts: an English question with foreign names keeps its vector.

use std::sync::LazyLock;

use tokenizers::NormalizedString;

use super::letter_statistics::{LATIN_COUNT, LetterStatistics, WordEvidence};
use super::tokenizer::ModelTokenizer;

/// Languages of the Latin script that are told apart by their words, in the order of their evidence.
const LATIN_LANGUAGES: [&str; LATIN_COUNT] = [
    "en", "de", "fr", "es", "pt", "it", "nl", "sv", "da", "nb", "fi", "pl", "cs", "ro", "hu", "tr",
    "id", "vi",
];
const ENGLISH: &str = "en";
/// Languages without spaces between words.
const UNSPACED_LANGUAGES: [&str; 3] = ["ja", "zh", "th"];

/// Other scripts, as ranges of characters, with the languages that use them. A letter of none of these and above
/// [`LAST_LATIN`] is in a language that only a model of all languages knows.
static SCRIPTS: [(char, char, &[&str]); 25] = [
    ('\u{370}', '\u{3ff}', &["el"]),
    (
        '\u{400}',
        '\u{52f}',
        &["ru", "uk", "bg", "be", "sr", "mk", "kk"],
    ),
    ('\u{530}', '\u{58f}', &["hy"]),
    ('\u{590}', '\u{5ff}', &["he", "yi"]),
    ('\u{600}', '\u{77f}', &["ar", "fa", "ur"]),
    ('\u{900}', '\u{97f}', &["hi", "mr", "ne"]),
    ('\u{980}', '\u{9ff}', &["bn"]),
    ('\u{a00}', '\u{a7f}', &["pa"]),
    ('\u{a80}', '\u{aff}', &["gu"]),
    ('\u{b80}', '\u{bff}', &["ta"]),
    ('\u{c00}', '\u{c7f}', &["te"]),
    ('\u{c80}', '\u{cff}', &["kn"]),
    ('\u{d00}', '\u{d7f}', &["ml"]),
    ('\u{d80}', '\u{dff}', &["si"]),
    ('\u{e00}', '\u{e7f}', &["th"]),
    ('\u{e80}', '\u{eff}', &["lo"]),
    ('\u{1000}', '\u{109f}', &["my"]),
    ('\u{10a0}', '\u{10ff}', &["ka"]),
    ('\u{1100}', '\u{11ff}', &["ko"]),
    ('\u{1200}', '\u{137f}', &["am"]),
    ('\u{1780}', '\u{17ff}', &["km"]),
    ('\u{1f00}', '\u{1fff}', &["el"]),
    ('\u{3005}', '\u{30ff}', &["ja"]),
    ('\u{3400}', '\u{9fff}', &["zh", "ja"]),
    ('\u{ac00}', '\u{d7af}', &["ko"]),
];
const LAST_LATIN: char = '\u{36f}';
/// Letters of Vietnamese and others that came later.
const MORE_LATIN: std::ops::RangeInclusive<char> = '\u{1e00}'..='\u{1eff}';

/// Bytes and words of a question that are looked at.
const MAX_QUESTION_BYTES: usize = 4096;
const MAX_QUESTION_WORDS: usize = 64;

/// Words in the sample of a language of the Latin script, and their least length in characters.
const SAMPLE_WORDS: usize = 24;
const MIN_SAMPLE_WORD_CHARS: usize = 4;
/// A model knows a language whose sample it splits at most 1.7 times as finely as the English one. English models need
/// more than two pieces where they need one of English, and multilingual ones hardly more than one.
const MAX_RELATIVE_PIECES_TENTHS: usize = 17;
/// And in whose sample at most one piece in this many stands for unknown characters.
const PIECES_PER_UNKNOWN: usize = 20;

/// Score from which on a question is in a language.
const MIN_SCORE: f32 = 4.5;
/// Least evidence for it: one distinctive word, or two others.
const MIN_EVIDENCE: u32 = 2;
/// Scores of a word of the language, by its weight, and of one of a language that the model knows.
const WORD_SCORES: [f32; 3] = [0.0, 1.5, 5.0];
const KNOWN_WORD_SCORES: [f32; 3] = [0.0, 1.0, 4.0];
/// Greatest score of a word that no list has, by its letters.
const MAX_LETTER_SCORE: f32 = 4.0;
/// Score from which on such a word is evidence.
const MIN_LETTER_EVIDENCE: f32 = 1.0;

const WILDCARD: &str = "*";

/// The languages that a model knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelLanguages {
    All,
    /// Languages by their code in ISO 639, such as `en`.
    Only(Vec<String>),
}

impl ModelLanguages {
    /// The languages with these codes; all if `*` is among them.
    pub fn from_codes(codes: &[String]) -> Self {
        match codes.iter().any(|code| code == WILDCARD) {
            true => Self::All,
            false => Self::Only(codes.to_vec()),
        }
    }

    /// Whether a text can be such a code, or `*`.
    pub fn is_code(text: &str) -> bool {
        let is_word = text.bytes().all(|byte| byte.is_ascii_lowercase());
        text == WILDCARD || (is_word && (2..=3).contains(&text.len()))
    }

    /// The languages whose words a tokenizer splits hardly more than English ones: English at least, and all if it is
    /// three quarters of those that are tried.
    pub(super) fn from_tokenizer(tokenizer: &ModelTokenizer) -> Self {
        let samples = &TABLE.samples;
        let english = samples.iter().find(|sample| sample.code == ENGLISH);
        let english = english
            .and_then(|sample| Some((sample.words, tokenizer.count_tokens(&sample.text)?.0)));
        let is_known = |sample: &Sample| {
            let (Some((english_words, english_pieces)), Some((pieces, unknown))) =
                (english, tokenizer.count_tokens(&sample.text))
            else {
                return false;
            };
            unknown * PIECES_PER_UNKNOWN <= pieces
                && pieces * english_words * 10
                    <= MAX_RELATIVE_PIECES_TENTHS * english_pieces * sample.words
        };
        let known: Vec<String> = samples
            .iter()
            .filter(|sample| sample.code == ENGLISH || is_known(sample))
            .map(|sample| sample.code.to_owned())
            .collect();
        match known.len() * 4 >= samples.len() * 3 {
            true => Self::All,
            false => Self::Only(known),
        }
    }

    /// Whether a question is in one of these languages, or in one that cannot be told.
    pub fn cover_question(&self, question: &str) -> bool {
        let Self::Only(codes) = self else {
            return true;
        };
        let question = &question[..question.floor_char_boundary(MAX_QUESTION_BYTES)];
        let mut question = NormalizedString::from(question);
        question.nfkc();
        let question = question.get();
        let is_known = |code: &str| codes.iter().any(|known| known == code);
        if let Some(is_covered) = covers_other_scripts(question, is_known) {
            return is_covered;
        }
        let known = LATIN_LANGUAGES.map(is_known);
        let words: Vec<WordEvidence> = question
            .split(|letter: char| !letter.is_alphabetic())
            .filter(|word| !word.is_empty())
            .take(MAX_QUESTION_WORDS)
            .map(|word| TABLE.letters.word_evidence(word))
            .collect();
        !(0..LATIN_COUNT)
            .any(|language| !known[language] && is_in_language(&words, language, &known))
    }
}

/// Whether the languages of the scripts of a question are known; `None` if most of its letters are Latin ones.
fn covers_other_scripts(question: &str, is_known: impl Fn(&str) -> bool) -> Option<bool> {
    let (mut latin, mut other, mut known) = (0_usize, 0_usize, 0_usize);
    for letter in question.chars().filter(|letter| letter.is_alphabetic()) {
        if letter <= LAST_LATIN || MORE_LATIN.contains(&letter) {
            latin += 1;
            continue;
        }
        let script = SCRIPTS
            .iter()
            .find(|(first, last, _)| (*first..=*last).contains(&letter));
        let languages = script.map_or(&[] as &[&str], |(.., languages)| *languages);
        other += 1;
        known += usize::from(languages.iter().any(|code| is_known(code)));
    }
    (other > 0 && other >= latin).then_some(known * 2 >= other)
}

/// Whether the words speak for an unknown language rather than for any known one. A word of both says nothing.
fn is_in_language(words: &[WordEvidence], language: usize, known: &[bool; LATIN_COUNT]) -> bool {
    let known_languages = move || (0..LATIN_COUNT).filter(move |index| known[*index]);
    let mut score = 0.0;
    let mut evidence = 0;
    for word in words {
        let own_weight = word.weights[language];
        let known_weight = known_languages()
            .map(|index| word.weights[index])
            .max()
            .unwrap_or_default();
        if own_weight > 0 || known_weight > 0 {
            if known_weight == 0 {
                score += WORD_SCORES[usize::from(own_weight)];
                evidence += u32::from(own_weight);
            } else if own_weight == 0 {
                score -= KNOWN_WORD_SCORES[usize::from(known_weight)];
            }
            continue;
        }
        let Some(likelihoods) = &word.log_likelihoods else {
            continue;
        };
        let best_known = known_languages()
            .map(|index| likelihoods[index])
            .fold(f32::NEG_INFINITY, f32::max);
        // Infinite if the model knows no language of this script; the limit applies then.
        let limit = match word.is_capitalized {
            // Most capitalized words are names.
            true => 0.0,
            false => MAX_LETTER_SCORE,
        };
        let letter_score = (likelihoods[language] - best_known).clamp(-MAX_LETTER_SCORE, limit);
        score += letter_score;
        evidence += u32::from(letter_score > MIN_LETTER_EVIDENCE);
    }
    score >= MIN_SCORE && evidence >= MIN_EVIDENCE
}

/// Frequent words of a language, as one text.
struct Sample {
    code: &'static str,
    text: String,
    words: usize,
}

struct LanguageTable {
    samples: Vec<Sample>,
    letters: LetterStatistics,
}

static TABLE: LazyLock<LanguageTable> =
    LazyLock::new(|| LanguageTable::parse(include_str!("common_words.txt")));

impl LanguageTable {
    fn parse(text: &'static str) -> Self {
        let mut samples = Vec::new();
        let mut letters = LetterStatistics::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let Some((code, words)) = line.split_once(':') else {
                continue;
            };
            let latin = LATIN_LANGUAGES.iter().position(|known| *known == code);
            if let Some(language) = latin {
                for word in words.split_whitespace() {
                    match word.strip_prefix('~') {
                        Some(word) => letters.add_word(language, word, 1),
                        None => letters.add_word(language, word, 2),
                    }
                }
            }
            let is_sampled = |word: &&str| {
                latin.is_none()
                    || (!word.starts_with('~') && word.chars().count() >= MIN_SAMPLE_WORD_CHARS)
            };
            let sampled: Vec<&str> = words
                .split_whitespace()
                .filter(is_sampled)
                .take(SAMPLE_WORDS)
                .collect();
            let separator = match UNSPACED_LANGUAGES.contains(&code) {
                true => "",
                false => " ",
            };
            samples.push(Sample {
                code,
                text: sampled.join(separator),
                words: sampled.len(),
            });
        }
        Self { samples, letters }
    }
}
