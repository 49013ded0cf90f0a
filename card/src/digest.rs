//! Digests of a card: of its bytes, and of its content.

use std::fmt::Write as _;

use ring::digest::{SHA256, digest as hash};
use serde_json::Value;

use crate::finding::FindingCollector;
use crate::json_document::{self, NulHandling};

/// The digest of the bytes as received: `sha256:` and 64 lower-case hexadecimal digits.
///
/// ```
/// assert_eq!(
///     a2a_card::bytes_digest(b""),
///     "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
/// );
/// ```
pub fn bytes_digest(bytes: &[u8]) -> String {
    let mut text = String::with_capacity("sha256:".len() + 64);
    text.push_str("sha256:");
    for byte in hash(&SHA256, bytes).as_ref() {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The digest of the content: of its RFC 8785 form without the top-level `signatures`.
///
/// The digest stays the same for agents that reorder members or sign again at every start. It is the [`bytes_digest`]
/// if JSON parsers could disagree about the content (RFC 7493: a repeated name, half a surrogate pair, a number that a
/// double does not represent as written), or if the bytes are not JSON within the limits of [`crate::parse_card`].
pub fn content_digest(bytes: &[u8]) -> String {
    match canonical_content(bytes) {
        Some(canonical) => bytes_digest(&canonical),
        None => bytes_digest(bytes),
    }
}

fn canonical_content(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut document =
        json_document::parse_json(bytes, NulHandling::Keep, &mut FindingCollector::default())
            .ok()?;
    if !document.exact {
        return None;
    }
    if let Value::Object(members) = &mut document.value {
        members.remove("signatures");
    }
    serde_json_canonicalizer::to_vec(&document.value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_space_numbers_and_signatures_do_not_count() {
        let plain = content_digest(br#"{"name":"A","n":1.0,"big":1e21}"#);
        for same in [
            r#"{ "n": 1, "big": 1000000000000000000000,
                 "name": "\u0041" }"#,
            "\u{feff}{\"name\":\"A\",\"n\":1e0,\"big\":1e+21}",
            r#"{"name":"A","n":1,"big":1e21,"signatures":[{"protected":"a","signature":"b"}]}"#,
        ] {
            assert_eq!(content_digest(same.as_bytes()), plain, "{same}");
        }
        assert_ne!(content_digest(br#"{"name":"A","n":2,"big":1e21}"#), plain);
        assert_ne!(
            content_digest(br#"{"name":"A","n":1,"big":1e21,"x":{"signatures":[]}}"#),
            plain
        );
    }

    #[test]
    fn content_is_the_canonical_text() {
        let canonical = br#"{"a":[1,"x"],"b":null}"#;
        assert_eq!(
            content_digest(br#" {"b":null, "signatures":[], "a":[1.0,"x"]}"#),
            bytes_digest(canonical)
        );
    }

    #[test]
    fn numbers_of_many_digits_are_read_to_the_nearest_double() {
        // A fast parser is off by one step for each of these; their RFC 8785 form is the text itself.
        for literal in [
            "8.383658838626809e-78",
            "-7.803913958627244e+173",
            "-6.801672438380202e+47",
        ] {
            let card = format!("{{\"n\":{literal}}}");
            assert_eq!(canonical_content(card.as_bytes()), Some(card.into_bytes()));
        }
    }

    #[test]
    fn ambiguous_bytes_have_the_raw_digest() {
        for bytes in [
            r#"{"name":"A","name":"B"}"#,
            r#"{"name":"\ud800"}"#,
            r#"{"name":"A","n":9007199254740993}"#,
            r#"{"name":"A","n":1e400}"#,
            "no json",
            "",
        ] {
            assert_eq!(
                content_digest(bytes.as_bytes()),
                bytes_digest(bytes.as_bytes())
            );
        }
    }

    #[test]
    fn texts_with_nul_are_told_from_their_replacement() {
        assert_ne!(
            content_digest(br#"{"name":"\u0000"}"#),
            content_digest(br#"{"name":"\ufffd"}"#)
        );
    }
}
