//! The words of a question, and what separates them.

use std::ops::Range;

use unicode_normalization::char::is_combining_mark;

/// Maximum number of words of a text that is read; a longer one is a document rather than a question.
pub(super) const MAX_QUESTION_WORDS: usize = 128;

#[derive(Debug)]
pub(super) struct QuestionWord {
    /// Its bytes in the text.
    pub(super) range: Range<usize>,
    /// The word in lower case, with straight apostrophes.
    pub(super) lower: String,
    /// Whether the text begins here, or punctuation separates the word from the previous one.
    pub(super) after_break: bool,
    /// Whether the word is quoted or part of the query syntax, and therefore never understood.
    pub(super) is_opaque: bool,
}

/// Whether a list of words, separated by spaces, contains a word.
pub(super) fn is_in(word: &str, list: &str) -> bool {
    list.split(' ').any(|listed| listed == word)
}

/// The words of a question. There are none if it is too long, if it is not clear what its quotes enclose, or if `AND`
/// or `OR` joins its words: without a phrase between them, the operators would join other words.
pub(super) fn split_question(text: &str) -> Vec<QuestionWord> {
    let mut words = Vec::new();
    let mut in_quotation = false;
    let mut after_break = true;
    for chunk_range in chunk_ranges(text) {
        let chunk = &text[chunk_range.clone()];
        let is_operator = !in_quotation && matches!(chunk, "AND" | "OR");
        if is_operator || !has_clear_quotes(in_quotation, chunk) {
            return Vec::new();
        }
        let is_opaque = in_quotation || has_quotation_mark(chunk) || is_query_syntax(chunk);
        in_quotation = chunk.chars().fold(in_quotation, is_quotation_after);
        let mut end = 0;
        for range in word_ranges(chunk) {
            if words.len() == MAX_QUESTION_WORDS {
                return Vec::new();
            }
            words.push(QuestionWord {
                range: chunk_range.start + range.start..chunk_range.start + range.end,
                lower: chunk[range.clone()].to_lowercase().replace('’', "'"),
                after_break: after_break || range.start > end,
                is_opaque,
            });
            after_break = false;
            end = range.end;
        }
        // A chunk without words, such as a dash, separates too.
        after_break |= end < chunk.len();
    }
    match in_quotation {
        true => Vec::new(),
        false => words,
    }
}

/// The parts of a text between white space.
fn chunk_ranges(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut offset = 0;
    std::iter::from_fn(move || {
        let start = offset + text[offset..].find(|letter: char| !letter.is_whitespace())?;
        let length = text[start..].find(char::is_whitespace);
        offset = length.map_or(text.len(), |length| start + length);
        Some(start..offset)
    })
}

/// Whether the text is within a quotation after this character, given whether it was before.
const fn is_quotation_after(in_quotation: bool, letter: char) -> bool {
    match letter {
        '"' | '“' => !in_quotation,
        '„' | '«' => true,
        '”' | '»' => false,
        _ => in_quotation,
    }
}

/// Whether quotes open a quotation only where the query syntax has them, at the beginning of a part. Those within a
/// word, as in a piece of JSON, enclose nothing.
fn has_clear_quotes(in_quotation: bool, chunk: &str) -> bool {
    let part = chunk.strip_prefix('-').unwrap_or(chunk);
    let name_len = part.find(|letter: char| !letter.is_ascii_lowercase());
    let value = name_len.and_then(|length| part[length..].strip_prefix(':'));
    let opens = value.unwrap_or(part).starts_with('"');
    match (in_quotation, chunk.matches('"').count()) {
        (_, 0) | (true, 1) => true,
        (false, 1 | 2) => opens,
        _ => false,
    }
}

fn has_quotation_mark(chunk: &str) -> bool {
    chunk.contains(['"', '“', '”', '„', '«', '»'])
}

/// Whether a chunk is an exclusion, a prefix, or a condition; an address has a colon too.
fn is_query_syntax(chunk: &str) -> bool {
    let excluded = chunk.strip_prefix('-');
    let is_exclusion = excluded.is_some_and(|rest| rest.starts_with(char::is_alphabetic));
    let after_name = chunk.trim_start_matches(|letter: char| letter.is_ascii_lowercase());
    let is_condition = after_name.len() > 1 && after_name.starts_with(':');
    is_exclusion || is_condition || chunk.ends_with('*')
}

/// The words of a chunk: letters and digits, and single signs between them, as in `api-key` and `http+json`.
fn word_ranges(chunk: &str) -> Vec<Range<usize>> {
    let mut words: Vec<Range<usize>> = Vec::new();
    let mut joins = false;
    for (start, letter) in chunk.char_indices() {
        let end = start + letter.len_utf8();
        let is_letter = is_word_letter(letter);
        match words.last_mut() {
            Some(word) if is_letter && (word.end == start || joins) => word.end = end,
            _ if is_letter => words.push(start..end),
            _ => {}
        }
        joins = is_joining_sign(letter) && words.last().is_some_and(|word| word.end == start);
    }
    words
        .into_iter()
        .map(|word| with_name_signs(chunk, word))
        .collect()
}

/// A word with the signs that belong to it, as in `C++` and `C#`.
fn with_name_signs(chunk: &str, word: Range<usize>) -> Range<usize> {
    let rest = &chunk[word.end..];
    let signs = ["++", "#"].into_iter().find(|sign| rest.starts_with(*sign));
    let length = signs.filter(|_| word.len() == 1).map_or(0, str::len);
    word.start..word.end + length
}

fn is_word_letter(letter: char) -> bool {
    letter.is_alphanumeric() || is_combining_mark(letter)
}

const fn is_joining_sign(letter: char) -> bool {
    matches!(letter, '-' | '.' | '+' | '/' | '&' | '_' | '\'' | '’')
}
