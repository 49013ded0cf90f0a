//! Reads single members, each on its own, so that a bad one does not affect the others.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::Hash;

use serde_json::{Map, Value};

use crate::finding::Findings;
use crate::pointer::Pointer;
use crate::rules;

/// Most elements read of any list: skills, tags, interfaces, schemes, …
pub const MAX_LIST: usize = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    /// Names, identifiers, tags: up to 1 024 characters, then cut.
    Line,
    /// Descriptions and examples: up to 16 384 characters, then cut.
    Prose,
    /// Addresses: up to 4 096 characters. A longer one is ignored, because half an address is another address.
    Address,
}

impl Length {
    pub(crate) fn limit(self) -> usize {
        match self {
            Length::Line => 1_024,
            Length::Prose => 16_384,
            Length::Address => 4_096,
        }
    }
}

/// The members of one object, taken one after another; the rest is unknown.
pub(crate) struct Members<'p> {
    map: Map<String, Value>,
    at: Pointer<'p>,
    /// Whether any name has an underscore, so that `snake_case` needs to be tried.
    snake: bool,
    /// Members that were lifted out of a nested object, with its name.
    lifted: Option<(&'static str, Vec<&'static str>)>,
    /// Members whose value could not be read.
    unread: Map<String, Value>,
}

pub(crate) struct Spot {
    inside: Option<&'static str>,
    name: Cow<'static, str>,
}

impl Spot {
    /// The member `name`, inside the member `inside` of the object if that is given.
    pub(crate) fn new(inside: Option<&'static str>, name: impl Into<Cow<'static, str>>) -> Self {
        let name = name.into();
        Spot { inside, name }
    }

    pub(crate) fn below<'a>(&'a self, parent: &'a Pointer<'a>) -> Pointer<'a> {
        match self.inside {
            Some(outer) => Pointer::Inside(parent, outer, &self.name),
            None => Pointer::Name(parent, &self.name),
        }
    }
}

impl<'p> Members<'p> {
    pub(crate) fn new(map: Map<String, Value>, at: Pointer<'p>) -> Self {
        let snake = map.keys().any(|name| name.contains('_'));
        Members {
            map,
            at,
            snake,
            lifted: None,
            unread: Map::new(),
        }
    }

