//! Texts of a card outside the model, for searching.
//!
//! Publishers describe their agents in members of their own as well: `keywords`, lists of tools, notes about a skill.
//! What people could read there is collected; what only machines read is not.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::AgentCard;
use crate::member::{is_spelling, texts_by_language};
use crate::wire::elsewhere::{TOOL_PLACES, is_skill};
use crate::wire::informal::{is_about_credentials, is_scheme_list};
use crate::wire::is_known_capability;
use crate::wire::members::{CARD_MEMBERS, NESTS};

/// Most texts outside the model that are kept of one card.
pub const MAX_OTHER_TEXTS: usize = 256;

/// Most bytes of texts outside the model that are kept of one card.
pub const MAX_OTHER_BYTES: usize = 8 * 1024;

/// Most bytes of one such text.
const MAX_TEXT_BYTES: usize = 2 * 1024;

/// Most bytes collected before texts that the model has as well are left out.
const MAX_COLLECTED: usize = 64 * 1024;

const MAX_VISITS: usize = 10_000;

/// Deepest member collected, counted from the member of the card that contains it.
const MAX_LEVELS: usize = 8;

/// The longest word of ASCII characters that people read.
const MAX_WORD: usize = 64;

/// The shortest run of letters and digits that is a key, digest or identifier.
const MIN_CODE: usize = 12;

/// The shortest word of hexadecimal digits and hyphens that is a digest or identifier.
const MIN_DIGEST: usize = 32;

const SKILL_MEMBERS: [&str; 9] = [
    "id",
    "name",
    "description",
    "tags",
    "examples",
    "inputModes",
    "outputModes",
    "security",
    "securityRequirements",
];

