//! Parser from bytes to a JSON tree that also detects where JSON parsers disagree.

use std::collections::HashMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Number, Value};

use crate::finding::FindingCollector;
use crate::json_pointer::JsonPointer;
use crate::json_scan::scan_json;
use crate::parse_error::{MAX_CARD_BYTES, ParseError};
use crate::rule::Rule;
use crate::{hidden_characters, rules};

#[derive(Debug)]
pub(crate) struct JsonDocument {
    /// The tree. Of members with the same name it has the last one, as in most JSON parsers.
    pub(crate) value: Value,
    /// Whether every parser reads the same value (RFC 7493): unique names, whole surrogate pairs, exact doubles.
    pub(crate) exact: bool,
}

/// Handling of U+0000 in text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NulHandling {
    /// Keeps it, for digests, which must distinguish any two texts.
    Keep,
    /// Replaces it by U+FFFD: databases reject U+0000 in text.
    Replace,
}

pub(crate) fn parse_json(
    bytes: &[u8],
    nul_handling: NulHandling,
    out: &mut FindingCollector,
) -> Result<JsonDocument, ParseError> {
    parse_json_tree(bytes, nul_handling, DuplicateNameHandling::Last, out)
}

/// Parses a document with everything that any parser could see in it: U+0000 and repeated members are kept.
///
/// The last of several members with one name keeps the name; each earlier one is renamed to its name, U+0000 and a
/// number. A U+0000 in a name of the document itself is doubled, so that no two documents give the same tree.
pub(crate) fn parse_json_with_duplicates(bytes: &[u8]) -> Result<JsonDocument, ParseError> {
    parse_json_tree(
        bytes,
        NulHandling::Keep,
        DuplicateNameHandling::All,
        &mut FindingCollector::default(),
    )
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DuplicateNameHandling {
    Last,
    All,
}

fn parse_json_tree(
    bytes: &[u8],
    nul_handling: NulHandling,
    duplicate_names: DuplicateNameHandling,
    out: &mut FindingCollector,
) -> Result<JsonDocument, ParseError> {
    if bytes.len() > MAX_CARD_BYTES {
        return Err(ParseError::TooLarge { size: bytes.len() });
    }
    let body = match bytes.strip_prefix(b"\xef\xbb\xbf") {
        Some(body) => {
            out.add(&rules::JSON_BOM, &JsonPointer::Root, "U+FEFF");
            body
        }
        None => bytes,
    };
    reject_other_formats(body)?;
    let scan_result = scan_json(body).map_err(|_| ParseError::TooDeep)?;
    let mut add_finding = |rule: &Rule, offset: Option<usize>| {
        if let Some(place) = offset {
            let (line, column) = line_and_column(body, place);
            out.add(
                rule,
                &JsonPointer::Root,
                &format!("line {line}, column {column}"),
            );
        }
    };
    add_finding(&rules::JSON_SURROGATE, scan_result.lone_surrogate);
    add_finding(&rules::JSON_NUMBER_HUGE, scan_result.huge_number);
    add_finding(&rules::JSON_NUMBER_INEXACT, scan_result.inexact_number);
    let mut exact = scan_result.lone_surrogate.is_none()
        && scan_result.huge_number.is_none()
        && scan_result.inexact_number.is_none();

    let mut parser = serde_json::Deserializer::from_slice(&scan_result.bytes);
    let root_seed = JsonNodeSeed {
        pointer: &JsonPointer::Root,
        state: &mut JsonTreeBuilderState {
            nul_handling,
            duplicate_names,
            exact: &mut exact,
            out,
        },
    };
    let value = root_seed
        .deserialize(&mut parser)
        .and_then(|value| parser.end().map(|()| value))
        .map_err(|error| json_syntax_error(&error))?;
    Ok(JsonDocument { value, exact })
}

/// Minimum number of document bytes for each of its lists and objects, for which [`serde_json`] reserves more room.
const MIN_CONTAINER_BYTES: usize = 8;

/// Parses a document again without findings; null if [`parse_json`] rejects it. U+0000 may stay in text.
pub(crate) fn parse_json_without_findings(bytes: &[u8]) -> Value {
    let body = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let containers = body.iter().filter(|byte| matches!(byte, b'[' | b'{'));
    let directly_parsed = if bytes.len() <= MAX_CARD_BYTES
        && containers.count() <= body.len() / MIN_CONTAINER_BYTES
    {
        serde_json::from_slice(body).ok()
    } else {
        None
    };
    // `serde_json` alone rejects half surrogate pairs and numbers beyond a double; `parse_json` accepts them.
    directly_parsed.unwrap_or_else(|| {
        parse_json(
            bytes,
            NulHandling::Replace,
            &mut FindingCollector::default(),
        )
        .map_or(Value::Null, |document| document.value)
    })
}

/// Recognises other formats that are often served in place of a card, and that no JSON parser describes well.
fn reject_other_formats(body: &[u8]) -> Result<(), ParseError> {
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
fn json_syntax_error(error: &serde_json::Error) -> ParseError {
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
fn line_and_column(bytes: &[u8], offset: usize) -> (usize, usize) {
    let before = &bytes[..offset.min(bytes.len())];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let column = before
        .iter()
        .rev()
        .take_while(|byte| **byte != b'\n')
        .count()
        + 1;
    (line, column)
}

struct JsonTreeBuilderState<'s> {
    nul_handling: NulHandling,
    duplicate_names: DuplicateNameHandling,
    exact: &'s mut bool,
    out: &'s mut FindingCollector,
}

impl JsonTreeBuilderState<'_> {
    /// Reports U+0000 and hidden characters in a text or a name, and replaces U+0000 where required.
    fn check_and_clean_text(&mut self, pointer: &JsonPointer<'_>, mut text: String) -> String {
        if !hidden_characters::has_hidden_characters(&text) {
            return text;
        }
        if text.contains('\0') {
            self.out.add(&rules::TEXT_NUL, pointer, &text);
            if self.nul_handling == NulHandling::Replace {
                text = text.replace('\0', "\u{fffd}");
            }
        }
        if hidden_characters::has_hidden_characters(&text) {
            self.out.add(&rules::TEXT_HIDDEN, pointer, &text);
        }
        text
    }
}

struct JsonNodeSeed<'p, 's, 'f> {
    pointer: &'p JsonPointer<'p>,
    state: &'s mut JsonTreeBuilderState<'f>,
}

