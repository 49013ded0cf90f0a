//! The query syntax, for people who want it: `"a phrase"`, `-not`, `both AND needed`, `one OR another`, `prefix*`,
//! `tag:travel`, `skill:translate`, `provider:acme`.
//!
//! Nothing of it is ever an error. What cannot be read as syntax is read as plain words, and a hint says so. In a
//! sentence, which small words beside the quotes tell, a quotation is a part of what is said and demands nothing.

use super::analysis::{fold, is_stop_word};
use super::request::FacetName;

/// The most phrases, exclusions and conditions of one query; what comes after is read as plain words.
const MAX_PARTS: usize = 16;

/// A query as it was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Written {
    /// The words that are asked for and need not all be there, with those that must.
    pub words: String,
    /// Texts whose words must all be there, in their order and exact forms where quoted.
    pub required: Vec<Part>,
    /// Texts that must not be there.
    pub excluded: Vec<Part>,
    /// Beginnings of words.
    pub prefixes: Vec<String>,
    /// Conditions that must all hold.
    pub conditions: Vec<(FacetName, String)>,
    /// Whether something looked like syntax and was none.
    pub misread: bool,
}

/// A piece of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub text: String,
    /// Whether it stood in quotes.
    pub quoted: bool,
}

/// One token of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Token<'a> {
    negated: bool,
    field: Option<&'a str>,
    text: &'a str,
    quoted: bool,
}

/// Reads a query.
pub(super) fn read(text: &str) -> Written {
    let mut written = Written::default();
    let (tokens, torn) = tokens(text);
    written.misread = torn;
    let operator = |place: Option<usize>, word: &str| {
        let token = place.and_then(|place| tokens.get(place));
        token.is_some_and(|token| token.is_plain() && token.text == word)
    };
    let mut outside = tokens
        .iter()
        .filter(|token| token.is_plain() && !token.is_operator());
    let sentence = outside.any(|token| is_stop_word(&fold(token.text)));
    for (place, token) in tokens.iter().enumerate() {
        let before = place.checked_sub(1);
        if token.is_plain() && ["AND", "OR"].contains(&token.text) {
            let between = before.is_some_and(|before| !tokens[before].is_operator())
                && tokens
                    .get(place + 1)
                    .is_some_and(|after| !after.is_operator());
            written.misread |= !between;
            continue;
        }
        let joined = operator(before, "AND") || operator(Some(place + 1), "AND");
        written.take(token, joined, sentence);
    }
    written
}

impl Written {
    /// Takes a token; whether an `AND` stands beside it, and whether the whole is a sentence.
    fn take(&mut self, token: &Token<'_>, joined: bool, sentence: bool) {
        let parts =
            self.required.len() + self.excluded.len() + self.prefixes.len() + self.conditions.len();
        if parts >= MAX_PARTS {
            self.misread |= token.negated || token.field.is_some() || token.quoted || joined;
            self.add_words(token.text);
            return;
        }
        let part = || Part {
            text: token.text.to_owned(),
            quoted: token.quoted,
        };
        match token.field.map(|field| (field, condition(field))) {
            Some((_, Some(facet))) if !token.negated && !token.text.is_empty() => {
                self.conditions.push((facet, token.text.to_owned()));
                return;
            }
            // Not a field of ours: two words with a colon between, as in an address or a time.
            Some((field, _)) => {
                self.misread |= condition(field).is_some();
                self.add_words(field);
                self.add_words(token.text);
                return;
            }
            None => {}
        }
        if token.negated {
            self.excluded.push(part());
            return;
        }
        if let Some(prefix) = token.text.strip_suffix('*').filter(|_| !token.quoted) {
            if prefix.chars().count() > 1 && prefix.chars().all(char::is_alphanumeric) {
                self.prefixes.push(prefix.to_owned());
                return;
            }
            self.misread = true;
        }
        if joined || (token.quoted && !sentence) {
            self.required.push(part());
        }
        self.add_words(token.text);
    }

    fn add_words(&mut self, text: &str) {
        if !self.words.is_empty() {
            self.words.push(' ');
        }
        self.words.push_str(text);
    }
}

