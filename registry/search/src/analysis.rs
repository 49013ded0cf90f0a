//! Text analysis: how names, descriptions and queries become terms.
//!
//! A text is split into runs of letters, digits and marks, with the symbols of names such as C++. A run yields its
//! folded form and, if they differ, its stem by script (English, Russian or Arabic) and its stems in the languages of
//! the text, all at the same position; a camel-case run also yields its parts. Chinese, Japanese and Korean runs,
//! which are written without spaces, yield every pair of adjacent characters; indexed text also yields each character
//! alone, for queries of a single one. A mark belongs to the character before it.

use std::ops::Range;

use tantivy::Score;
use tantivy::tokenizer::{Token, TokenStream};
use unicode_normalization::char::is_combining_mark;

use super::languages::{
    LanguageSet, detect_query_languages, is_stop_word_in, is_universal_stop_word, stem_by_script,
};
use super::text_folding::fold_text;

/// Version of the tokenizer. Increase it when the same text yields other terms, so that older indexes are rebuilt.
pub(super) const TOKENIZER_VERSION: u32 = 5;

/// Maximum number of searched words of a query; further ones are ignored, which a hint reports.
pub const MAX_QUERY_WORDS: usize = 32;

/// The longest term in characters; a longer run is cut.
const MAX_TERM_CHARS: usize = 64;

/// One word or character pair of an indexed text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IndexedWord {
    pub exact: String,
    /// The stem by the script, if it differs.
    pub stem: Option<String>,
    /// Marked stems in the languages of the text.
    pub language_stems: Vec<String>,
    pub range: Range<usize>,
    /// Position in words; the whole of a camel-case run has the position of its first part.
    pub position: usize,
    /// Whether it is one character of a longer run written without spaces: it matches queries for that single character
    /// only, and is not a word of a query for several.
    pub is_single_char: bool,
}

impl IndexedWord {
    pub fn forms(self) -> impl Iterator<Item = String> {
        let forms = std::iter::once(self.exact).chain(self.stem);
        forms
            .chain(self.language_stems)
            .filter(|form| !form.is_empty())
    }
}

fn is_word_char(letter: char) -> bool {
    if letter.is_ascii() {
        return letter.is_ascii_alphanumeric();
    }
    letter.is_alphanumeric() || is_diacritic(letter)
}

fn is_diacritic(letter: char) -> bool {
    !letter.is_ascii() && is_combining_mark(letter)
}

fn is_unspaced_script(letter: char) -> bool {
    !letter.is_ascii()
        && matches!(
            u32::from(letter),
            0x1100..=0x11ff | 0x3040..=0x30ff | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xac00..=0xd7af | 0xf900..=0xfaff | 0xff66..=0xff9f
                | 0x2_0000..=0x3_134f
        )
}

/// Whether a character in a script without spaces belongs to the previous one: a combining accent or voicing mark, a
/// half-width voicing mark, or the vowel or final of a Korean syllable in decomposed form.
fn attaches_to_previous(letter: char) -> bool {
    is_diacritic(letter) || matches!(u32::from(letter), 0x1160..=0x11ff | 0xff9e..=0xff9f)
}

/// The runs of a text: maximal ranges of word characters, split where a script without spaces begins or ends, with the
/// symbols that belong to them.
pub(super) fn word_spans(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut offset = 0;
    std::iter::from_fn(move || {
        let mut first = char_at(text, offset)?;
        while !is_word_char(first) {
            offset += first.len_utf8();
            first = char_at(text, offset)?;
        }
        let start = offset;
        let unspaced = is_unspaced_script(first);
        offset += first.len_utf8();
        while let Some(letter) = char_at(text, offset)
            && is_word_char(letter)
            && (is_unspaced_script(letter) == unspaced || is_diacritic(letter))
        {
            offset += letter.len_utf8();
        }
        let span = with_name_symbols(text, start..offset);
        offset = span.end;
        Some(span)
    })
}

