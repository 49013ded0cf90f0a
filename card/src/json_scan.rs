//! Scan of the raw bytes, before the tree is built.
//! The scan finds input that a JSON parser needlessly rejects (half a surrogate pair, a number beyond a double), hides
//! (numbers that lose digits) or needs stack for (depth). Fixes are made in place, in a copy, so positions stay the
//! same. The scan comes first because the parser stops at the first such place; it takes a tenth of the time of
//! reading a card.

use std::borrow::Cow;

/// Maximum nesting depth of arrays and objects in a card.
pub const MAX_DEPTH: usize = 64;

#[derive(Debug, PartialEq)]
pub(crate) struct JsonScanResult<'a> {
    /// The bytes given, or a copy with U+FFFD for half surrogates and `null` for numbers beyond a double.
    pub(crate) bytes: Cow<'a, [u8]>,
    /// Position of the first half of a surrogate pair without the other.
    pub(crate) lone_surrogate: Option<usize>,
    /// Position of the first number beyond the range of a double.
    pub(crate) huge_number: Option<usize>,
    /// Position of the first number that a double does not represent exactly as written.
    pub(crate) inexact_number: Option<usize>,
}

#[derive(Debug, PartialEq)]
pub(crate) struct JsonTooDeep;

/// Scans the bytes; malformed JSON is ignored, because the parser describes it better.
pub(crate) fn scan_json(bytes: &[u8]) -> Result<JsonScanResult<'_>, JsonTooDeep> {
    let mut scan_result = JsonScanResult {
        bytes: Cow::Borrowed(bytes),
        lone_surrogate: None,
        huge_number: None,
        inexact_number: None,
    };
    let mut depth = 0_usize;
    let mut position = 0;
    while let Some(&byte) = bytes.get(position) {
        match byte {
            b'"' => {
                position = scan_string(bytes, position + 1, &mut scan_result);
                continue;
            }
            b'{' | b'[' => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return Err(JsonTooDeep);
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'-' | b'0'..=b'9' => {
                let end = find_number_end(bytes, position);
                scan_number(bytes, position, end, &mut scan_result);
                position = end;
                continue;
            }
            _ => {}
        }
        position += 1;
    }
    Ok(scan_result)
}

/// Scans a string whose opening quote has been passed; returns the position after its closing one.
fn scan_string(bytes: &[u8], mut position: usize, scan_result: &mut JsonScanResult<'_>) -> usize {
    loop {
        let rest = bytes.get(position..).unwrap_or_default();
        let Some(offset) = rest.iter().position(|byte| matches!(byte, b'"' | b'\\')) else {
            return bytes.len();
        };
        position += offset;
        if bytes[position] == b'"' {
            return position + 1;
        }
        match escaped_code_unit(bytes, position) {
            Some(0xd800..=0xdbff)
                if matches!(
                    escaped_code_unit(bytes, position + 6),
                    Some(0xdc00..=0xdfff)
                ) =>
            {
                position += 12;
            }
            Some(0xd800..=0xdfff) => {
                scan_result.lone_surrogate.get_or_insert(position);
                scan_result.bytes.to_mut()[position + 2..position + 6].copy_from_slice(b"fffd");
                position += 6;
            }
            // Any other escape: skipping the backslash and the next character is enough.
            _ => position += 2,
        }
    }
}