impl<'de> DeserializeSeed<'de> for JsonNodeSeed<'_, '_, '_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for JsonNodeSeed<'_, '_, '_> {
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
        Ok(Value::String(
            self.state
                .check_and_clean_text(self.pointer, value.to_owned()),
        ))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(
            self.state.check_and_clean_text(self.pointer, value),
        ))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let pointer = self.pointer.element(list.len());
            let seed = JsonNodeSeed {
                pointer: &pointer,
                state: &mut *self.state,
            };
            match elements.next_element_seed(seed)? {
                Some(value) => list.push(value),
                None => {
                    // A list starts with room for four: without this a tree of lists in lists is four times as large.
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
        let mut earlier_counts: HashMap<String, usize> = HashMap::new();
        let keep_all = self.state.duplicate_names == DuplicateNameHandling::All;
        while let Some(mut name) = members.next_key::<String>()? {
            if hidden_characters::has_hidden_characters(&name) {
                name = self.state.check_and_clean_text(self.pointer, name);
                if keep_all {
                    name = name.replace('\0', "\0\0");
                }
            }
            let pointer = self.pointer.member(&name);
            let value = members.next_value_seed(JsonNodeSeed {
                pointer: &pointer,
                state: &mut *self.state,
            })?;
            // The name is hashed once, whether it is new or not.
            let replaced = match map.entry(name) {
                Entry::Vacant(entry) => {
                    entry.insert(value);
                    None
                }
                Entry::Occupied(mut entry) => Some((entry.key().clone(), entry.insert(value))),
            };
            let Some((name, earlier_value)) = replaced else {
                continue;
            };
            *self.state.exact = false;
            let pointer = self.pointer.member(&name);
            self.state.out.add(&rules::JSON_DUPLICATE, &pointer, &name);
            if keep_all {
                let count = earlier_counts.entry(name.clone()).or_default();
                *count += 1;
                map.insert(format!("{name}\0{count}"), earlier_value);
            }
        }
        Ok(Value::Object(shrink_single_member_map(map)))
    }
}

/// Frees the spare room of a map with a single member: a map starts with room for three more.
fn shrink_single_member_map(map: Map<String, Value>) -> Map<String, Value> {
    if map.len() != 1 {
        return map;
    }
    let mut shrunk = Map::with_capacity(1);
    shrunk.extend(map);
    shrunk
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
                parse_json(
                    card.as_bytes(),
                    NulHandling::Replace,
                    &mut FindingCollector::default(),
                )
                .unwrap()
                .value,
                parse_json_without_findings(card.as_bytes()),
                parse_json_with_duplicates(card.as_bytes()).unwrap().value,
            ] {
                // An element takes at least two bytes of text, and at most twice its room.
                let most = card.len() * size_of::<Value>();
                assert!(bytes_of_lists(&tree) <= most, "{element}");
            }
        }
    }
}