/// A run with the symbols that belong to it in a name of programming: `C++`, `C#`, `.NET` and `Node.js`.
fn with_name_symbols(text: &str, span: Range<usize>) -> Range<usize> {
    let bytes = text.as_bytes();
    let Range { start, end } = span;
    let is_letter = span.len() == 1 && bytes[start].is_ascii_alphabetic();
    let ends_at = |offset| char_at(text, offset).is_none_or(|letter| !is_word_char(letter));
    match bytes.get(end) {
        Some(b'+') if is_letter && bytes.get(end + 1) == Some(&b'+') => start..end + 2,
        Some(b'#') if is_letter && ends_at(end + 1) => start..end + 1,
        Some(b'.')
            if bytes[start].is_ascii_alphanumeric()
                && bytes
                    .get(end + 1)
                    .is_some_and(|letter| letter.eq_ignore_ascii_case(&b'j'))
                && bytes
                    .get(end + 2)
                    .is_some_and(|letter| letter.eq_ignore_ascii_case(&b's'))
                && ends_at(end + 3) =>
        {
            start..end + 3
        }
        _ if span.len() == 3 && is_net_name(text, start) => start - 1..end,
        _ => span,
    }
}

/// Whether a run of three bytes is `.NET`: in capitals, as in `ASP.NET`, or not preceded by a word, as in a domain.
fn is_net_name(text: &str, start: usize) -> bool {
    let Some(before) = text[..start].strip_suffix('.') else {
        return false;
    };
    match &text[start..start + 3] {
        "NET" => true,
        name => {
            name.eq_ignore_ascii_case("net")
                && before
                    .chars()
                    .next_back()
                    .is_none_or(|letter| !is_word_char(letter))
        }
    }
}

/// The character at a byte offset. Most are ASCII, which needs no decoding.
fn char_at(text: &str, offset: usize) -> Option<char> {
    match text.as_bytes().get(offset)? {
        byte if byte.is_ascii() => Some(char::from(*byte)),
        _ => text[offset..].chars().next(),
    }
}

/// Whether a run is in a script without spaces.
fn is_unspaced_span(span: &str) -> bool {
    span.chars().next().is_some_and(is_unspaced_script)
}

/// The parts of a camel-case run; empty if fewer than two of them have several letters: `bookAFlight` has three parts,
/// `iPhone` and `OAuth2` are words. A single letter before all others belongs to the next part.
fn camel_parts(span: &str) -> Vec<Range<usize>> {
    if !span.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Vec::new();
    }
    let letters: Vec<(usize, char)> = span.char_indices().collect();
    let mut parts = Vec::new();
    let mut start = 0;
    for index in 1..letters.len() {
        let (offset, letter) = letters[index];
        let before = letters[index - 1].1;
        let after = letters.get(index + 1).map(|(_, letter)| *letter);
        let rises = letter.is_uppercase() && !before.is_uppercase();
        let ends_capitals =
            letter.is_uppercase() && before.is_uppercase() && after.is_some_and(char::is_lowercase);
        let leads = start == 0 && index == 1;
        if (rises || ends_capitals) && !leads {
            parts.push(start..offset);
            start = offset;
        }
    }
    parts.push(start..span.len());
    let is_long = |part: &&Range<usize>| span[(*part).clone()].chars().nth(1).is_some();
    let usable = parts.iter().filter(is_long).nth(1).is_some();
    if usable { parts } else { Vec::new() }
}

fn folded_term(text: &str) -> String {
    let folded = fold_text(text);
    match folded.char_indices().nth(MAX_TERM_CHARS) {
        Some((end, _)) => folded[..end].to_owned(),
        None => folded.into_owned(),
    }
}

fn indexed_word(
    text: &str,
    range: Range<usize>,
    position: usize,
    languages: LanguageSet,
) -> IndexedWord {
    spelled_word(&text[range.clone()], range, position, languages)
}

