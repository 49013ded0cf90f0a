//! Texts of a card outside the model, for searching.
//!
//! Publishers also describe their agents in members of their own: `keywords`, lists of tools, notes about a skill. The
//! collector keeps texts that people can read, and omits texts for machines.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::capability::is_known_capability;
use super::informal_credentials::{is_about_credentials, is_scheme_list};
use super::member_names::{CARD_MEMBERS, NESTING_MEMBERS, SKILL_MEMBERS};
use super::misplaced_members::{TOOL_MEMBERS, is_non_capability};
use crate::AgentCard;
use crate::member_reader::{is_spelling_of, texts_by_language};

/// Maximum number of texts outside the model that are kept of one card.
pub const MAX_OTHER_TEXTS: usize = 256;

/// Maximum number of bytes of texts outside the model that are kept of one card.
pub const MAX_OTHER_TEXT_BYTES: usize = 8 * 1024;

/// Maximum length of one such text in bytes.
const MAX_SINGLE_TEXT_BYTES: usize = 2 * 1024;

/// Maximum number of bytes collected before the texts that the model also has are removed.
const MAX_COLLECTED_BYTES: usize = 64 * 1024;

const MAX_VISITED_VALUES: usize = 10_000;

/// Maximum depth of a collected member, counted from the card's member that contains it.
const MAX_TEXT_DEPTH: usize = 8;

/// Maximum length of an ASCII word that people read.
const MAX_WORD_CHARS: usize = 64;

/// Minimum length of a run of letters and digits that counts as a key, digest or identifier.
const MIN_IDENTIFIER_CHARS: usize = 12;

/// Minimum length of a word of hexadecimal digits and hyphens that counts as a digest or identifier.
const MIN_DIGEST_CHARS: usize = 32;

/// Last words of the names of members whose texts are for machines, even if they look like words.
const MACHINE_NAME_SUFFIXES: [&str; 34] = [
    "at",
    "checksum",
    "date",
    "did",
    "digest",
    "fingerprint",
    "format",
    "hash",
    "href",
    "id",
    "ids",
    "key",
    "keys",
    "nonce",
    "password",
    "path",
    "pattern",
    "proof",
    "pubkey",
    "ref",
    "required",
    "secret",
    "signature",
    "signatures",
    "thumbprint",
    "timestamp",
    "token",
    "tokens",
    "type",
    "uri",
    "uris",
    "url",
    "urls",
    "version",
];

#[derive(Default)]
pub(super) struct UnmodeledTextCollector {
    texts: Vec<String>,
    collected_bytes: usize,
    visited_values: usize,
}

impl UnmodeledTextCollector {
    pub(super) fn from_document(document: &Map<String, Value>) -> Self {
        let mut collector = Self::default();
        collector.visit_card(document, true);
        collector
    }

    /// The collected texts that the card's model does not have.
    pub(super) fn into_unmodeled_texts(self, card: &AgentCard) -> Vec<String> {
        if self.texts.is_empty() {
            return Vec::new();
        }
        let mut known_texts = readable_modeled_texts(card, &self.texts);
        let mut bytes_left = MAX_OTHER_TEXT_BYTES;
        let mut selected = Vec::new();
        for text in self.texts {
            if selected.len() == MAX_OTHER_TEXTS {
                break;
            }
            if text.len() <= bytes_left && known_texts.insert(text.clone()) {
                bytes_left -= text.len();
                selected.push(text);
            }
        }
        selected
    }

    /// Visits the members of a card; `is_document` unless the card is nested in the document.
    fn visit_card(&mut self, members: &Map<String, Value>, is_document: bool) {
        for (name, value) in members {
            match (name.as_str(), value) {
                ("skills", value) => self.visit_skills(value),
                ("capabilities", value) => self.visit_capabilities(value),
                ("provider", Value::Object(provider)) => {
                    self.visit_unknown_members(provider, &["organization", "name", "url"]);
                }
                ("name" | "description", Value::Object(_) | Value::Array(_)) => {
                    self.visit_language_texts(value);
                }
                // Texts of a nested card that the model has are removed at the end.
                ("name" | "description", Value::String(text)) if !is_document => {
                    self.add_text(text)
                }
                (nest, Value::Object(nested)) if is_document && NESTING_MEMBERS.contains(&nest) => {
                    self.visit_card(nested, false);
                }
                ("schemes", value) if is_scheme_list(value) => {}
                _ if is_spelling_of_any(&CARD_MEMBERS, name) => {}
                (_, value) => self.visit_member(name, value, 0),
            }
        }
    }

