//! Comparison of values that occur in several places: lists without order, and texts.

use std::collections::HashSet;

use serde_json::Value;

use super::change::ChangeClass::{High, Low};
use super::change_collector::{ChangeCollector, add_each_difference};
use super::json_equality::{BeforeAfter, MemberType, both_empty_or_null, is_permutation};
use crate::json_pointer::JsonPointer;

pub(super) const STILL_EMPTY: &str = "it is empty, as before";

pub(super) fn add_change_if_reordered(
    pointer: &JsonPointer<'_>,
    values: BeforeAfter<'_>,
    out: &mut ChangeCollector,
) -> bool {
    let (Some(Value::Array(old)), Some(Value::Array(new))) = values else {
        return false;
    };
    let is_permutation = is_permutation(old, new);
    if is_permutation {
        out.add(Low, pointer, values, "the same in a different order");
    }
    is_permutation
}

/// Compares texts that people and models read: every difference is high, except that the order of a list is low.
pub(super) fn compare_wording(
    pointer: &JsonPointer<'_>,
    values: BeforeAfter<'_>,
    member_type: MemberType,
    reason: &'static str,
    out: &mut ChangeCollector,
) {
    if both_empty_or_null(values, member_type) {
        out.add(Low, pointer, values, STILL_EMPTY);
    } else if !add_change_if_reordered(pointer, values, out) {
        add_each_difference(High, pointer, values, reason, out);
    }
}

/// Compares two lists of media types. Removing one is low while others remain; with none left, clients assume
/// defaults.
pub(super) fn compare_modes(
    pointer: &JsonPointer<'_>,
    values: BeforeAfter<'_>,
    out: &mut ChangeCollector,
) {
    if both_empty_or_null(values, MemberType::List) {
        out.add(Low, pointer, values, STILL_EMPTY);
        return;
    }
    if add_change_if_reordered(pointer, values, out) {
        return;
    }
    let (Some(old), Some(new)) = (list_texts(values.0), list_texts(values.1)) else {
        out.add(
            High,
            pointer,
            values,
            "the media types are written in a different form",
        );
        return;
    };
    if new.is_empty() {
        out.add(High, pointer, values, "all media types were removed");
        return;
    }
    let old_modes: HashSet<&str> = old.iter().copied().collect();
    let new_modes: HashSet<&str> = new.iter().copied().collect();
    let count_before = out.count();
    for (index, text) in new.iter().enumerate() {
        if !old_modes.contains(text) {
            let value = Value::from(*text);
            out.add(
                High,
                &pointer.element(index),
                (None, Some(&value)),
                "a new media type",
            );
        }
    }
    for (index, text) in old.iter().enumerate() {
        if !new_modes.contains(text) {
            let value = Value::from(*text);
            let reason = "a media type was removed";
            out.add(Low, &pointer.element(index), (Some(&value), None), reason);
        }
    }
    if out.count() == count_before {
        out.add(
            Low,
            pointer,
            values,
            "the same media types, with repetitions",
        );
    }
}

fn list_texts(value: Option<&Value>) -> Option<Vec<&str>> {
    match value {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(Value::Array(list)) => list.iter().map(Value::as_str).collect(),
        Some(_) => None,
    }
}

/// The elements of a list, none if it is missing; `None` for a value that is not a list.
pub(super) fn list_elements(value: Option<&Value>) -> Option<&[Value]> {
    match value {
        None | Some(Value::Null) => Some(&[]),
        Some(value) => value.as_array().map(Vec::as_slice),
    }
}
