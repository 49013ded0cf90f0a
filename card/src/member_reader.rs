//! Reader of single members, each on its own, so that a malformed one does not affect the others.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::Hash;

use serde_json::{Map, Value};

use crate::finding::FindingCollector;
use crate::json_pointer::JsonPointer;
use crate::rules;

/// Maximum number of elements read of any list: skills, tags, interfaces, schemes, …
pub const MAX_LIST_ELEMENTS: usize = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LengthLimit {
    /// Names, identifiers, tags: up to 1 024 characters, then cut.
    Line,
    /// Descriptions and examples: up to 16 384 characters, then cut.
    Prose,
    /// Addresses: up to 4 096 characters. A longer one is ignored, because a cut address would be a different address.
    Address,
}

impl LengthLimit {
    pub(crate) fn max_chars(self) -> usize {
        match self {
            LengthLimit::Line => 1_024,
            LengthLimit::Prose => 16_384,
            LengthLimit::Address => 4_096,
        }
    }
}

/// Members of one object, taken one after another; the rest is unknown.
pub(crate) struct MemberReader<'p> {
    map: Map<String, Value>,
    pointer: JsonPointer<'p>,
    /// Whether any name has an underscore, so that `snake_case` needs to be tried.
    has_snake_case: bool,
    /// Members lifted out of a nested object, with the name of that object.
    lifted: Option<(&'static str, Vec<&'static str>)>,
    /// Members with a value that could not be read.
    unreadable: Map<String, Value>,
}

pub(crate) struct MemberPosition {
    outer: Option<&'static str>,
    name: Cow<'static, str>,
}

impl MemberPosition {
    /// The member `name`, inside the member `outer` of the object if that is given.
    pub(crate) fn new(outer: Option<&'static str>, name: impl Into<Cow<'static, str>>) -> Self {
        let name = name.into();
        MemberPosition { outer, name }
    }

    pub(crate) fn pointer_in<'a>(&'a self, parent: &'a JsonPointer<'a>) -> JsonPointer<'a> {
        match self.outer {
            Some(outer) => JsonPointer::NestedName(parent, outer, &self.name),
            None => JsonPointer::Name(parent, &self.name),
        }
    }
}

impl<'p> MemberReader<'p> {
    pub(crate) fn new(map: Map<String, Value>, pointer: JsonPointer<'p>) -> Self {
        let has_snake_case = map.keys().any(|name| name.contains('_'));
        MemberReader {
            map,
            pointer,
            has_snake_case,
            lifted: None,
            unreadable: Map::new(),
        }
    }