    pub(crate) fn at(&self) -> Pointer<'p> {
        self.at
    }

    /// A member, without taking it; null counts as absent.
    pub(crate) fn peek(&self, name: &str) -> Option<&Value> {
        let value = self.map.get(name).filter(|value| !value.is_null());
        if value.is_some() || !self.snake {
            return value;
        }
        self.map
            .get(&snake_case(name))
            .filter(|value| !value.is_null())
    }

    pub(crate) fn is_snake(&self, name: &str) -> bool {
        self.snake && !self.map.contains_key(name) && self.peek(name).is_some()
    }

    /// The position of a member that has not been taken yet, as spelt in the card.
    pub(crate) fn spot(&self, name: &'static str) -> Spot {
        if self.is_snake(name) {
            Spot::new(self.outer(name), snake_case(name))
        } else {
            Spot::new(self.outer(name), name)
        }
    }

    /// The nested object that the member was lifted out of.
    fn outer(&self, name: &str) -> Option<&'static str> {
        let lifted = self.lifted.as_ref();
        let from = lifted.filter(|(_, names)| names.contains(&name));
        from.map(|(outer, _)| *outer)
    }

    /// Lifts the named members of the nested object `outer` to this level, where this level has none.
    pub(crate) fn lift(&mut self, outer: &'static str, names: &[&'static str]) {
        let Some(Value::Object(mut nested)) = self.map.shift_remove(outer) else {
            return;
        };
        let mut lifted = Vec::new();
        for &name in names {
            if self.peek(name).is_some() {
                continue;
            }
            let spelling = snake_case(name);
            let value = nested
                .shift_remove(name)
                .or_else(|| nested.shift_remove(&spelling));
            if let Some(value) = value {
                self.map.insert(name.to_owned(), value);
                lifted.push(name);
            }
        }
        if !nested.is_empty() {
            self.unread.insert(outer.to_owned(), Value::Object(nested));
        }
        self.lifted = Some((outer, lifted));
    }

    /// Takes a member in camelCase or `snake_case`. Null counts as absent, with a finding.
    pub(crate) fn take(&mut self, name: &'static str, out: &mut Findings) -> Option<(Spot, Value)> {
        let camel = self.map.shift_remove(name);
        let mut found = camel.map(|value| (Cow::Borrowed(name), value));
        if self.snake {
            let snake = snake_case(name);
            if snake != name
                && let Some(value) = self.map.shift_remove(&snake)
            {
                let at = self.at;
                if found.is_some() {
                    out.add(&rules::MEMBER_TWICE, &at.name(&snake), &snake);
                } else {
                    out.add_once(&rules::MEMBER_SNAKE, &at.name(&snake), &snake);
                    found = Some((Cow::Owned(snake), value));
                }
            }
        }
        let (name, value) = found?;
        let inside = self.outer(&name);
        let spot = Spot { inside, name };
        if value.is_null() {
            out.add(&rules::MEMBER_NULL, &spot.below(&self.at), "null");
            return None;
        }
        Some((spot, value))
    }

    /// A member that was not taken or could not be read.
    pub(crate) fn leftover(&self, name: &str) -> Option<&Value> {
        self.unread.get(name).or_else(|| self.map.get(name))
    }

    pub(crate) fn take_leftover(&mut self, name: &str) -> Option<Value> {
        let unread = self.unread.shift_remove(name);
        unread.or_else(|| self.map.shift_remove(name))
    }

    pub(crate) fn keep(&mut self, spot: &Spot, value: Value) {
        self.unread.insert(spot.name.clone().into_owned(), value);
    }

    /// Takes a text; an empty one counts as absent.
    pub(crate) fn text(
        &mut self,
        name: &'static str,
        length: Length,
        out: &mut Findings,
    ) -> Option<String> {
        let (spot, value) = self.take(name, out)?;
        match text(value, &spot.below(&self.at), length, out) {
            Ok(text) => text,
            Err(value) => {
                self.keep(&spot, value);
                None
            }
        }
    }

    pub(crate) fn flag(&mut self, name: &'static str, out: &mut Findings) -> Option<bool> {
        let (spot, value) = self.take(name, out)?;
        let flag = flag(&value, &spot.below(&self.at), out);
        if flag.is_none() {
            self.keep(&spot, value);
        }
        flag
    }

    /// Takes a list of texts; a single text is read as a list of one.
    pub(crate) fn texts(
        &mut self,
        name: &'static str,
        length: Length,
        out: &mut Findings,
    ) -> Vec<String> {
        let Some((spot, value)) = self.take(name, out) else {
            return Vec::new();
        };
        let at = spot.below(&self.at);
        match value {
            Value::Array(list) => texts(list, &at, length, out),
            Value::String(_) => {
                out.coerced(&at, &value, "a list of texts");
                texts(vec![value], &at, length, out)
            }
            other => {
                out.mistyped(&at, &other, "a list of texts");
                self.keep(&spot, other);
                Vec::new()
            }
        }
    }

    /// The members that were not taken, and those that could not be read.
    pub(crate) fn rest(self) -> Map<String, Value> {
        let mut rest = self.map;
        rest.extend(self.unread);
        rest
    }
}

/// Whether `spelling` is the camelCase `name` or its `snake_case` form, checked without allocating.
pub(crate) fn is_spelling(spelling: &str, name: &str) -> bool {
    if spelling == name {
        return true;
    }
    let mut rest = spelling.chars();
    let same = name.chars().all(|character| {
        let underscore = !character.is_ascii_uppercase() || rest.next() == Some('_');
        underscore && rest.next() == Some(character.to_ascii_lowercase())
    });
    same && rest.next().is_none()
}

pub(crate) fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for character in name.chars() {
        if character.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(character.to_ascii_lowercase());
    }
    snake
}

/// Reads a text or number, trimmed and limited; `Ok(None)` if nothing is left of it, the value itself for other types.
pub(crate) fn text(
    value: Value,
    at: &Pointer<'_>,
    length: Length,
    out: &mut Findings,
) -> Result<Option<String>, Value> {
    let text = match value {
        Value::String(text) => text,
        Value::Number(ref number) => {
            out.coerced(at, &value, "a text");
            number.to_string()
        }
        other => match in_one_language(&other).map(str::to_owned) {
            Some(text) if length != Length::Address => {
                out.coerced(at, &other, "a text, in one language");
                text
            }
            _ => {
                out.mistyped(at, &other, "a text");
                return Err(other);
            }
        },
    };
    Ok(bounded(text, at, length, out).filter(|text| !text.is_empty()))
}

/// The text in English, or else the first one, of a text by language.
fn in_one_language(value: &Value) -> Option<&str> {
    let texts = texts_by_language(value);
    let is_english = |language: &str| {
        let primary = language.split(['-', '_']).next();
        primary.is_some_and(|primary| primary.eq_ignore_ascii_case("en"))
    };
    let english = texts.iter().find(|(language, _)| is_english(language));
    english.or(texts.first()).map(|(_, text)| *text)
}