    /// Visits skills in a list, by name, or in lists by name; skills that are only texts are in the model.
    fn visit_skills(&mut self, skills: &Value) {
        match skills {
            Value::Array(list) => list.iter().for_each(|skill| self.visit_skill(skill)),
            Value::Object(named) => {
                for value in named.values() {
                    match value {
                        Value::Array(tier) => tier.iter().for_each(|skill| self.visit_skill(skill)),
                        skill => self.visit_skill(skill),
                    }
                }
            }
            _ => {}
        }
    }

    fn visit_skill(&mut self, skill: &Value) {
        let Value::Object(members) = skill else {
            return;
        };
        self.visit_unknown_members(members, &SKILL_MEMBERS);
        for name in ["name", "description"] {
            if let Some(text) = members.get(name) {
                self.visit_language_texts(text);
            }
        }
        let examples = members.get("examples").and_then(Value::as_array);
        let object_examples = examples.into_iter().flatten().filter(|one| one.is_object());
        object_examples.for_each(|example| self.visit_value(example, false, 0));
    }

    fn visit_language_texts(&mut self, value: &Value) {
        for (_, text) in texts_by_language(value) {
            self.add_text(text);
        }
    }

    fn visit_capabilities(&mut self, capabilities: &Value) {
        match capabilities {
            Value::Object(members) => {
                for (name, value) in members {
                    match (name.as_str(), value) {
                        ("extensions", value) => self.visit_extensions(value),
                        (name, value) if TOOL_MEMBERS.contains(&name) => self.visit_skills(value),
                        (name, _) if is_known_capability(name) || is_about_credentials(name) => {}
                        (name, Value::Bool(true)) => self.add_text(name),
                        (name, value) => self.visit_member(name, value, 0),
                    }
                }
            }
            Value::Array(list) => {
                for value in list.iter().filter(|value| is_non_capability(value)) {
                    self.visit_member("capabilities", value, 0);
                }
            }
            other => self.visit_member("capabilities", other, 0),
        }
    }

    fn visit_extensions(&mut self, extensions: &Value) {
        for extension in extensions.as_array().into_iter().flatten() {
            if let Value::Object(members) = extension {
                self.visit_unknown_members(members, &["uri"]);
            }
        }
    }

    fn visit_unknown_members(&mut self, members: &Map<String, Value>, known_names: &[&str]) {
        for (name, value) in members {
            if !is_spelling_of_any(known_names, name) {
                self.visit_member(name, value, 0);
            }
        }
    }

    /// Visits a member that the model does not know, with everything in it.
    fn visit_member(&mut self, name: &str, value: &Value, level: usize) {
        if !is_about_credentials(name) {
            self.visit_value(value, is_machine_member_name(name), level);
        }
    }

    /// Visits a value, whose own texts may be for machines.
    fn visit_value(&mut self, value: &Value, for_machines: bool, level: usize) {
        self.visited_values += 1;
        if level == MAX_TEXT_DEPTH
            || self.visited_values > MAX_VISITED_VALUES
            || self.collected_bytes >= MAX_COLLECTED_BYTES
        {
            return;
        }
        match value {
            Value::String(text) if !for_machines => self.add_text(text),
            Value::Array(list) => {
                for element in list {
                    self.visit_value(element, for_machines, level + 1);
                }
            }
            Value::Object(members) => {
                for (name, value) in members {
                    self.visit_member(name, value, level + 1);
                }
            }
            _ => {}
        }
    }

    fn add_text(&mut self, text: &str) {
        if let Some(text) = extract_readable_text(text) {
            self.collected_bytes += text.len();
            self.texts.push(text);
        }
    }
}

/// The readable forms of the model's texts, without those that differ from all the `texts` in their first word: to
/// make such a form takes longer than to read the text.
fn readable_modeled_texts(card: &AgentCard, texts: &[String]) -> HashSet<String> {
    let first_words: HashSet<&str> = texts
        .iter()
        .filter_map(|text| text.split(' ').next())
        .collect();
    // A word for machines becomes an ellipsis, and one with other letters may in part.
    let has_ellipsis = first_words.iter().any(|word| word.starts_with('…'));
    let may_be_equal = |text: &&str| {
        let first_word = text.split_whitespace().next().unwrap_or_default();
        has_ellipsis || !first_word.is_ascii() || first_words.contains(first_word)
    };
    modeled_texts(card)
        .filter(may_be_equal)
        .filter_map(extract_readable_text)
        .collect()
}

