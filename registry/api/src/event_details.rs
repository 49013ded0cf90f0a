//! The details of an event in one line, for people.

use serde_json::Value;

use crate::governance::Event;

/// Members that answer what people ask first, in this order; the others follow by name.
const FIRST_MEMBERS: [&str; 2] = ["reason", "digest"];

impl Event {
    /// The details as `name: value`, the reason and the digest first; empty if there are none.
    pub fn detail_line(&self) -> String {
        let Value::Object(members) = &self.data else {
            return String::new();
        };
        let first = FIRST_MEMBERS
            .iter()
            .filter_map(|name| members.get_key_value(*name));
        let others = members.iter();
        let others = others.filter(|(name, _)| !FIRST_MEMBERS.contains(&name.as_str()));
        let part = |(name, value): (&String, &Value)| match value {
            Value::Null => None,
            Value::String(text) if text.is_empty() => None,
            Value::String(text) => Some(format!("{name}: {text}")),
            value => Some(format!("{name}: {value}")),
        };
        let parts: Vec<String> = first.chain(others).filter_map(part).collect();
        parts.join("; ")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    #[test]
    fn the_reason_and_the_digest_come_first() {
        let event: Event = serde_json::from_value(json!({
            "seq": 1, "at": "2026-01-01T00:00:00Z", "kind": "agent.approved", "subject": "a", "actor": "ben",
            "data": {"class": "low", "digest": "sha256:0", "previous": null, "reason": "known", "rules": ["x"]},
        }))
        .unwrap();
        assert_eq!(
            event.detail_line(),
            "reason: known; digest: sha256:0; class: low; rules: [\"x\"]"
        );
    }
}