/// The texts by language: of an object with language tags (RFC 5646) as names, or of a list of objects with a language
/// and a text each. Empty for any other value.
pub(crate) fn texts_by_language(value: &Value) -> Vec<(&str, &str)> {
    let texts: Option<Vec<(&str, &str)>> = match value {
        Value::Object(named) => named
            .iter()
            .take(MAX_LIST)
            .map(|(name, text)| Some((name.as_str(), text.as_str()?)))
            .collect(),
        Value::Array(list) => list.iter().take(MAX_LIST).map(text_in_language).collect(),
        _ => None,
    };
    let texts = texts.unwrap_or_default();
    if texts.iter().all(|(language, _)| is_language(language)) {
        texts
    } else {
        Vec::new()
    }
}

/// The language and the text of an object that has both.
fn text_in_language(entry: &Value) -> Option<(&str, &str)> {
    let mut texts = [None; 2];
    let names = [["language", "lang", "locale"], ["text", "value", "content"]];
    for (text, names) in texts.iter_mut().zip(names) {
        *text = names.into_iter().find_map(|name| entry.get(name)?.as_str());
    }
    let [language, text] = texts;
    Some((language?, text?))
}

/// Whether a name is a language tag with a primary language of two letters, or stands for the default.
fn is_language(name: &str) -> bool {
    let mut subtags = name.split(['-', '_']);
    let primary = subtags.next().unwrap_or_default();
    let is_primary = primary.len() == 2 && primary.bytes().all(|b| b.is_ascii_alphabetic());
    let is_subtag =
        |tag: &str| (1..=8).contains(&tag.len()) && tag.bytes().all(|b| b.is_ascii_alphanumeric());
    (is_primary && subtags.all(is_subtag)) || name == "default"
}

/// Trims and cuts a text; `None` for an address beyond its limit.
pub(crate) fn bounded(
    text: String,
    at: &Pointer<'_>,
    length: Length,
    out: &mut Findings,
) -> Option<String> {
    let trimmed = text.trim();
    let limit = length.limit();
    // A text has at least as many bytes as characters.
    if trimmed.len() > limit
        && let Some((end, _)) = trimmed.char_indices().nth(limit)
    {
        out.add(&rules::TEXT_TOO_LONG, at, trimmed);
        return (length != Length::Address).then(|| trimmed[..end].trim_end().to_owned());
    }
    if trimmed.len() == text.len() {
        Some(text)
    } else {
        Some(trimmed.to_owned())
    }
}

/// Reads a boolean; `"true"` and `"False"` are understood, with a finding.
pub(crate) fn flag(value: &Value, at: &Pointer<'_>, out: &mut Findings) -> Option<bool> {
    let understood = match value {
        Value::Bool(flag) => return Some(*flag),
        Value::String(text) if text.trim().eq_ignore_ascii_case("true") => Some(true),
        Value::String(text) if text.trim().eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    };
    match understood {
        Some(_) => out.coerced(at, value, "true or false"),
        None => out.mistyped(at, value, "true or false"),
    }
    understood
}

/// Every element that is a non-empty text.
pub(crate) fn texts(
    list: Vec<Value>,
    at: &Pointer<'_>,
    length: Length,
    out: &mut Findings,
) -> Vec<String> {
    let mut texts = Vec::new();
    for (index, value) in cut(list, at, out).into_iter().enumerate() {
        if let Ok(Some(text)) = text(value, &at.index(index), length, out) {
            texts.push(text);
        }
    }
    texts
}

/// The first [`MAX_LIST`] elements.
pub(crate) fn cut(mut list: Vec<Value>, at: &Pointer<'_>, out: &mut Findings) -> Vec<Value> {
    if list.len() > MAX_LIST {
        out.add(&rules::LIST_CUT, at, &format!("{} elements", list.len()));
        list.truncate(MAX_LIST);
    }
    list
}

/// The values without duplicates, in the order of first appearance.
pub(crate) fn unique<T: Clone + Eq + Hash>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut seen = HashSet::new();
    values
        .into_iter()
        .filter(|value| seen.insert(value.clone()))
        .collect()
}

/// The letters and digits of a name in lower case, for comparing names with many spellings.
pub(crate) fn folded(name: &str) -> String {
    name.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|character| character.to_ascii_lowercase())
        .collect()
}