fn modeled_texts(card: &AgentCard) -> impl Iterator<Item = &str> {
    let provider = card.provider.iter();
    let card_texts = [Some(&card.name), card.description.as_ref()];
    let skills = card.skills.iter().flat_map(|skill| {
        let texts = [
            Some(&skill.id),
            Some(&skill.name),
            skill.description.as_ref(),
        ];
        let lists = skill.tags.iter().chain(&skill.examples);
        texts.into_iter().flatten().chain(lists)
    });
    card_texts
        .into_iter()
        .flatten()
        .chain(provider.filter_map(|provider| provider.organization.as_ref()))
        .chain(skills)
        .map(String::as_str)
}

fn is_spelling_of_any(names: &[&str], name: &str) -> bool {
    // Only a spelling with an underscore differs from the name, and few members have one.
    names.contains(&name)
        || (name.contains('_') && names.iter().any(|known| is_spelling_of(name, known)))
}

/// Whether the last word of a member's name indicates that its texts are for machines.
fn is_machine_member_name(name: &str) -> bool {
    let last_part_start = name
        .rfind(|letter: char| !letter.is_ascii_alphanumeric())
        .map_or(0, |index| {
            index + name[index..].chars().next().map_or(1, char::len_utf8)
        });
    let last_part = &name[last_part_start..];
    // `cardUrl` ends with the word `Url`, `cardURL` with `URL`.
    let is_capital_start =
        |pair: &[u8]| !pair[0].is_ascii_uppercase() && pair[1].is_ascii_uppercase();
    let capital_index = last_part.as_bytes().windows(2).rposition(is_capital_start);
    let word = capital_index.map_or(last_part, |index| &last_part[index + 1..]);
    MACHINE_NAME_SUFFIXES
        .binary_search(&word.to_ascii_lowercase().as_str())
        .is_ok()
}

/// The text with `…` in place of each word that only machines read; `None` if nothing else is left.
fn extract_readable_text(text: &str) -> Option<String> {
    let text = &text[..text.floor_char_boundary(MAX_SINGLE_TEXT_BYTES)];
    let mut readable = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !readable.is_empty() {
            readable.push(' ');
        }
        for piece in split_at_ascii_runs(word) {
            if !is_machine_word(piece) {
                readable.push_str(piece);
            } else if !readable.ends_with('…') {
                readable.push('…');
            }
        }
    }
    has_word(&readable).then_some(readable)
}

/// Splits a word with other characters at ASCII runs, because scripts without spaces have addresses amid a sentence;
/// an ASCII word stays whole.
fn split_at_ascii_runs(word: &str) -> impl Iterator<Item = &str> {
    let mut rest = word;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let differs_from_first = |letter: char| letter.is_ascii() != first.is_ascii();
        let (piece, remainder) = rest.split_at(rest.find(differs_from_first).unwrap_or(rest.len()));
        rest = remainder;
        Some(piece)
    })
}

/// Whether a word is an address, a path, a key, a digest or an identifier.
fn is_machine_word(word: &str) -> bool {
    const ADDRESS_PREFIXES: [&str; 9] = [
        "/", "~/", "./", "../", "#/", "did:", "urn:", "mailto:", "www.",
    ];
    if !word.is_ascii() {
        return false;
    }
    let unquoted_word = word.trim_start_matches(['(', '[', '<', '{', '"', '\'', '`']);
    let is_identifier = |run: &str| {
        run.len() >= MIN_IDENTIFIER_CHARS
            && run.bytes().any(|byte| byte.is_ascii_digit())
            && run.bytes().any(|byte| byte.is_ascii_alphabetic())
    };
    let is_hexadecimal = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    word.len() > MAX_WORD_CHARS
        || (unquoted_word.len() >= MIN_DIGEST_CHARS && unquoted_word.bytes().all(is_hexadecimal))
        || word.contains("://")
        || word.contains('@')
        || ADDRESS_PREFIXES
            .iter()
            .any(|begin| unquoted_word.starts_with(begin))
        || word
            .split(|letter: char| !letter.is_ascii_alphanumeric())
            .any(is_identifier)
}

/// Whether the text has two letters in a row, or one beyond ASCII.
fn has_word(text: &str) -> bool {
    let mut previous_is_letter = false;
    text.chars().any(|letter| {
        let follows_letter = std::mem::replace(&mut previous_is_letter, letter.is_alphabetic());
        previous_is_letter && (follows_letter || !letter.is_ascii())
    })
}

#[cfg(test)]
#[path = "other_texts_tests.rs"]
mod tests;