    pub(crate) fn pointer(&self) -> JsonPointer<'p> {
        self.pointer
    }

    /// A member, without taking it; null counts as absent.
    pub(crate) fn peek_member(&self, name: &str) -> Option<&Value> {
        let value = self.map.get(name).filter(|value| !value.is_null());
        if value.is_some() || !self.has_snake_case {
            return value;
        }
        self.map
            .get(&to_snake_case(name))
            .filter(|value| !value.is_null())
    }

    pub(crate) fn has_snake_case_spelling(&self, name: &str) -> bool {
        self.has_snake_case && !self.map.contains_key(name) && self.peek_member(name).is_some()
    }

    /// The position of a member that has not been taken yet, as spelt in the card.
    pub(crate) fn position_of(&self, name: &'static str) -> MemberPosition {
        if self.has_snake_case_spelling(name) {
            MemberPosition::new(self.lifted_from(name), to_snake_case(name))
        } else {
            MemberPosition::new(self.lifted_from(name), name)
        }
    }

    /// The nested object that the member was lifted out of.
    fn lifted_from(&self, name: &str) -> Option<&'static str> {
        let lifted = self.lifted.as_ref();
        let matching_lift = lifted.filter(|(_, names)| names.contains(&name));
        matching_lift.map(|(outer, _)| *outer)
    }

    /// Lifts the named members of the nested object `outer` to this level, where this level has none.
    pub(crate) fn lift_members(&mut self, outer: &'static str, names: &[&'static str]) {
        let Some(Value::Object(mut nested)) = self.map.shift_remove(outer) else {
            return;
        };
        let mut lifted_names = Vec::new();
        for &name in names {
            if self.peek_member(name).is_some() {
                continue;
            }
            let spelling = to_snake_case(name);
            let value = nested
                .shift_remove(name)
                .or_else(|| nested.shift_remove(&spelling));
            if let Some(value) = value {
                self.map.insert(name.to_owned(), value);
                lifted_names.push(name);
            }
        }
        if !nested.is_empty() {
            self.unreadable
                .insert(outer.to_owned(), Value::Object(nested));
        }
        self.lifted = Some((outer, lifted_names));
    }

    /// Takes a member in camelCase or `snake_case`. Null counts as absent, with a finding.
    pub(crate) fn take_member(
        &mut self,
        name: &'static str,
        out: &mut FindingCollector,
    ) -> Option<(MemberPosition, Value)> {
        let camel_case_value = self.map.shift_remove(name);
        let mut taken = camel_case_value.map(|value| (Cow::Borrowed(name), value));
        if self.has_snake_case {
            let snake_name = to_snake_case(name);
            if snake_name != name
                && let Some(value) = self.map.shift_remove(&snake_name)
            {
                let pointer = self.pointer;
                if taken.is_some() {
                    out.add(
                        &rules::MEMBER_TWICE,
                        &pointer.member(&snake_name),
                        &snake_name,
                    );
                } else {
                    out.add_once(
                        &rules::MEMBER_SNAKE,
                        &pointer.member(&snake_name),
                        &snake_name,
                    );
                    taken = Some((Cow::Owned(snake_name), value));
                }
            }
        }
        let (name, value) = taken?;
        let outer = self.lifted_from(&name);
        let position = MemberPosition { outer, name };
        if value.is_null() {
            out.add(
                &rules::MEMBER_NULL,
                &position.pointer_in(&self.pointer),
                "null",
            );
            return None;
        }
        Some((position, value))
    }

    /// A member that was not taken or could not be read.
    pub(crate) fn remaining_member(&self, name: &str) -> Option<&Value> {
        self.unreadable.get(name).or_else(|| self.map.get(name))
    }

    pub(crate) fn take_remaining_member(&mut self, name: &str) -> Option<Value> {
        let unreadable = self.unreadable.shift_remove(name);
        unreadable.or_else(|| self.map.shift_remove(name))
    }

    pub(crate) fn retain_unreadable(&mut self, position: &MemberPosition, value: Value) {
        self.unreadable
            .insert(position.name.clone().into_owned(), value);
    }

    /// Takes a text; an empty one counts as absent.
    pub(crate) fn take_text(
        &mut self,
        name: &'static str,
        length_limit: LengthLimit,
        out: &mut FindingCollector,
    ) -> Option<String> {
        let (position, value) = self.take_member(name, out)?;
        match read_text(
            value,
            &position.pointer_in(&self.pointer),
            length_limit,
            out,
        ) {
            Ok(text) => text,
            Err(value) => {
                self.retain_unreadable(&position, value);
                None
            }
        }
    }

    pub(crate) fn take_bool(
        &mut self,
        name: &'static str,
        out: &mut FindingCollector,
    ) -> Option<bool> {
        let (position, value) = self.take_member(name, out)?;
        let flag = read_bool(&value, &position.pointer_in(&self.pointer), out);
        if flag.is_none() {
            self.retain_unreadable(&position, value);
        }
        flag
    }

    /// Takes a list of texts; a single text is read as a list of one.
    pub(crate) fn take_texts(
        &mut self,
        name: &'static str,
        length_limit: LengthLimit,
        out: &mut FindingCollector,
    ) -> Vec<String> {
        let Some((position, value)) = self.take_member(name, out) else {
            return Vec::new();
        };
        let pointer = position.pointer_in(&self.pointer);
        match value {
            Value::Array(list) => read_texts(list, &pointer, length_limit, out),
            Value::String(_) => {
                out.add_coerced_type(&pointer, &value, "a list of texts");
                read_texts(vec![value], &pointer, length_limit, out)
            }
            other => {
                out.add_wrong_type(&pointer, &other, "a list of texts");
                self.retain_unreadable(&position, other);
                Vec::new()
            }
        }
    }

    /// The members that were not taken, and those that could not be read.
    pub(crate) fn into_remaining(self) -> Map<String, Value> {
        let mut rest = self.map;
        rest.extend(self.unreadable);
        rest
    }
}

/// Whether `spelling` is the camelCase `name` or its `snake_case` form, checked without allocating.
pub(crate) fn is_spelling_of(spelling: &str, name: &str) -> bool {
    if spelling == name {
        return true;
    }
    let mut rest = spelling.chars();
    let is_same = name.chars().all(|character| {
        let has_underscore = !character.is_ascii_uppercase() || rest.next() == Some('_');
        has_underscore && rest.next() == Some(character.to_ascii_lowercase())
    });
    is_same && rest.next().is_none()
}

/// The `snake_case` spelling of a member, which some agents write instead of the camelCase `name`.
pub fn to_snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for character in name.chars() {
        if character.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(character.to_ascii_lowercase());
    }
    snake
}

/// Reads a text or number, trimmed and limited; `Ok(None)` if nothing is left of it, `Err` with the value for other
/// types.
pub(crate) fn read_text(
    value: Value,
    pointer: &JsonPointer<'_>,
    length_limit: LengthLimit,
    out: &mut FindingCollector,
) -> Result<Option<String>, Value> {
    let text = match value {
        Value::String(text) => text,
        Value::Number(ref number) => {
            out.add_coerced_type(pointer, &value, "a text");
            number.to_string()
        }
        other => match english_or_first_text(&other).map(str::to_owned) {
            Some(text) if length_limit != LengthLimit::Address => {
                out.add_coerced_type(pointer, &other, "a text, in one language");
                text
            }
            _ => {
                out.add_wrong_type(pointer, &other, "a text");
                return Err(other);
            }
        },
    };
    Ok(trim_and_truncate(text, pointer, length_limit, out).filter(|text| !text.is_empty()))
}