impl Token<'_> {
    fn is_plain(&self) -> bool {
        !self.negated && !self.quoted && self.field.is_none()
    }

    fn is_operator(&self) -> bool {
        self.is_plain() && ["AND", "OR"].contains(&self.text)
    }
}

fn condition(field: &str) -> Option<FacetName> {
    match field {
        "tag" => Some(FacetName::Tag),
        "skill" => Some(FacetName::Skill),
        "provider" => Some(FacetName::Provider),
        _ => None,
    }
}

/// The tokens of a text, and whether a quote was left open.
fn tokens(text: &str) -> (Vec<Token<'_>>, bool) {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    let mut torn = false;
    while !rest.is_empty() {
        let mut negated = false;
        // A hyphen before a word excludes it; one within a word, alone or before a number is just that.
        if let Some(after) = rest.strip_prefix('-')
            && after.starts_with(|letter: char| letter.is_alphabetic() || letter == '"')
        {
            negated = true;
            rest = after;
        }
        let mut field = None;
        let name = rest.len()
            - rest
                .trim_start_matches(|letter: char| letter.is_ascii_lowercase())
                .len();
        if name > 0 && rest[name..].starts_with(':') {
            field = Some(&rest[..name]);
            rest = &rest[name + 1..];
        }
        let (text, quoted, after) = match rest.strip_prefix('"') {
            Some(inner) => match inner.split_once('"') {
                Some((inner, after)) => (inner, true, after),
                None => {
                    torn = true;
                    (inner, false, "")
                }
            },
            None => {
                // Quotes within a word, as in a piece of JSON, are no quotation.
                let end = rest.find(char::is_whitespace);
                let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
                (word, false, after)
            }
        };
        tokens.push(Token {
            negated,
            field,
            text,
            quoted,
        });
        rest = after.trim_start();
    }
    (tokens, torn)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(text: &str, quoted: bool) -> Part {
        Part {
            text: text.into(),
            quoted,
        }
    }

    #[test]
    fn plain_words_are_plain_words() {
        for text in [
            "find me an agent that can book a flight",
            "well-known e-mail",
            "a - b",
            "what's up?",
            "",
            "12:30 http://a.example/x",
            "and or not",
            "what is at 40.7128, -74.0060?",
            "{\"prompt\":\"call out\"}",
            "translate \"good morning\" to French",
        ] {
            let read = read(text);
            let words = Written {
                words: read.words.clone(),
                ..Written::default()
            };
            assert_eq!(read, words, "{text}");
        }
        assert_eq!(read("well-known e-mail").words, "well-known e-mail");
    }

    #[test]
    fn every_part_of_the_syntax_is_read() {
        let read = read(
            "trips \"to tokyo\" -cheap -\"last minute\" tag:travel skill:\"book it\" visa AND hotel book* OR rail",
        );
        assert_eq!(read.words, "trips to tokyo visa hotel rail");
        assert_eq!(
            read.required,
            [
                part("to tokyo", true),
                part("visa", false),
                part("hotel", false)
            ]
        );
        assert_eq!(
            read.excluded,
            [part("cheap", false), part("last minute", true)]
        );
        assert_eq!(read.prefixes, ["book"]);
        let conditions = [
            (FacetName::Tag, "travel".to_owned()),
            (FacetName::Skill, "book it".to_owned()),
        ];
        assert_eq!(read.conditions, conditions);
        assert!(!read.misread);
    }

    #[test]
    fn what_is_no_syntax_is_words() {
        for (text, words) in [
            ("book \"a flight", "book a flight"),
            ("AND flight", "flight"),
            ("flight OR", "flight"),
            ("flight AND OR hotel", "flight hotel"),
            ("-tag:travel", "tag travel"),
            ("x*", "x*"),
            ("tag:", "tag "),
        ] {
            let read = read(text);
            assert_eq!(read.words.trim(), words.trim(), "{text}");
            assert!(read.misread, "{text}");
        }
    }

    #[test]
    fn parts_are_bounded() {
        let read = read(&"\"a b\" -c tag:d ".repeat(20));
        let parts = read.required.len() + read.excluded.len() + read.conditions.len();
        assert_eq!(parts, MAX_PARTS);
        assert!(read.misread);
    }
}
