//! Parses bytes into a JSON tree, and notes on the way where JSON parsers disagree.

use std::collections::HashMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::finding::Findings;
use crate::pointer::Pointer;
use crate::refusal::{MAX_CARD_BYTES, ParseError};
use crate::rule::Rule;
use crate::scan::scan;
use crate::{rules, text};

#[derive(Debug)]
pub(crate) struct Document {
    /// The tree. Of members with the same name it has the last one, as in most JSON parsers.
    pub(crate) value: Value,
    /// Whether every parser reads the same (RFC 7493): unique names, whole surrogate pairs, exact doubles.
    pub(crate) exact: bool,
}

/// What becomes of U+0000 in text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nul {
    /// For digests, which must distinguish any two texts.
    Keep,
    /// U+FFFD takes its place: databases refuse U+0000 in text.
    Replace,
}

pub(crate) fn read(bytes: &[u8], nul: Nul, out: &mut Findings) -> Result<Document, ParseError> {
    build(bytes, nul, Repeated::Last, out)
}

/// Parses a document with everything that any parser could see in it: U+0000 stays, and so do repeated members.
///
/// The last one keeps its name; each earlier one is renamed to its name, U+0000 and a number. A U+0000 that the
/// document itself has in a name is doubled, so that no two documents give the same tree.
pub(crate) fn read_all(bytes: &[u8]) -> Result<Document, ParseError> {
    build(bytes, Nul::Keep, Repeated::All, &mut Findings::default())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Repeated {
    Last,
    All,
}

fn build(
    bytes: &[u8],
    nul: Nul,
    repeated: Repeated,
    out: &mut Findings,
) -> Result<Document, ParseError> {
    if bytes.len() > MAX_CARD_BYTES {
        return Err(ParseError::TooLarge { size: bytes.len() });
    }
    let body = match bytes.strip_prefix(b"\xef\xbb\xbf") {
        Some(body) => {
            out.add(&rules::JSON_BOM, &Pointer::Root, "U+FEFF");
            body
        }
        None => bytes,
    };
    refuse_other_formats(body)?;
    let seen = scan(body).map_err(|_| ParseError::TooDeep)?;
    let mut note = |rule: &Rule, place: Option<usize>| {
        if let Some(place) = place {
            let (line, column) = position(body, place);
            out.add(
                rule,
                &Pointer::Root,
                &format!("line {line}, column {column}"),
            );
        }
    };
    note(&rules::JSON_SURROGATE, seen.lone_surrogate);
    note(&rules::JSON_NUMBER_HUGE, seen.huge_number);
    note(&rules::JSON_NUMBER_INEXACT, seen.inexact_number);
    let mut exact = seen.lone_surrogate.is_none()
        && seen.huge_number.is_none()
        && seen.inexact_number.is_none();

    let mut parser = serde_json::Deserializer::from_slice(&seen.bytes);
    let node = Node {
        at: &Pointer::Root,
        state: &mut TreeState {
            nul,
            repeated,
            exact: &mut exact,
            out,
        },
    };
    let value = node
        .deserialize(&mut parser)
        .and_then(|value| parser.end().map(|()| value))
        .map_err(|error| not_json(&error))?;
    Ok(Document { value, exact })
}

/// Fewest bytes of a document for each of its lists and objects, for which [`serde_json`] reserves more room.
const BYTES_OF_CONTAINER: usize = 8;

/// Parses a document again without findings; null if [`read`] refuses it. U+0000 may stay in text.
pub(crate) fn reparse(bytes: &[u8]) -> Value {
    let body = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let containers = body.iter().filter(|byte| matches!(byte, b'[' | b'{'));
    let plain =
        if bytes.len() <= MAX_CARD_BYTES && containers.count() <= body.len() / BYTES_OF_CONTAINER {
            serde_json::from_slice(body).ok()
        } else {
            None
        };
    // `serde_json` alone rejects half surrogate pairs and numbers beyond a double; `read` accepts them.
    plain.unwrap_or_else(|| {
        read(bytes, Nul::Replace, &mut Findings::default())
            .map_or(Value::Null, |document| document.value)
    })
}

/// Recognises other formats that are often served instead of a card and that no JSON parser describes well.
fn refuse_other_formats(body: &[u8]) -> Result<(), ParseError> {
    let start = body.trim_ascii_start();
    let reason = match start {
        [] => "the body is empty",
        [b'<', ..] => "the body is an HTML or XML page",
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0, _, ..] | [_, 0, ..] => {
            return Err(ParseError::NotJson {
                line: 1,
                column: 1,
                text: "the text is encoded in UTF-16 or UTF-32; use UTF-8".into(),
            });
        }
        _ => return Ok(()),
    };
    Err(ParseError::NotACard {
        reason: reason.into(),
    })
}

