//! Comparison of JSON trees by their meaning.

use serde_json::{Map, Value};

/// Values at one position in the older and in the newer card.
pub(super) type BeforeAfter<'v> = (Option<&'v Value>, Option<&'v Value>);

/// Whether two values are equal as in [`crate::content_digest`]: numbers as doubles, objects in any order.
pub(super) fn values_equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| values_equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => members_equal(a, b),
        _ => a == b,
    }
}

fn members_equal(a: &Map<String, Value>, b: &Map<String, Value>) -> bool {
    a.len() == b.len()
        && a.iter()
            .all(|(name, value)| b.get(name).is_some_and(|other| values_equal(value, other)))
}

pub(super) fn is_value_unchanged(values: BeforeAfter<'_>) -> bool {
    match values {
        (Some(a), Some(b)) => values_equal(a, b),
        (None, None) => true,
        _ => false,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MemberType {
    Text,
    List,
    Object,
}

/// Whether a member of that type is missing, null or empty. An empty value of another type may be an error.
pub(super) fn is_empty_or_null(value: Option<&Value>, member_type: MemberType) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => member_type == MemberType::Text && text.is_empty(),
        Some(Value::Array(list)) => member_type == MemberType::List && list.is_empty(),
        Some(Value::Object(members)) => member_type == MemberType::Object && members.is_empty(),
        Some(_) => false,
    }
}

pub(super) fn both_empty_or_null(
    (before, after): BeforeAfter<'_>,
    member_type: MemberType,
) -> bool {
    is_empty_or_null(before, member_type) && is_empty_or_null(after, member_type)
}

/// A text that is equal exactly for equal values.
pub(super) fn canonical_text(value: &Value) -> String {
    serde_json_canonicalizer::to_string(value).unwrap_or_else(|_| value.to_string())
}

/// Whether two lists have the same elements equally often, in any order.
pub(super) fn is_permutation(a: &[Value], b: &[Value]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let sorted = |list: &[Value]| {
        let mut texts: Vec<String> = list.iter().map(canonical_text).collect();
        texts.sort_unstable();
        texts
    };
    sorted(a) == sorted(b)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_and_order_of_members_do_not_tell_values_apart() {
        assert!(values_equal(
            &json!({"a": 1, "b": -0.0}),
            &json!({"b": 0, "a": 1.0})
        ));
        assert!(!values_equal(&json!([1, 2]), &json!([2, 1])));
        assert!(!values_equal(&json!({"a": null}), &json!({"b": null})));
        assert!(!values_equal(&json!({"a": null}), &json!({})));
        assert_eq!(
            canonical_text(&json!({"b": 1.0, "a": 1e21})),
            r#"{"a":1e+21,"b":1}"#
        );
    }

    #[test]
    fn permuted_lists_count_repetitions() {
        let list = |value: Value| value.as_array().unwrap().clone();
        assert!(is_permutation(
            &list(json!([1, "a", 1.0])),
            &list(json!(["a", 1, 1]))
        ));
        assert!(!is_permutation(
            &list(json!([1, 1, 2])),
            &list(json!([1, 2, 2]))
        ));
    }
}
