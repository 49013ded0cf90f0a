//! Text analysis: how names, descriptions and queries become terms.
//!
//! A text is split into runs of letters, digits and marks. A run gives its folded form (lower case, without accents,
//! full-width forms narrowed) and, if it differs, its English stem at the same position; a camel-case run gives its
//! parts as well. Chinese, Japanese and Korean runs, which are written without spaces, give every pair of adjacent
//! characters; indexed text also gives each character alone, for queries of a single one. A mark belongs to the
//! character before it.

use std::borrow::Cow;
use std::ops::Range;

use frostem::{Algorithm, Stemmer};
use tantivy::tokenizer::{Token, TokenStream, Tokenizer};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::request::MAX_QUERY_WORDS;

/// Name of [`AgentTokenizer`] in the schema.
pub(super) const TOKENIZER: &str = "agent";

/// Version of the tokenizer; must rise when the same text gives other terms, so that older indexes are rebuilt.
pub(super) const TOKENIZER_VERSION: u32 = 3;

/// The longest term in characters; a longer run is cut.
const MAX_TERM_CHARS: usize = 64;

/// English function words and words of asking. They are removed from a query, unless it has no others.
const STOP_WORDS: &[&str] = &[
    "a", "an", "and", "any", "are", "as", "at", "be", "but", "by", "can", "could", "do", "does",
    "find", "for", "from", "get", "give", "has", "have", "help", "how", "i", "if", "in", "into",
    "is", "it", "its", "like", "me", "my", "need", "no", "not", "of", "on", "one", "or", "our",
    "please", "s", "show", "so", "some", "such", "t", "that", "the", "their", "then", "there",
    "these", "they", "this", "to", "us", "want", "was", "we", "what", "when", "where", "which",
    "who", "will", "with", "would", "you", "your",
];

/// One word or character pair of an indexed text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IndexedWord {
    /// The folded form.
    pub exact: String,
    /// The English stem, if it differs.
    pub stem: Option<String>,
    /// Byte range in the text.
    pub range: Range<usize>,
    /// Position in words; the whole of a camel-case run has the position of its first part.
    pub position: usize,
    /// Whether it is one character of a longer run written without spaces: it matches queries for that single character
    /// only, and is not a word of a query for several.
    pub single: bool,
}

/// The text in lower case, without accents and width variants.
pub(super) fn fold(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            Cow::Owned(text.to_ascii_lowercase())
        } else {
            Cow::Borrowed(text)
        };
    }
    let mut plain = String::with_capacity(text.len());
    for letter in text
        .chars()
        .flat_map(char::to_lowercase)
        .nfkd()
        .filter(|letter| !('\u{300}'..='\u{36f}').contains(letter))
        .flat_map(char::to_lowercase)
    {
        // These letters have no decomposition, but are commonly typed without their stroke or ligature.
        match letter {
            'ß' => plain.push_str("ss"),
            'æ' => plain.push_str("ae"),
            'œ' => plain.push_str("oe"),
            'ø' => plain.push('o'),
            'ł' => plain.push('l'),
            'đ' => plain.push('d'),
            'ı' => plain.push('i'),
            other => plain.push(other),
        }
    }
    Cow::Owned(plain.nfc().collect())
}

/// English stem of a folded word; `None` if it equals the word.
pub(super) fn stem(word: &str) -> Option<String> {
    let first = word.bytes().next()?;
    if !first.is_ascii_lowercase() || word.len() < 3 {
        return None;
    }
    let stemmed = Stemmer::new(Algorithm::English).stem(word);
    (stemmed != word && !stemmed.is_empty()).then(|| stemmed.into_owned())
}

fn is_word(letter: char) -> bool {
    if letter.is_ascii() {
        return letter.is_ascii_alphanumeric();
    }
    letter.is_alphanumeric() || is_mark(letter)
}

fn is_mark(letter: char) -> bool {
    !letter.is_ascii() && is_combining_mark(letter)
}

fn is_unspaced(letter: char) -> bool {
    !letter.is_ascii()
        && matches!(
            u32::from(letter),
            0x1100..=0x11ff | 0x3040..=0x30ff | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xac00..=0xd7af | 0xf900..=0xfaff | 0xff66..=0xff9f
                | 0x2_0000..=0x3_134f
        )
}