/// A word that is spelled like this instead of as its range.
fn spelled_word(
    written: &str,
    range: Range<usize>,
    position: usize,
    languages: LanguageSet,
) -> IndexedWord {
    let exact = folded_term(written);
    let stem = stem_by_script(written, &exact);
    let stems = languages.stems(written, &exact);
    IndexedWord {
        exact,
        stem,
        language_stems: stems,
        range,
        position,
        is_single_char: false,
    }
}

/// The words of a query's text, in order, without stems of languages.
pub(super) fn split_query_words(text: &str) -> impl Iterator<Item = IndexedWord> {
    let pieces = indexed_words(text, LanguageSet::NONE).into_iter();
    pieces.filter(|piece| !piece.is_single_char && !piece.exact.is_empty())
}

pub(super) fn has_any_word(text: &str) -> bool {
    split_query_words(text).next().is_some()
}

/// The words of a text as they are indexed, in order, with their stems in these languages.
pub(super) fn indexed_words(text: &str, languages: LanguageSet) -> Vec<IndexedWord> {
    let mut words = Vec::new();
    let mut position = 0;
    for run in word_spans(text) {
        position = push_span_words(text, run, position, languages, &mut words);
    }
    words
}

/// The forms of all words of a single text as they are indexed, without layout and stems of languages.
pub(super) fn indexed_forms(text: &str) -> impl Iterator<Item = String> + use<> {
    let words = indexed_words(text, LanguageSet::NONE).into_iter();
    words.flat_map(IndexedWord::forms)
}

/// Adds the words of one run and returns the position after them.
pub(super) fn push_span_words(
    text: &str,
    span: Range<usize>,
    position: usize,
    languages: LanguageSet,
    words: &mut Vec<IndexedWord>,
) -> usize {
    let spelling = &text[span.clone()];
    if is_unspaced_span(spelling) {
        let starts: Vec<usize> = spelling
            .char_indices()
            .filter(|(at, letter)| *at == 0 || !attaches_to_previous(*letter))
            .map(|(at, _)| span.start + at)
            .chain(std::iter::once(span.end))
            .collect();
        // A single character is one word; a longer run yields each pair of adjacent characters, and each character.
        if let [start, end] = starts[..] {
            words.push(indexed_word(text, start..end, position, languages));
            return position + 1;
        }
        let last = starts.len().saturating_sub(3);
        for (index, window) in starts.windows(3).enumerate() {
            let [start, middle, end] = window else {
                continue;
            };
            words.push(indexed_word(
                text,
                *start..*end,
                position + index,
                languages,
            ));
            let single = |range| IndexedWord {
                is_single_char: true,
                ..indexed_word(text, range, position + index, languages)
            };
            words.push(single(*start..*middle));
            if index == last {
                words.push(single(*middle..*end));
            }
        }
        return position + last + 1;
    }
    let parts = match spelling.rsplit_once('.') {
        // `Node.js` is found as `NodeJS` too, and by its parts.
        Some((name, _)) if !name.is_empty() => {
            let joined = spelling.replace('.', "");
            words.push(spelled_word(&joined, span.clone(), position, languages));
            let mut parts = camel_parts(name);
            if parts.is_empty() {
                parts.push(0..name.len());
            }
            parts.push(name.len() + 1..spelling.len());
            parts
        }
        _ => {
            words.push(indexed_word(text, span.clone(), position, languages));
            camel_parts(spelling)
        }
    };
    let part_count = parts.len().max(1);
    for (place, part) in parts.into_iter().enumerate() {
        words.push(indexed_word(
            text,
            span.start + part.start..span.start + part.end,
            position + place,
            languages,
        ));
    }
    position + part_count
}

/// Weight of a form of another word relative to the word of the query.
const OTHER_FORM_WEIGHT: Score = 0.5;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct QueryWord {
    pub spelling: String,
    pub exact: String,
    /// The stem by the script, if it differs.
    pub stem: Option<String>,
    /// Marked stems in the languages of the query that any agent contains, each with its weight relative to the word;
    /// empty until the query is expanded.
    pub language_stems: Vec<(String, Score)>,
    /// Forms of other words that count for this one, at a lower weight.
    pub other_forms: Vec<String>,
    /// The word that it most likely stands for, if no agent contains it.
    pub correction: Option<String>,
}

