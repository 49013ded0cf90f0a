//! Writer of JSON like Python's `json.dumps` with sorted names and no spaces, which the Python SDK 0.3 signs.

use std::fmt::Write as _;

use serde_json::{Number, Value};

/// Writes the JSON text. Names are sorted by code point, everything beyond printable ASCII is escaped, and numbers
/// that were written with a point or an exponent are written like Python's floats.
pub(super) fn to_python_json(value: &Value) -> String {
    let mut text = String::new();
    write_python_value(value, &mut text);
    text
}

fn write_python_value(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(flag) => text.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => write_python_number(number, text),
        Value::String(string) => write_python_string(string, text),
        Value::Array(list) => {
            text.push('[');
            for (index, element) in list.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_python_value(element, text);
            }
            text.push(']');
        }
        Value::Object(map) => {
            let mut members: Vec<_> = map.iter().collect();
            // The order of UTF-8 bytes equals the order of code points.
            members.sort_by_key(|(name, _)| *name);
            text.push('{');
            for (index, (name, value)) in members.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_python_string(name, text);
                text.push(':');
                write_python_value(value, text);
            }
            text.push('}');
        }
    }
}

fn write_python_string(string: &str, text: &mut String) {
    text.push('"');
    for character in string.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            ' '..='~' => text.push(character),
            _ => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    // Writing to a String cannot fail.
                    let _ = write!(text, "\\u{unit:04x}");
                }
            }
        }
    }
    text.push('"');
}

/// Writes the shortest digits of the double, like `serde_json`, with an exponent below 1e-4 and from 1e16 on.
fn write_python_number(number: &Number, text: &mut String) {
    let shortest = number.to_string();
    if !number.is_f64() {
        text.push_str(&shortest);
        return;
    }
    let unsigned = shortest.strip_prefix('-').unwrap_or(&shortest);
    let (mantissa, exponent) = unsigned.split_once('e').unwrap_or((unsigned, "0"));
    let (integer_digits, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{integer_digits}{fraction}");
    let significant = digits.trim_start_matches('0');
    // No text of a double is longer than 400 characters.
    let as_exponent = |length: usize| i32::try_from(length).unwrap_or(i32::MAX);
    let zeros = digits.len() - significant.len();
    let power = exponent.parse::<i32>().unwrap_or_default() + as_exponent(integer_digits.len())
        - 1
        - as_exponent(zeros);
    let significant = significant.trim_end_matches('0');
    let split_digits = |at: usize| significant.split_at(at.min(significant.len()));

    if shortest.starts_with('-') {
        text.push('-');
    }
    // Writing to a String cannot fail.
    let _ = match power {
        _ if significant.is_empty() => write!(text, "0.0"),
        0..16 => {
            let length = usize::try_from(power).unwrap_or_default() + 1;
            let (integer_digits, fraction) = split_digits(length);
            let fraction = if fraction.is_empty() { "0" } else { fraction };
            write!(text, "{integer_digits:0<length$}.{fraction}")
        }
        -4..0 => {
            let length = significant.len() + usize::try_from(-1 - power).unwrap_or_default();
            write!(text, "0.{significant:0>length$}")
        }
        _ => {
            let (first, rest) = split_digits(1);
            let point = if rest.is_empty() { "" } else { "." };
            let sign = if power < 0 { '-' } else { '+' };
            write!(text, "{first}{point}{rest}e{sign}{:02}", power.abs())
        }
    };
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_written_as_python_writes_them() {
        for (json, python) in [
            (r#""caf\u00e9 \u6771""#, r#""caf\u00e9 \u6771""#),
            (r#""\ud83d\ude00\u007f""#, r#""\ud83d\ude00\u007f""#),
            (
                "\"<&> \\/ \\\" \\\\ \\b\\f\\n\\r\\t\\u0001\"",
                "\"<&> / \\\" \\\\ \\b\\f\\n\\r\\t\\u0001\"",
            ),
            (
                r#"{"b":[1,true,null],"a":{},"\ue000":1,"\ud83d\ude00":2}"#,
                r#"{"a":{},"b":[1,true,null],"\ue000":1,"\ud83d\ude00":2}"#,
            ),
        ] {
            let value: Value = serde_json::from_str(json).unwrap();
            assert_eq!(to_python_json(&value), python);
        }
    }

    #[test]
    fn numbers_are_written_as_python_writes_them() {
        for (json, python) in [
            ("1", "1"),
            ("-7", "-7"),
            ("18446744073709551615", "18446744073709551615"),
            ("1.0", "1.0"),
            ("0.25", "0.25"),
            ("-0.0", "-0.0"),
            ("1e21", "1e+21"),
            ("1e15", "1000000000000000.0"),
            ("1e16", "1e+16"),
            ("12345678901234567.0", "1.2345678901234568e+16"),
            ("0.0001", "0.0001"),
            ("0.00001", "1e-05"),
            ("1.5e-7", "1.5e-07"),
            ("5e-324", "5e-324"),
            ("0.0", "0.0"),
            ("-2.5e-5", "-2.5e-05"),
            ("100.0", "100.0"),
            ("120.5", "120.5"),
            ("9999999999999998.0", "9999999999999998.0"),
            ("1424953923781206.2", "1424953923781206.2"),
            ("1.7976931348623157e308", "1.7976931348623157e+308"),
        ] {
            let value: Value = serde_json::from_str(json).unwrap();
            assert_eq!(to_python_json(&value), python);
        }
    }
}