/// Whether a character in a script without spaces belongs to the one before: a combining accent or voicing mark, a
/// half-width voicing mark, or the vowel or final of a Korean syllable in decomposed form.
fn is_attached(letter: char) -> bool {
    is_mark(letter) || matches!(u32::from(letter), 0x1160..=0x11ff | 0xff9e..=0xff9f)
}

/// Runs of a text: maximal ranges of word characters, split where a script without spaces begins or ends.
pub(super) fn runs(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let mut first = letter_at(text, at)?;
        while !is_word(first) {
            at += first.len_utf8();
            first = letter_at(text, at)?;
        }
        let start = at;
        let unspaced = is_unspaced(first);
        at += first.len_utf8();
        while let Some(letter) = letter_at(text, at)
            && is_word(letter)
            && (is_unspaced(letter) == unspaced || is_mark(letter))
        {
            at += letter.len_utf8();
        }
        Some(start..at)
    })
}

/// The character at a byte offset; most often ASCII, which needs no decoding.
fn letter_at(text: &str, at: usize) -> Option<char> {
    match text.as_bytes().get(at)? {
        byte if byte.is_ascii() => Some(char::from(*byte)),
        _ => text[at..].chars().next(),
    }
}

/// Whether a run is in a script without spaces.
fn unspaced(run: &str) -> bool {
    run.chars().next().is_some_and(is_unspaced)
}

/// Parts of a camel-case run; empty if fewer than two of them have several letters: `bookAFlight` has three parts,
/// `iPhone` and `OAuth2` are words. A single letter before all others belongs to the part after it.
fn camel_parts(run: &str) -> Vec<Range<usize>> {
    if !run.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Vec::new();
    }
    let letters: Vec<(usize, char)> = run.char_indices().collect();
    let mut parts = Vec::new();
    let mut start = 0;
    for window in 1..letters.len() {
        let (at, letter) = letters[window];
        let before = letters[window - 1].1;
        let after = letters.get(window + 1).map(|(_, letter)| *letter);
        let rises = letter.is_uppercase() && !before.is_uppercase();
        let ends_capitals =
            letter.is_uppercase() && before.is_uppercase() && after.is_some_and(char::is_lowercase);
        let leads = start == 0 && window == 1;
        if (rises || ends_capitals) && !leads {
            parts.push(start..at);
            start = at;
        }
    }
    parts.push(start..run.len());
    let is_long = |part: &&Range<usize>| run[(*part).clone()].chars().nth(1).is_some();
    let usable = parts.iter().filter(is_long).nth(1).is_some();
    if usable { parts } else { Vec::new() }
}

fn term(text: &str) -> String {
    let folded = fold(text);
    match folded.char_indices().nth(MAX_TERM_CHARS) {
        Some((end, _)) => folded[..end].to_owned(),
        None => folded.into_owned(),
    }
}

fn piece(text: &str, range: Range<usize>, position: usize) -> IndexedWord {
    let exact = term(&text[range.clone()]);
    let stem = stem(&exact);
    IndexedWord {
        exact,
        stem,
        range,
        position,
        single: false,
    }
}

/// Words of a text in a query, in order.
pub(super) fn asked_pieces(text: &str) -> impl Iterator<Item = IndexedWord> {
    let pieces = pieces(text).into_iter();
    pieces.filter(|piece| !piece.single && !piece.exact.is_empty())
}

/// Whether a text contains a word to search for.
pub(super) fn has_word(text: &str) -> bool {
    asked_pieces(text).next().is_some()
}

/// All words of a text as it is indexed, in order.
pub(super) fn pieces(text: &str) -> Vec<IndexedWord> {
    let mut found = Vec::new();
    let mut position = 0;
    for run in runs(text) {
        position = run_pieces(text, run, position, &mut found);
    }
    found
}

/// Adds the words of one run and returns the position after them.
pub(super) fn run_pieces(
    text: &str,
    run: Range<usize>,
    position: usize,
    found: &mut Vec<IndexedWord>,
) -> usize {
    let written = &text[run.clone()];
    if unspaced(written) {
        let starts: Vec<usize> = written
            .char_indices()
            .filter(|(at, letter)| *at == 0 || !is_attached(*letter))
            .map(|(at, _)| run.start + at)
            .chain(std::iter::once(run.end))
            .collect();
        // A single character is one word; a longer run gives each pair of adjacent characters, and with it the
        // characters.
        if let [start, end] = starts[..] {
            found.push(piece(text, start..end, position));
            return position + 1;
        }
        let last = starts.len().saturating_sub(3);
        for (place, window) in starts.windows(3).enumerate() {
            let [start, middle, end] = window else {
                continue;
            };
            found.push(piece(text, *start..*end, position + place));
            let single = |range| IndexedWord {
                single: true,
                ..piece(text, range, position + place)
            };
            found.push(single(*start..*middle));
            if place == last {
                found.push(single(*middle..*end));
            }
        }
        return position + last + 1;
    }
    found.push(piece(text, run.clone(), position));
    let parts = camel_parts(written);
    let places = parts.len().max(1);
    for (place, part) in parts.into_iter().enumerate() {
        found.push(piece(
            text,
            run.start + part.start..run.start + part.end,
            position + place,
        ));
    }
    position + places
}