/// The code unit of the `\uXXXX` at this position.
fn escaped_code_unit(bytes: &[u8], position: usize) -> Option<u32> {
    let digits = bytes.get(position..position + 6)?.strip_prefix(b"\\u")?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

fn find_number_end(bytes: &[u8], start: usize) -> usize {
    bytes[start..]
        .iter()
        .position(|byte| !matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'))
        .map_or(bytes.len(), |length| start + length)
}

fn scan_number(bytes: &[u8], start: usize, end: usize, scan_result: &mut JsonScanResult<'_>) {
    let literal = &bytes[start..end];
    // Up to fifteen digits always survive in a double.
    if literal.len() <= 15 && !literal.iter().any(|byte| matches!(byte, b'e' | b'E')) {
        return;
    }
    let Some(literal) = std::str::from_utf8(literal).ok() else {
        return;
    };
    let Ok(double) = literal.parse::<f64>() else {
        return;
    };
    if double.is_infinite() {
        scan_result.huge_number.get_or_insert(start);
        // No number shorter than five characters, such as `1e309`, is that large.
        let number_bytes = &mut scan_result.bytes.to_mut()[start..end];
        number_bytes.fill(b' ');
        if let Some(null_bytes) = number_bytes.get_mut(..4) {
            null_bytes.copy_from_slice(b"null");
        }
    } else if scan_result.inexact_number.is_none() && !is_exact_double(literal, double) {
        scan_result.inexact_number = Some(start);
    }
}

/// Maximum number of significant digits that a double preserves (IEEE 754 binary64).
const MAX_DOUBLE_DIGITS: usize = 17;

/// Whether the double equals the literal when written with as many digits as the literal has, or in its shortest form.
/// Of two equally near shortest forms most implementations choose the even one, the standard library the larger one.
fn is_exact_double(literal: &str, double: f64) -> bool {
    let Some((digits, power)) = significant_digits(literal) else {
        return false;
    };
    let decimal_places = digits.len().saturating_sub(1);
    let literal_decimal = Some((digits, power));
    decimal_places < MAX_DOUBLE_DIGITS
        && (significant_digits(&format!("{double:.decimal_places$e}")) == literal_decimal
            || significant_digits(&format!("{double:e}")) == literal_decimal)
}

/// Splits a number into its significant digits and the power of ten of the last one; `None` for a text that is not a
/// number.
fn significant_digits(literal: &str) -> Option<(String, i64)> {
    let literal = literal.strip_prefix('-').unwrap_or(literal);
    let (mantissa, exponent) = match literal.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (literal, 0),
    };
    let (integer_digits, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut digits = format!("{integer_digits}{fraction}");
    let mut power = exponent.checked_sub(i64::try_from(fraction.len()).ok()?)?;
    while digits.ends_with('0') {
        digits.pop();
        power += 1;
    }
    let digits = digits.trim_start_matches('0').to_owned();
    if digits.is_empty() {
        power = 0;
    }
    Some((digits, power))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> String {
        String::from_utf8_lossy(&scan_json(bytes).map(|s| s.bytes).unwrap_or_default()).into_owned()
    }

    #[test]
    fn depth_is_counted_outside_strings_only() {
        let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(scan_json(deep(MAX_DEPTH).as_bytes()).is_ok());
        assert_eq!(scan_json(deep(MAX_DEPTH + 1).as_bytes()), Err(JsonTooDeep));
        assert!(scan_json(format!("[\"{}\\\"[\"]", "[".repeat(100)).as_bytes()).is_ok());
        assert!(scan_json(format!("[{}]", "[],".repeat(100)).as_bytes()).is_ok());
    }

    #[test]
    fn halves_of_pairs_are_mended_in_place() {
        assert_eq!(text(br#""\ud83d\ude00""#), r#""\ud83d\ude00""#);
        assert_eq!(text(br#""a\ud83dz""#), r#""a\ufffdz""#);
        assert_eq!(text(br#""\ude00\ud83d""#), r#""\ufffd\ufffd""#);
        assert_eq!(text(br#""\\ud83d""#), r#""\\ud83d""#);
        assert_eq!(text(br#""\ud83d\u00""#), r#""\ufffd\u00""#);
        assert!(scan_json(br#""\ud83d"#).is_ok_and(|seen| seen.lone_surrogate == Some(1)));
    }

    #[test]
    fn numbers_are_judged_as_written() {
        let judged = |literal: &str| {
            let seen = scan_json(literal.as_bytes());
            seen.map(|s| (s.inexact_number.is_some(), s.huge_number.is_some()))
        };
        for exact in [
            "0",
            "-1.50",
            "1e21",
            "1e+21",
            "1.0",
            "9007199254740992",
            "100000000000000000000",
            "0.1",
            "5e-324",
            "0.30000000000000004",
            // Halfway between two short forms: JSON implementations choose the even one.
            "619422114382213.2",
            "0e5",
            "-0.0",
            // As near to the double as …319.3, and as short.
            "-759338829002319.2",
            "1424953923781206.2",
            "1424953923781206.3",
        ] {
            assert_eq!(judged(exact), Ok((false, false)), "{exact}");
        }
        for lost in [
            "9007199254740993",
            "0.10000000000000000001",
            "12345678901234567890123",
            "0.1000000000000000055",
            "1e-400",
            "1424953923781206.4",
        ] {
            assert_eq!(judged(lost), Ok((true, false)), "{lost}");
        }
        assert_eq!(judged("-1e309"), Ok((false, true)));
        assert_eq!(text(b"[1e999, 1]"), "[null , 1]");
    }
}
