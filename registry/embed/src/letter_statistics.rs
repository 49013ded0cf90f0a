//! Statistics of words and letters in languages of the Latin script, from lists of their common words.

use std::collections::HashMap;

/// Number of languages that are told apart.
pub(super) const LATIN_COUNT: usize = 18;

/// Marks of the beginning and the end of a word among its letters.
const BEGIN: char = '^';
const END: char = '$';
/// How many observed letters the frequency of a letter alone counts for, where two letters before it are known.
const PRIOR_COUNT: f32 = 3.0;
/// Kinds of letters, for those that a language's list does not have.
const LETTER_KINDS: f32 = 40.0;
/// Least length of a word, in characters, whose letters tell anything.
const MIN_WORD_CHARS: usize = 3;

type Counts = [u16; LATIN_COUNT];

/// Words of each language with their weights, and how often letters follow one another in them: about 5,000 words and
/// as many groups of three letters.
#[derive(Default)]
pub(super) struct LetterStatistics {
    weights: HashMap<&'static str, [u8; LATIN_COUNT]>,
    triples: HashMap<[char; 3], Counts>,
    pairs: HashMap<[char; 2], Counts>,
    letters: HashMap<char, Counts>,
    totals: Counts,
}

/// What a word says about its language.
pub(super) struct WordEvidence {
    /// Its weight in each language: 2 where it is distinctive, 1 where it is in the list, 0 elsewhere.
    pub weights: [u8; LATIN_COUNT],
    /// How likely its letters are in each language; `None` for a very short word.
    pub log_likelihoods: Option<[f32; LATIN_COUNT]>,
    pub is_capitalized: bool,
}

impl LetterStatistics {
    pub fn add_word(&mut self, language: usize, word: &'static str, weight: u8) {
        self.weights.entry(word).or_default()[language] = weight;
        for triple in letter_triples(word) {
            let [first, second, letter] = triple;
            let counts = [
                self.triples.entry(triple).or_default(),
                self.pairs.entry([first, second]).or_default(),
                self.letters.entry(letter).or_default(),
                &mut self.totals,
            ];
            for counts in counts {
                counts[language] = counts[language].saturating_add(1);
            }
        }
    }

    pub fn word_evidence(&self, word: &str) -> WordEvidence {
        let lower = word.to_lowercase();
        let is_long = word.chars().count() >= MIN_WORD_CHARS;
        WordEvidence {
            weights: self
                .weights
                .get(lower.as_str())
                .copied()
                .unwrap_or_default(),
            log_likelihoods: is_long.then(|| self.log_likelihoods(&lower)),
            is_capitalized: lower != word,
        }
    }

    fn log_likelihoods(&self, word: &str) -> [f32; LATIN_COUNT] {
        let mut sums = [0.0; LATIN_COUNT];
        for triple in letter_triples(word) {
            let [first, second, letter] = triple;
            let triples = self.triples.get(&triple).copied().unwrap_or_default();
            let pairs = self
                .pairs
                .get(&[first, second])
                .copied()
                .unwrap_or_default();
            let letters = self.letters.get(&letter).copied().unwrap_or_default();
            for (language, sum) in sums.iter_mut().enumerate() {
                let alone = (f32::from(letters[language]) + 0.5)
                    / (f32::from(self.totals[language]) + LETTER_KINDS);
                let following = (f32::from(triples[language]) + PRIOR_COUNT * alone)
                    / (f32::from(pairs[language]) + PRIOR_COUNT);
                *sum += following.ln();
            }
        }
        sums
    }
}

/// Each letter of a word, and its end, with the two before it.
fn letter_triples(word: &str) -> impl Iterator<Item = [char; 3]> {
    let mut before = [None, Some(BEGIN)];
    word.chars().chain([END]).filter_map(move |letter| {
        let [first, second] = before;
        before = [second, Some(letter)];
        Some([first?, second?, letter])
    })
}
