//! Shortens the old and new values of a change for display.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::hidden_characters;

/// Maximum number of characters displayed of the texts and names in one value.
const MAX_DISPLAYED_CHARS: usize = 1_000;

/// Maximum number of values displayed of a list or object, at all its levels together.
const MAX_DISPLAYED_VALUES: usize = 64;

/// Number of characters displayed before the first difference of two long texts.
const LEADING_CHARS: usize = 100;

/// The old and new value of a change for display. Two texts are displayed from their first difference.
pub(super) fn shorten_value_pair(
    before: Option<&Value>,
    after: Option<&Value>,
) -> (Option<Value>, Option<Value>) {
    if let (Some(Value::String(old)), Some(Value::String(new))) = (before, after) {
        let skipped_chars = count_omitted_prefix_chars(old, new);
        let display_from_difference = |text: &str| {
            let rest: String = text.chars().skip(skipped_chars).collect();
            let lead = if skipped_chars > 0 { "…" } else { "" };
            Some(Value::from(format!(
                "{lead}{}",
                hidden_characters::escape_and_truncate(&rest, MAX_DISPLAYED_CHARS)
            )))
        };
        return (display_from_difference(old), display_from_difference(new));
    }
    (before.map(shorten_value), after.map(shorten_value))
}

/// Number of common leading characters of two texts that are omitted.
fn count_omitted_prefix_chars(old: &str, new: &str) -> usize {
    if old.len().max(new.len()) < MAX_DISPLAYED_CHARS {
        return 0;
    }
    let common = old.chars().zip(new.chars()).take_while(|(a, b)| a == b);
    common.count().saturating_sub(LEADING_CHARS)
}

fn shorten_value(value: &Value) -> Value {
    let mut budget = DisplayBudget {
        chars_left: MAX_DISPLAYED_CHARS,
        values_left: MAX_DISPLAYED_VALUES,
    };
    budget.shorten_within_budget(value)
}

struct DisplayBudget {
    chars_left: usize,
    values_left: usize,
}

impl DisplayBudget {
    fn shorten_within_budget(&mut self, value: &Value) -> Value {
        self.values_left = self.values_left.saturating_sub(1);
        match value {
            Value::String(text) => Value::from(self.shorten_text(text)),
            Value::Array(list) => {
                let mut displayed = Vec::new();
                for value in list {
                    if self.is_exhausted() {
                        displayed.push(Value::from("…"));
                        break;
                    }
                    displayed.push(self.shorten_within_budget(value));
                }
                Value::Array(displayed)
            }
            Value::Object(members) => {
                let mut displayed = Map::new();
                for (name, value) in members {
                    if self.is_exhausted() {
                        displayed.insert("…".to_owned(), Value::from("…"));
                        break;
                    }
                    let name = self.shorten_text(&unmarked_member_name(name));
                    let value = self.shorten_within_budget(value);
                    displayed.insert(name, value);
                }
                Value::Object(displayed)
            }
            other => other.clone(),
        }
    }

    fn is_exhausted(&self) -> bool {
        self.values_left == 0 || self.chars_left == 0
    }

    fn shorten_text(&mut self, text: &str) -> String {
        let displayed = hidden_characters::escape_and_truncate(text, self.chars_left.max(1));
        self.chars_left = self.chars_left.saturating_sub(displayed.chars().count());
        displayed
    }
}

pub(super) fn value_has_hidden_characters(value: &Value) -> bool {
    match value {
        Value::String(text) => hidden_characters::has_hidden_characters(text),
        Value::Array(list) => list.iter().any(value_has_hidden_characters),
        Value::Object(members) => members.iter().any(|(name, value)| {
            hidden_characters::has_hidden_characters(name) || value_has_hidden_characters(value)
        }),
        _ => false,
    }
}

/// The name of a member for pointers, without the marks of [`crate::json_document::parse_with_duplicates`].
pub(super) fn unmarked_member_name(name: &str) -> Cow<'_, str> {
    if !name.contains('\0') {
        return Cow::Borrowed(name);
    }
    let unescaped = name.replace("\0\0", "\u{fffd}");
    let displayed = unescaped.split('\0').next().unwrap_or_default();
    Cow::Owned(displayed.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn long_texts_are_shown_where_they_begin_to_differ() {
        let (old, new) = (
            Value::from(format!("{}a", "x".repeat(5_000))),
            Value::from(format!("{}b{}", "x".repeat(5_000), "y".repeat(5_000))),
        );
        let (old, new) = shorten_value_pair(Some(&old), Some(&new));
        assert_eq!(
            old,
            Some(Value::from(format!("…{}a", "x".repeat(LEADING_CHARS))))
        );
        let new = new.as_ref().and_then(Value::as_str).unwrap_or_default();
        assert!(new.starts_with(&format!("…{}byyy", "x".repeat(LEADING_CHARS))));
        assert!(new.chars().count() <= MAX_DISPLAYED_CHARS + 1);
    }

    #[test]
    fn values_end_at_their_bounds_and_hide_nothing() {
        let list = |n: usize| json!(vec![1; n]);
        let full = list(MAX_DISPLAYED_VALUES - 1);
        assert_eq!(shorten_value(&full), full);
        let cut = shorten_value(&list(MAX_DISPLAYED_VALUES));
        assert_eq!(cut[MAX_DISPLAYED_VALUES - 2], 1);
        assert_eq!(cut[MAX_DISPLAYED_VALUES - 1], "…");
        let wide = shorten_value(&json!({"a": "x".repeat(5_000), "b": "y"}));
        assert_eq!(wide["…"], "…");
        assert!(wide["b"].is_null());
        assert_eq!(
            shorten_value(&json!("pay\u{202e}\u{0}pal")),
            "pay\\u{202e}\\u{0}pal"
        );
        assert_eq!(shorten_value(&json!({"n\u{0}1": 1})), json!({"n": 1}));
    }

    #[test]
    fn names_are_shown_without_marks() {
        assert_eq!(unmarked_member_name("url\u{0}12"), "url");
        assert_eq!(unmarked_member_name("a\u{0}\u{0}b\u{0}1"), "a\u{fffd}b");
        assert_eq!(unmarked_member_name("plain"), "plain");
    }
}