/// The English text, or else the first one, of a text by language.
fn english_or_first_text(value: &Value) -> Option<&str> {
    let texts = texts_by_language(value);
    let is_english = |language: &str| {
        let primary = language.split(['-', '_']).next();
        primary.is_some_and(|primary| primary.eq_ignore_ascii_case("en"))
    };
    let english = texts.iter().find(|(language, _)| is_english(language));
    english.or(texts.first()).map(|(_, text)| *text)
}

/// The texts by language: of an object with language tags (RFC 5646) as names, or of a list of objects that each have
/// a language and a text. Empty for any other value.
pub(crate) fn texts_by_language(value: &Value) -> Vec<(&str, &str)> {
    let texts: Option<Vec<(&str, &str)>> = match value {
        Value::Object(named) => named
            .iter()
            .take(MAX_LIST_ELEMENTS)
            .map(|(name, text)| Some((name.as_str(), text.as_str()?)))
            .collect(),
        Value::Array(list) => list
            .iter()
            .take(MAX_LIST_ELEMENTS)
            .map(language_and_text)
            .collect(),
        _ => None,
    };
    let texts = texts.unwrap_or_default();
    if texts.iter().all(|(language, _)| is_language_tag(language)) {
        texts
    } else {
        Vec::new()
    }
}

/// The language and the text of an object that has both.
fn language_and_text(entry: &Value) -> Option<(&str, &str)> {
    let mut texts = [None; 2];
    let names = [["language", "lang", "locale"], ["text", "value", "content"]];
    for (text, names) in texts.iter_mut().zip(names) {
        *text = names.into_iter().find_map(|name| entry.get(name)?.as_str());
    }
    let [language, text] = texts;
    Some((language?, text?))
}

/// Whether a name is a language tag with a primary language of two letters, or the name of the default.
fn is_language_tag(name: &str) -> bool {
    let mut subtags = name.split(['-', '_']);
    let primary = subtags.next().unwrap_or_default();
    let is_primary = primary.len() == 2 && primary.bytes().all(|b| b.is_ascii_alphabetic());
    let is_subtag =
        |tag: &str| (1..=8).contains(&tag.len()) && tag.bytes().all(|b| b.is_ascii_alphanumeric());
    (is_primary && subtags.all(is_subtag)) || name == "default"
}

/// Trims and cuts a text; `None` for an address beyond its limit.
pub(crate) fn trim_and_truncate(
    text: String,
    pointer: &JsonPointer<'_>,
    length_limit: LengthLimit,
    out: &mut FindingCollector,
) -> Option<String> {
    let trimmed = text.trim();
    let max_chars = length_limit.max_chars();
    // A text has at least as many bytes as characters.
    if trimmed.len() > max_chars
        && let Some((end, _)) = trimmed.char_indices().nth(max_chars)
    {
        out.add(&rules::TEXT_TOO_LONG, pointer, trimmed);
        return (length_limit != LengthLimit::Address)
            .then(|| trimmed[..end].trim_end().to_owned());
    }
    if trimmed.len() == text.len() {
        Some(text)
    } else {
        Some(trimmed.to_owned())
    }
}

/// Reads a boolean; `"true"` and `"False"` are understood, with a finding.
pub(crate) fn read_bool(
    value: &Value,
    pointer: &JsonPointer<'_>,
    out: &mut FindingCollector,
) -> Option<bool> {
    let understood = match value {
        Value::Bool(flag) => return Some(*flag),
        Value::String(text) if text.trim().eq_ignore_ascii_case("true") => Some(true),
        Value::String(text) if text.trim().eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    };
    match understood {
        Some(_) => out.add_coerced_type(pointer, value, "true or false"),
        None => out.add_wrong_type(pointer, value, "true or false"),
    }
    understood
}

/// Every element that is a non-empty text.
pub(crate) fn read_texts(
    list: Vec<Value>,
    pointer: &JsonPointer<'_>,
    length_limit: LengthLimit,
    out: &mut FindingCollector,
) -> Vec<String> {
    let mut texts = Vec::new();
    for (index, value) in truncate_list(list, pointer, out).into_iter().enumerate() {
        if let Ok(Some(text)) = read_text(value, &pointer.element(index), length_limit, out) {
            texts.push(text);
        }
    }
    texts
}

/// The first [`MAX_LIST_ELEMENTS`] elements.
pub(crate) fn truncate_list(
    mut list: Vec<Value>,
    pointer: &JsonPointer<'_>,
    out: &mut FindingCollector,
) -> Vec<Value> {
    if list.len() > MAX_LIST_ELEMENTS {
        out.add(
            &rules::LIST_CUT,
            pointer,
            &format!("{} elements", list.len()),
        );
        list.truncate(MAX_LIST_ELEMENTS);
    }
    list
}

/// The values without duplicates, in the order of first appearance.
pub(crate) fn unique_values<T: Clone + Eq + Hash>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut visited = HashSet::new();
    values
        .into_iter()
        .filter(|value| visited.insert(value.clone()))
        .collect()
}

/// The letters and digits of a name in lower case, for comparing names with many spellings.
pub(crate) fn fold_name(name: &str) -> String {
    name.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|character| character.to_ascii_lowercase())
        .collect()
}