impl QueryWord {
    /// The form that every text with the word contains: its stem, if it has one.
    pub fn base_form(&self) -> &str {
        self.stem.as_ref().unwrap_or(&self.exact)
    }

    /// All forms of the word itself that every text with the word contains, each with its weight; the first is
    /// [`base_form`](Self::base_form).
    pub fn own_forms(&self) -> impl Iterator<Item = (&str, Score)> {
        let stems = self.language_stems.iter();
        std::iter::once((self.base_form(), 1.0))
            .chain(stems.map(|(stem, weight)| (stem.as_str(), *weight)))
    }

    /// All forms that count for the word, its own first, each with its weight.
    pub fn weighted_forms(&self) -> impl Iterator<Item = (&str, Score)> {
        let others = self.other_forms.iter();
        self.own_forms()
            .chain(others.map(|form| (form.as_str(), OTHER_FORM_WEIGHT)))
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct AnalyzedQuery {
    pub languages: LanguageSet,
    /// The distinct words, without stop words unless there are no others; at most [`MAX_QUERY_WORDS`].
    pub words: Vec<QueryWord>,
    /// Whether the query has more words.
    pub truncated: bool,
    /// Forms of all words in order, including stop words, each with its position; at most [`MAX_SEQUENCE_WORDS`].
    pub sequence: Vec<(String, usize)>,
    /// The same forms without stop words, each with its position among the remaining words.
    pub content_words: Vec<(String, usize)>,
}

/// The longest sequence of words whose order counts.
const MAX_SEQUENCE_WORDS: usize = 2 * MAX_QUERY_WORDS;

pub(super) fn analyze_query(text: &str) -> AnalyzedQuery {
    let words: Vec<IndexedWord> = split_query_words(text).collect();
    let languages = detect_query_languages(words.iter().map(|piece| piece.exact.as_str()));
    let mut query = AnalyzedQuery {
        languages: languages.possible,
        ..AnalyzedQuery::default()
    };
    let mut stop_words: Vec<QueryWord> = Vec::new();
    // Position in the text of the last word that is not a stop word, and its position among such words.
    let mut last: Option<(usize, usize)> = None;
    for IndexedWord {
        exact,
        stem,
        position,
        range,
        ..
    } in words
    {
        let is_stop = is_universal_stop_word(&exact) || is_stop_word_in(languages.certain, &exact);
        if query.sequence.len() < MAX_SEQUENCE_WORDS {
            let form = stem.as_ref().unwrap_or(&exact).clone();
            if !is_stop {
                let content_position = match last {
                    Some((before, place)) => place + usize::from(before != position),
                    None => 0,
                };
                last = Some((position, content_position));
                query.content_words.push((form.clone(), content_position));
            }
            query.sequence.push((form, position));
        }
        let list = if is_stop {
            &mut stop_words
        } else {
            &mut query.words
        };
        if list.iter().any(|word| word.exact == exact) {
            continue;
        }
        if list.len() == MAX_QUERY_WORDS {
            query.truncated = true;
            continue;
        }
        list.push(QueryWord {
            spelling: text[range].to_owned(),
            language_stems: Vec::new(),
            exact,
            stem,
            other_forms: Vec::new(),
            correction: None,
        });
    }
    if query.words.is_empty() {
        query.words = stop_words;
    }
    query
}

pub(super) struct AgentTokenStream {
    tokens: Vec<Token>,
    next: usize,
}

impl From<Vec<Token>> for AgentTokenStream {
    fn from(tokens: Vec<Token>) -> Self {
        Self { tokens, next: 0 }
    }
}

impl TokenStream for AgentTokenStream {
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
