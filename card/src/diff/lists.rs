//! Compares values that occur in several places: lists without order, and texts.

use std::collections::HashSet;

use serde_json::Value;

use super::change::ChangeClass::{High, Low};
use super::changes::{Changes, each};
use super::tree::{Kind, Sides, both_blank, permuted};
use crate::pointer::Pointer;

pub(super) const BLANK: &str = "it is empty, as before";

pub(super) fn reordered(at: &Pointer<'_>, sides: Sides<'_>, out: &mut Changes) -> bool {
    let (Some(Value::Array(old)), Some(Value::Array(new))) = sides else {
        return false;
    };
    let same = permuted(old, new);
    if same {
        out.add(Low, at, sides, "the same in another order");
    }
    same
}

/// Compares texts that people and models read: every difference is high, the order of a list is low.
pub(super) fn wording(
    at: &Pointer<'_>,
    sides: Sides<'_>,
    kind: Kind,
    reason: &'static str,
    out: &mut Changes,
) {
    if both_blank(sides, kind) {
        out.add(Low, at, sides, BLANK);
    } else if !reordered(at, sides, out) {
        each(High, at, sides, reason, out);
    }
}

/// Compares two lists of media types. Removing one is low while others remain; without any, clients assume defaults.
pub(super) fn modes(at: &Pointer<'_>, sides: Sides<'_>, out: &mut Changes) {
    if both_blank(sides, Kind::List) {
        out.add(Low, at, sides, BLANK);
        return;
    }
    if reordered(at, sides, out) {
        return;
    }
    let (Some(old), Some(new)) = (texts(sides.0), texts(sides.1)) else {
        out.add(
            High,
            at,
            sides,
            "the media types are written in another form",
        );
        return;
    };
    if new.is_empty() {
        out.add(High, at, sides, "all media types were removed");
        return;
    }
    let known: HashSet<&str> = old.iter().copied().collect();
    let kept: HashSet<&str> = new.iter().copied().collect();
    let found = out.found();
    for (index, text) in new.iter().enumerate() {
        if !known.contains(text) {
            let value = Value::from(*text);
            out.add(
                High,
                &at.index(index),
                (None, Some(&value)),
                "a new media type",
            );
        }
    }
    for (index, text) in old.iter().enumerate() {
        if !kept.contains(text) {
            let value = Value::from(*text);
            let reason = "a media type was removed";
            out.add(Low, &at.index(index), (Some(&value), None), reason);
        }
    }
    if out.found() == found {
        out.add(Low, at, sides, "the same media types, with repetitions");
    }
}

fn texts(value: Option<&Value>) -> Option<Vec<&str>> {
    match value {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(Value::Array(list)) => list.iter().map(Value::as_str).collect(),
        Some(_) => None,
    }
}

/// The elements of a list that may be missing; `None` for a value that is not a list.
pub(super) fn elements(value: Option<&Value>) -> Option<&[Value]> {
    match value {
        None | Some(Value::Null) => Some(&[]),
        Some(value) => value.as_array().map(Vec::as_slice),
    }
}