/// The parser's error without the position, which has its own members.
fn not_json(error: &serde_json::Error) -> ParseError {
    let (line, column) = (error.line(), error.column());
    let text = error.to_string();
    let position = format!(" at line {line} column {column}");
    ParseError::NotJson {
        line,
        column,
        text: text.strip_suffix(&position).unwrap_or(&text).to_owned(),
    }
}

/// Line and column, both from 1; the column counts bytes, like the JSON parser's.
fn position(bytes: &[u8], place: usize) -> (usize, usize) {
    let before = &bytes[..place.min(bytes.len())];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let column = before
        .iter()
        .rev()
        .take_while(|byte| **byte != b'\n')
        .count()
        + 1;
    (line, column)
}

struct TreeState<'s> {
    nul: Nul,
    repeated: Repeated,
    exact: &'s mut bool,
    out: &'s mut Findings,
}

impl TreeState<'_> {
    /// Reports U+0000 and hidden characters in a text or a name, and replaces U+0000 where required.
    fn text(&mut self, at: &Pointer<'_>, mut text: String) -> String {
        if !text::has_hidden(&text) {
            return text;
        }
        if text.contains('\0') {
            self.out.add(&rules::TEXT_NUL, at, &text);
            if self.nul == Nul::Replace {
                text = text.replace('\0', "\u{fffd}");
            }
        }
        if text::has_hidden(&text) {
            self.out.add(&rules::TEXT_HIDDEN, at, &text);
        }
        text
    }
}

struct Node<'p, 's, 'f> {
    at: &'p Pointer<'p>,
    state: &'s mut TreeState<'f>,
}

impl<'de> DeserializeSeed<'de> for Node<'_, '_, '_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_, '_, '_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(self.state.text(self.at, value.to_owned())))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(self.state.text(self.at, value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let at = self.at.index(list.len());
            let node = Node {
                at: &at,
                state: &mut *self.state,
            };
            match elements.next_element_seed(node)? {
                Some(value) => list.push(value),
                None => {
                    // A list begins with room for four: without this a tree of lists in lists is four times as large.
                    if list.len() <= list.capacity() / 2 {
                        list.shrink_to_fit();
                    }
                    return Ok(Value::Array(list));
                }
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        // Counts the earlier members of each repeated name.
        let mut earlier: HashMap<String, usize> = HashMap::new();
        let all = self.state.repeated == Repeated::All;
        while let Some(mut name) = members.next_key::<String>()? {
            if text::has_hidden(&name) {
                name = self.state.text(self.at, name);
                if all {
                    name = name.replace('\0', "\0\0");
                }
            }
            let at = self.at.name(&name);
            let value = members.next_value_seed(Node {
                at: &at,
                state: &mut *self.state,
            })?;
            if map.contains_key(&name) {
                *self.state.exact = false;
                self.state.out.add(&rules::JSON_DUPLICATE, &at, &name);
            }
            if all && let Some(value) = map.get_mut(&name).map(Value::take) {
                let count = earlier.entry(name.clone()).or_default();
                *count += 1;
                map.insert(format!("{name}\0{count}"), value);
            }
            map.insert(name, value);
        }
        Ok(Value::Object(shrink_single(map)))
    }
}

/// Frees the room of a map with a single member: a map begins with room for three more.
fn shrink_single(map: Map<String, Value>) -> Map<String, Value> {
    if map.len() != 1 {
        return map;
    }
    let mut exact = Map::with_capacity(1);
    exact.extend(map);
    exact
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::mem::size_of;

    use super::*;

    /// The bytes that the elements of all lists of a tree take, their spare room included.
    fn bytes_of_lists(value: &Value) -> usize {
        match value {
            Value::Array(list) => {
                let below: usize = list.iter().map(bytes_of_lists).sum();
                list.capacity() * size_of::<Value>() + below
            }
            Value::Object(map) => map.values().map(bytes_of_lists).sum(),
            _ => 0,
        }
    }

    #[test]
    fn trees_of_lists_have_little_spare_room() {
        let deep = format!("{}{}", "[".repeat(60), "]".repeat(60));
        for element in [&*deep, "[[]]", "[]", "[0]", "0"] {
            let count = 100_000 / (element.len() + 1);
            let card = format!("[{}]", vec![element; count].join(","));
            for tree in [
                read(card.as_bytes(), Nul::Replace, &mut Findings::default())
                    .unwrap()
                    .value,
                reparse(card.as_bytes()),
                read_all(card.as_bytes()).unwrap().value,
            ] {
                // An element takes at least two bytes of text, and at most twice its room.
                let most = card.len() * size_of::<Value>();
                assert!(bytes_of_lists(&tree) <= most, "{element}");
            }
        }
    }
}