/// One word of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct QueryWord {
    /// The folded form.
    pub exact: String,
    /// The English stem, if it differs.
    pub stem: Option<String>,
    /// Forms of other words that count for this one, at a lower weight.
    pub others: Vec<String>,
}

impl QueryWord {
    /// The form that every text with the word contains: the stem, if there is one.
    pub fn form(&self) -> &str {
        self.stem.as_ref().unwrap_or(&self.exact)
    }
}

/// An analysed query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct QueryText {
    /// Distinct words without stop words, unless there are no others; at most [`MAX_QUERY_WORDS`].
    pub words: Vec<QueryWord>,
    /// Whether the query has more words.
    pub cut: bool,
    /// Forms of all words in their order, stop words included, each with its position; at most [`MAX_SEQUENCE`].
    pub sequence: Vec<(String, usize)>,
    /// The same without stop words, each with its position among the remaining words.
    pub content: Vec<(String, usize)>,
}

/// The longest sequence of words whose order counts.
const MAX_SEQUENCE: usize = 2 * MAX_QUERY_WORDS;

/// Analyses the text of a query.
pub(super) fn query_text(text: &str) -> QueryText {
    let mut query = QueryText::default();
    let mut stop_words: Vec<QueryWord> = Vec::new();
    // Position in the text of the last word that is no stop word, and its position among such words.
    let mut last: Option<(usize, usize)> = None;
    for IndexedWord {
        exact,
        stem,
        position,
        ..
    } in asked_pieces(text)
    {
        let stop_word = is_stop_word(&exact);
        if query.sequence.len() < MAX_SEQUENCE {
            let form = stem.as_ref().unwrap_or(&exact).clone();
            if !stop_word {
                let place = match last {
                    Some((before, place)) => place + usize::from(before != position),
                    None => 0,
                };
                last = Some((position, place));
                query.content.push((form.clone(), place));
            }
            query.sequence.push((form, position));
        }
        let list = if stop_word {
            &mut stop_words
        } else {
            &mut query.words
        };
        if list.iter().any(|word| word.exact == exact) {
            continue;
        }
        if list.len() == MAX_QUERY_WORDS {
            query.cut = true;
            continue;
        }
        list.push(QueryWord {
            exact,
            stem,
            others: Vec::new(),
        });
    }
    if query.words.is_empty() {
        query.words = stop_words;
    }
    query
}

/// Whether a folded word is a stop word.
pub(super) fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.binary_search(&word).is_ok()
}

/// Tokenizer of a single text, without layout.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AgentTokenizer;

/// Token stream over a precomputed list.
pub(super) struct AgentTokens {
    tokens: Vec<Token>,
    next: usize,
}

impl From<Vec<Token>> for AgentTokens {
    fn from(tokens: Vec<Token>) -> Self {
        Self { tokens, next: 0 }
    }
}

impl Tokenizer for AgentTokenizer {
    type TokenStream<'a> = AgentTokens;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> AgentTokens {
        let mut tokens = Vec::new();
        for piece in pieces(text) {
            for form in std::iter::once(piece.exact).chain(piece.stem) {
                if !form.is_empty() {
                    tokens.push(Token {
                        offset_from: piece.range.start,
                        offset_to: piece.range.end,
                        position: piece.position,
                        text: form,
                        position_length: 1,
                    });
                }
            }
        }
        tokens.into()
    }
}

impl TokenStream for AgentTokens {
    fn advance(&mut self) -> bool {
        let more = self.next < self.tokens.len();
        self.next += usize::from(more);
        more
    }

    fn token(&self) -> &Token {
        &self.tokens[self.next.saturating_sub(1)]
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.tokens[self.next.saturating_sub(1)]
    }
}
