//! Quoting for the languages of snippets.
//!
//! Each function takes any text and returns a literal of its language for exactly that text, on one line if the
//! language allows it, with every character visible. Card text gets into a snippet only through one of these
//! functions.

use std::fmt::Write as _;

use crate::text::chars_with_hidden_flag;

/// A POSIX shell word.
///
/// Visible text goes between single quotes, where nothing has a special meaning. Characters that a reader or a terminal
/// would not show as they are (an escape sequence in pasted text can end the paste) are written as `printf` escapes.
/// Line feeds at the very end stay as they are, since `$(…)` would drop them; U+0000, which no shell word can hold,
/// becomes U+FFFD.
pub fn shell_word(text: &str) -> String {
    if !chars_with_hidden_flag(text).any(|(_, hidden)| hidden) {
        return format!("'{}'", text.replace('\'', r"'\''"));
    }
    let body = text.trim_end_matches('\n');
    let mut out = String::with_capacity(text.len() + 32);
    if !body.is_empty() {
        out.push_str("\"$(printf '");
        for (character, hidden) in chars_with_hidden_flag(body) {
            match character {
                '\0' => out.push_str(r"\357\277\275"),
                '\'' => out.push_str(r"'\''"),
                '\\' => out.push_str(r"\\"),
                '%' => out.push_str("%%"),
                // Inside double quotes an interactive shell expands its history.
                '!' => out.push_str(r"\041"),
                // A format that begins with a hyphen would be read as an option.
                '-' => out.push_str(r"\055"),
                _ if hidden => {
                    for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                        let _ = write!(out, "\\{byte:03o}");
                    }
                }
                _ => out.push(character),
            }
        }
        out.push_str("')\"");
    }
    if body.len() < text.len() {
        let _ = write!(out, "'{}'", &text[body.len()..]);
    }
    out
}

pub fn python_string(text: &str) -> String {
    quoted_literal(text, |out, character| {
        let code = u32::from(character);
        let _ = if code > 0xffff {
            write!(out, "\\U{code:08x}")
        } else {
            write!(out, "\\u{code:04x}")
        };
    })
}

pub fn javascript_string(text: &str) -> String {
    quoted_literal(text, |out, character| {
        let _ = write!(out, "\\u{{{:x}}}", u32::from(character));
    })
}

/// Hidden characters are escaped as UTF-16 units.
pub fn json_string(text: &str) -> String {
    quoted_literal(text, |out, character| {
        for unit in character.encode_utf16(&mut [0; 2]) {
            let _ = write!(out, "\\u{unit:04x}");
        }
    })
}

/// A literal between double quotes, on which the languages agree except for the escapes of rare characters.
fn quoted_literal(text: &str, escape: impl Fn(&mut String, char)) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for (character, hidden) in chars_with_hidden_flag(text) {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if hidden => escape(&mut out, character),
            _ => out.push(character),
        }
    }
    out.push('"');
    out
}
