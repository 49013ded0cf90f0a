//! JSON that every parser reads the same (I-JSON, RFC 7493), and its canonical form (RFC 8785), for documents other
//! than cards.

use serde_json::Value;

use crate::finding::FindingCollector;
use crate::json_document::{self, NulHandling};

/// Parses these bytes if every JSON parser reads them the same: no repeated name in an object, no half of a surrogate
/// pair, no number that a double does not represent as written, and within the limits of [`crate::parse_card`].
///
/// ```
/// assert!(a2a_card::parse_exact_json(br#"{"a": 1}"#).is_some());
/// assert!(a2a_card::parse_exact_json(br#"{"a": 1, "a": 2}"#).is_none());
/// ```
pub fn parse_exact_json(bytes: &[u8]) -> Option<Value> {
    let document =
        json_document::parse_json(bytes, NulHandling::Keep, &mut FindingCollector::default())
            .ok()?;
    document.exact.then_some(document.value)
}

/// The RFC 8785 form of a value of [`parse_exact_json`], if it has one. Values from other parsers may have lost
/// differences.
pub fn canonical_json(value: &Value) -> Option<Vec<u8>> {
    serde_json_canonicalizer::to_vec(value).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn what_parsers_disagree_about_has_no_value() {
        for ambiguous in [
            r#"{"a":1,"a":1}"#,
            r#"{"x":{"a":1,"\u0061":1}}"#,
            r#"{"a":"\ud800"}"#,
            r#"{"a":9007199254740993}"#,
            r#"{"a":1e400}"#,
            "no json",
            "",
        ] {
            assert_eq!(parse_exact_json(ambiguous.as_bytes()), None, "{ambiguous}");
        }
    }

    #[test]
    fn order_space_and_forms_of_numbers_do_not_count() {
        let form =
            |text: &str| canonical_json(&parse_exact_json(text.as_bytes()).unwrap()).unwrap();
        assert_eq!(form(r#"{"b":1.0,"a":"\u0041"}"#), br#"{"a":"A","b":1}"#);
    }
}
