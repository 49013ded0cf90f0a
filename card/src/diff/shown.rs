//! Shortens the old and new values of a change for display.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::text;

/// Most characters of texts and names shown of one value.
const MAX_CHARS: usize = 1_000;

/// Most values shown of one list or object, at all its levels together.
const MAX_VALUES: usize = 64;

/// Characters shown before the first difference of two long texts.
const LEAD: usize = 100;

/// The two sides of a change. Two texts are shown from where they begin to differ.
pub(super) fn pair(
    before: Option<&Value>,
    after: Option<&Value>,
) -> (Option<Value>, Option<Value>) {
    if let (Some(Value::String(old)), Some(Value::String(new))) = (before, after) {
        let skipped = skipped(old, new);
        let part = |text: &str| {
            let rest: String = text.chars().skip(skipped).collect();
            let lead = if skipped > 0 { "…" } else { "" };
            Some(Value::from(format!(
                "{lead}{}",
                text::visible(&rest, MAX_CHARS)
            )))
        };
        return (part(old), part(new));
    }
    (before.map(short), after.map(short))
}

/// Number of leading characters that two texts have in common and that are left out.
fn skipped(old: &str, new: &str) -> usize {
    if old.len().max(new.len()) < MAX_CHARS {
        return 0;
    }
    let common = old.chars().zip(new.chars()).take_while(|(a, b)| a == b);
    common.count().saturating_sub(LEAD)
}

fn short(value: &Value) -> Value {
    let mut room = Room {
        chars: MAX_CHARS,
        values: MAX_VALUES,
    };
    room.cut(value)
}

struct Room {
    chars: usize,
    values: usize,
}

impl Room {
    fn cut(&mut self, value: &Value) -> Value {
        self.values = self.values.saturating_sub(1);
        match value {
            Value::String(text) => Value::from(self.text(text)),
            Value::Array(list) => {
                let mut shown = Vec::new();
                for value in list {
                    if self.is_full() {
                        shown.push(Value::from("…"));
                        break;
                    }
                    shown.push(self.cut(value));
                }
                Value::Array(shown)
            }
            Value::Object(members) => {
                let mut shown = Map::new();
                for (name, value) in members {
                    if self.is_full() {
                        shown.insert("…".to_owned(), Value::from("…"));
                        break;
                    }
                    let name = self.text(&shown_name(name));
                    let value = self.cut(value);
                    shown.insert(name, value);
                }
                Value::Object(shown)
            }
            other => other.clone(),
        }
    }

    fn is_full(&self) -> bool {
        self.values == 0 || self.chars == 0
    }

    fn text(&mut self, text: &str) -> String {
        let shown = text::visible(text, self.chars.max(1));
        self.chars = self.chars.saturating_sub(shown.chars().count());
        shown
    }
}

pub(super) fn has_hidden(value: &Value) -> bool {
    match value {
        Value::String(text) => text::has_hidden(text),
        Value::Array(list) => list.iter().any(has_hidden),
        Value::Object(members) => members
            .iter()
            .any(|(name, value)| text::has_hidden(name) || has_hidden(value)),
        _ => false,
    }
}

/// The name of a member for pointers, without the marks of [`crate::document::read_all`].
pub(super) fn shown_name(name: &str) -> Cow<'_, str> {
    if !name.contains('\0') {
        return Cow::Borrowed(name);
    }
    let own = name.replace("\0\0", "\u{fffd}");
    let shown = own.split('\0').next().unwrap_or_default();
    Cow::Owned(shown.to_owned())
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
        let (old, new) = pair(Some(&old), Some(&new));
        assert_eq!(old, Some(Value::from(format!("…{}a", "x".repeat(LEAD)))));
        let new = new.as_ref().and_then(Value::as_str).unwrap_or_default();
        assert!(new.starts_with(&format!("…{}byyy", "x".repeat(LEAD))));
        assert!(new.chars().count() <= MAX_CHARS + 1);
    }

    #[test]
    fn values_end_at_their_bounds_and_hide_nothing() {
        let list = |n: usize| json!(vec![1; n]);
        let full = list(MAX_VALUES - 1);
        assert_eq!(short(&full), full);
        let cut = short(&list(MAX_VALUES));
        assert_eq!(cut[MAX_VALUES - 2], 1);
        assert_eq!(cut[MAX_VALUES - 1], "…");
        let wide = short(&json!({"a": "x".repeat(5_000), "b": "y"}));
        assert_eq!(wide["…"], "…");
        assert!(wide["b"].is_null());
        assert_eq!(
            short(&json!("pay\u{202e}\u{0}pal")),
            "pay\\u{202e}\\u{0}pal"
        );
        assert_eq!(short(&json!({"n\u{0}1": 1})), json!({"n": 1}));
    }

    #[test]
    fn names_are_shown_without_marks() {
        assert_eq!(shown_name("url\u{0}12"), "url");
        assert_eq!(shown_name("a\u{0}\u{0}b\u{0}1"), "a\u{fffd}b");
        assert_eq!(shown_name("plain"), "plain");
    }
}