/// Last words of the names of members whose texts are for machines, even where they look like words.
const FOR_MACHINES: [&str; 34] = [
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
pub(crate) struct OtherTexts {
    texts: Vec<String>,
    bytes: usize,
    visits: usize,
}

impl OtherTexts {
    pub(crate) fn of(document: &Map<String, Value>) -> Self {
        let mut found = Self::default();
        found.card(document, true);
        found
    }

    /// The texts that the card's model does not have.
    pub(crate) fn beside(self, card: &AgentCard) -> Vec<String> {
        if self.texts.is_empty() {
            return Vec::new();
        }
        let mut seen: HashSet<String> = model_texts(card).filter_map(readable).collect();
        let mut left = MAX_OTHER_BYTES;
        let mut kept = Vec::new();
        for text in self.texts {
            if kept.len() == MAX_OTHER_TEXTS {
                break;
            }
            if text.len() <= left && seen.insert(text.clone()) {
                left -= text.len();
                kept.push(text);
            }
        }
        kept
    }

    /// The members of a card; `whole` if it is the document, and not a card nested in it.
    fn card(&mut self, members: &Map<String, Value>, whole: bool) {
        for (name, value) in members {
            match (name.as_str(), value) {
                ("skills", value) => self.skills(value),
                ("capabilities", value) => self.capabilities(value),
                ("provider", Value::Object(provider)) => {
                    self.rest(provider, &["organization", "name", "url"]);
                }
                ("name" | "description", Value::Object(_) | Value::Array(_)) => {
                    self.languages(value);
                }
                // What the model has of a nested card is left out at the end.
                ("name" | "description", Value::String(text)) if !whole => self.text(text),
                (nest, Value::Object(nested)) if whole && NESTS.contains(&nest) => {
                    self.card(nested, false);
                }
                ("schemes", value) if is_scheme_list(value) => {}
                _ if is_one_of(&CARD_MEMBERS, name) => {}
                (_, value) => self.member(name, value, 0),
            }
        }
    }

    /// Skills in a list, by name, or in lists by name; skills that are texts alone are in the model.
    fn skills(&mut self, skills: &Value) {
        match skills {
            Value::Array(list) => list.iter().for_each(|skill| self.skill(skill)),
            Value::Object(named) => {
                for value in named.values() {
                    match value {
                        Value::Array(tier) => tier.iter().for_each(|skill| self.skill(skill)),
                        skill => self.skill(skill),
                    }
                }
            }
            _ => {}
        }
    }

    fn skill(&mut self, skill: &Value) {
        let Value::Object(members) = skill else {
            return;
        };
        self.rest(members, &SKILL_MEMBERS);
        for name in ["name", "description"] {
            if let Some(text) = members.get(name) {
                self.languages(text);
            }
        }
        let examples = members.get("examples").and_then(Value::as_array);
        let described = examples.into_iter().flatten().filter(|one| one.is_object());
        described.for_each(|example| self.value(example, false, 0));
    }

    fn languages(&mut self, value: &Value) {
        for (_, text) in texts_by_language(value) {
            self.text(text);
        }
    }

    fn capabilities(&mut self, capabilities: &Value) {
        match capabilities {
            Value::Object(members) => {
                for (name, value) in members {
                    match (name.as_str(), value) {
                        ("extensions", value) => self.extensions(value),
                        (name, value) if TOOL_PLACES.contains(&name) => self.skills(value),
                        (name, _) if is_known_capability(name) || is_about_credentials(name) => {}
                        (name, Value::Bool(true)) => self.text(name),
                        (name, value) => self.member(name, value, 0),
                    }
                }
            }
            Value::Array(list) => {
                for value in list.iter().filter(|value| is_skill(value)) {
                    self.member("capabilities", value, 0);
                }
            }
            other => self.member("capabilities", other, 0),
        }
    }

    fn extensions(&mut self, extensions: &Value) {
        for extension in extensions.as_array().into_iter().flatten() {
            if let Value::Object(members) = extension {
                self.rest(members, &["uri"]);
            }
        }
    }

    fn rest(&mut self, members: &Map<String, Value>, known: &[&str]) {
        for (name, value) in members {
            if !is_one_of(known, name) {
                self.member(name, value, 0);
            }
        }
    }

    /// A member that the model does not know, and all in it.
    fn member(&mut self, name: &str, value: &Value, level: usize) {
        if !is_about_credentials(name) {
            self.value(value, is_for_machines(name), level);
        }
    }

    /// A value, whose own texts may be for machines.
    fn value(&mut self, value: &Value, for_machines: bool, level: usize) {
        self.visits += 1;
        if level == MAX_LEVELS || self.visits > MAX_VISITS || self.bytes >= MAX_COLLECTED {
            return;
        }
        match value {
            Value::String(text) if !for_machines => self.text(text),
            Value::Array(list) => {
                for element in list {
                    self.value(element, for_machines, level + 1);
                }
            }
            Value::Object(members) => {
                for (name, value) in members {
                    self.member(name, value, level + 1);
                }
            }
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        if let Some(text) = readable(text) {
            self.bytes += text.len();
            self.texts.push(text);
        }
    }
}

fn model_texts(card: &AgentCard) -> impl Iterator<Item = &str> {
    let provider = card.provider.iter();
    let own = [Some(&card.name), card.description.as_ref()];
    let skills = card.skills.iter().flat_map(|skill| {
        let texts = [
            Some(&skill.id),
            Some(&skill.name),
            skill.description.as_ref(),
        ];
        let lists = skill.tags.iter().chain(&skill.examples);
        texts.into_iter().flatten().chain(lists)
    });
    own.into_iter()
        .flatten()
        .chain(provider.filter_map(|provider| provider.organization.as_ref()))
        .chain(skills)
        .map(String::as_str)
}

fn is_one_of(names: &[&str], name: &str) -> bool {
    names.iter().any(|known| is_spelling(name, known))
}

/// Whether the last word of a member's name says that its texts are for machines.
fn is_for_machines(name: &str) -> bool {
    let after_sign = name
        .rfind(|letter: char| !letter.is_ascii_alphanumeric())
        .map_or(0, |at| {
            at + name[at..].chars().next().map_or(1, char::len_utf8)
        });
    let last = &name[after_sign..];
    // `cardUrl` ends with the word `Url`, `cardURL` with `URL`.
    let rises = |pair: &[u8]| !pair[0].is_ascii_uppercase() && pair[1].is_ascii_uppercase();
    let rise = last.as_bytes().windows(2).rposition(rises);
    let word = rise.map_or(last, |at| &last[at + 1..]);
    FOR_MACHINES
        .binary_search(&word.to_ascii_lowercase().as_str())
        .is_ok()
}

/// The text with `…` for each word that only machines read; `None` if nothing else is left.
fn readable(text: &str) -> Option<String> {
    let text = &text[..text.floor_char_boundary(MAX_TEXT_BYTES)];
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        for piece in pieces(word) {
            if !is_code(piece) {
                out.push_str(piece);
            } else if !out.ends_with('…') {
                out.push('…');
            }
        }
    }
    has_word(&out).then_some(out)
}

/// An ASCII word whole, another one split at ASCII's edge: scripts without spaces have addresses amid a sentence.
fn pieces(word: &str) -> impl Iterator<Item = &str> {
    let mut rest = word;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let other = |letter: char| letter.is_ascii() != first.is_ascii();
        let (piece, behind) = rest.split_at(rest.find(other).unwrap_or(rest.len()));
        rest = behind;
        Some(piece)
    })
}

/// Whether a word is an address, a path, a key, a digest or an identifier.
fn is_code(word: &str) -> bool {
    const BEGINNINGS: [&str; 9] = [
        "/", "~/", "./", "../", "#/", "did:", "urn:", "mailto:", "www.",
    ];
    if !word.is_ascii() {
        return false;
    }
    let bare = word.trim_start_matches(['(', '[', '<', '{', '"', '\'', '`']);
    let is_mixed = |run: &str| {
        run.len() >= MIN_CODE
            && run.bytes().any(|byte| byte.is_ascii_digit())
            && run.bytes().any(|byte| byte.is_ascii_alphabetic())
    };
    let is_hexadecimal = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    word.len() > MAX_WORD
        || (bare.len() >= MIN_DIGEST && bare.bytes().all(is_hexadecimal))
        || word.contains("://")
        || word.contains('@')
        || BEGINNINGS.iter().any(|begin| bare.starts_with(begin))
        || word
            .split(|letter: char| !letter.is_ascii_alphanumeric())
            .any(is_mixed)
}

/// Whether there are two letters in a row, or one beyond ASCII.
fn has_word(text: &str) -> bool {
    let mut before = false;
    text.chars().any(|letter| {
        let letter_before = std::mem::replace(&mut before, letter.is_alphabetic());
        before && (letter_before || !letter.is_ascii())
    })
}

#[cfg(test)]
#[path = "other_texts_tests.rs"]
mod tests;
