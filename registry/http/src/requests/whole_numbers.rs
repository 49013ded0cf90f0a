//! Integers in JSON requests: JSON Schema counts 150.0 and 1.5e2 as integers, and many clients send them, but serde
//! does not parse them as integers.

use std::borrow::Cow;

/// 2^53, below which floating-point numbers represent every integer.
const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;

/// Rewrites every integer without decimal point and exponent. Text that is not JSON stays invalid.
pub(super) fn normalize_integers(text: &[u8]) -> Cow<'_, [u8]> {
    let mut normalized: Vec<u8> = Vec::new();
    let (mut copied, mut at) = (0, 0);
    while let Some(byte) = text.get(at) {
        at = match byte {
            b'"' => json_string_end(text, at),
            b'-' | b'0'..=b'9' => {
                let end = json_number_end(text, at);
                if let Some(integer) = normalize_integer(&text[at..end]) {
                    normalized.extend_from_slice(&text[copied..at]);
                    normalized.extend_from_slice(integer.as_bytes());
                    copied = end;
                }
                end
            }
            _ => at + 1,
        };
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    normalized.extend_from_slice(&text[copied..]);
    Cow::Owned(normalized)
}

/// Index after the string that starts at `start`.
fn json_string_end(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = text.get(at) {
        at += match byte {
            b'"' => return at + 1,
            b'\\' => 2,
            _ => 1,
        };
    }
    text.len()
}

/// Index after the number that starts at `start`.
fn json_number_end(text: &[u8], start: usize) -> usize {
    let rest = text[start..].iter();
    let belongs = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
    start + rest.take_while(belongs).count()
}

/// Converts a number with decimal point or exponent to an integer; `None` if it has neither, or is not an integer.
fn normalize_integer(number: &[u8]) -> Option<String> {
    if number.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'-')) {
        return None;
    }
    // The standard library's parser accepts more than JSON allows.
    let value: f64 = serde_json::from_slice(number).ok()?;
    let is_whole = value.fract() == 0.0 && value.abs() <= MAX_EXACT_INTEGER;
    // Adding zero turns -0.0 into 0, which has no sign.
    is_whole.then(|| format!("{:.0}", value + 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_lose_point_and_exponent_and_nothing_else_changes() {
        for (text, expected) in [
            (r#"{"a":150.0}"#, r#"{"a":150}"#),
            (r#"[1.5e2, -2.00,1E1,-0.0,1e-1]"#, "[150, -2,10,0,1e-1]"),
            (r#"{"a":1.5,"b":7}"#, r#"{"a":1.5,"b":7}"#),
            (
                r#"{"1.0":"2.0 \" 3.0","c":4.0}"#,
                r#"{"1.0":"2.0 \" 3.0","c":4}"#,
            ),
            ("9007199254740992.0", "9007199254740992"),
            ("9007199254740994.0", "9007199254740994.0"),
            // Not JSON, before and after.
            ("1.", "1."),
            ("01.0", "01.0"),
            ("1.0.0", "1.0.0"),
            ("--1.0", "--1.0"),
            (r#""open 1.0"#, r#""open 1.0"#),
            (r#""\"#, r#""\"#),
        ] {
            let plain = normalize_integers(text.as_bytes());
            assert_eq!(String::from_utf8_lossy(&plain), expected);
            let was_json = serde_json::from_str::<serde_json::Value>(text).is_ok();
            let is_json = serde_json::from_slice::<serde_json::Value>(&plain).is_ok();
            assert_eq!(is_json, was_json, "{text}");
        }
    }
}
