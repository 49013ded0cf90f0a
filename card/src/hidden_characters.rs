//! Hidden characters, which do not belong in a card's text, and how they are escaped.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a character is invisible to a person but not to a machine: bidirectional controls, zero-width characters,
/// fillers, tag characters and controls other than tab, line feed and carriage return.
///
/// `has_hidden_characters` checks zero-width joiners and non-joiners, which scripts and emoji need, by their
/// neighbours.
pub fn is_hidden_character(character: char) -> bool {
    match character {
        '\t' | '\n' | '\r' => false,
        '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' => true,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' | '\u{feff}' => true,
        '\u{200b}' | '\u{200e}' | '\u{200f}' => true,
        // Line and paragraph separators end a line in some viewers only.
        '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        // Letters that take up space but display nothing.
        '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{3164}' | '\u{ffa0}' => true,
        '\u{fff9}'..='\u{fffb}' => true,
        // Tags, and variation selectors beyond the sixteen for emoji: both can carry hidden messages.
        '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}

/// Whether the text has a hidden character, or a joiner or selector after a character that takes none.
pub(crate) fn has_hidden_characters(text: &str) -> bool {
    !is_plain_ascii(text) && characters_with_hidden_flag(text).any(|(_, hidden)| hidden)
}

/// Whether the text is ASCII without controls, checked without decoding it. Nearly every text is.
fn is_plain_ascii(text: &str) -> bool {
    text.bytes()
        .all(|byte| matches!(byte, b'\t' | b'\n' | b'\r' | 0x20..=0x7e))
}

/// Every character, with whether it is hidden at its position.
fn characters_with_hidden_flag(text: &str) -> impl Iterator<Item = (char, bool)> + '_ {
    let mut previous = ' ';
    text.chars().map(move |character| {
        let is_hidden = match character {
            '\u{200c}' | '\u{200d}' => previous.is_ascii(),
            '\u{e0100}'..='\u{e01ef}' => !is_ideograph(previous),
            other => is_hidden_character(other),
        };
        previous = character;
        (character, is_hidden)
    })
}

/// Whether the character takes one of the variation selectors beyond the sixteen, which Japanese names need.
fn is_ideograph(character: char) -> bool {
    matches!(character, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// The text cut to `limit` characters, with invisible ones written as `\u{…}`. A cut text ends with `…`.
pub(crate) fn escape_and_truncate(text: &str, limit: usize) -> String {
    let mut escaped = String::with_capacity(text.len().min(limit) + '…'.len_utf8());
    let mut length = 0;
    for character in text.chars() {
        let is_escaped = is_hidden_character(character) || character.is_control();
        let width = if is_escaped {
            character.escape_unicode().count()
        } else {
            1
        };
        if length + width >= limit {
            escaped.push('…');
            break;
        }
        length += width;
        if is_escaped {
            escaped.extend(character.escape_unicode());
        } else {
            escaped.push(character);
        }
    }
    escaped
}

/// Makes JSON text safe for a terminal or a log viewer: controls beyond ASCII, bidirectional controls and all other
/// invisible characters are written as `\uXXXX`. JSON parsers read the same value.
///
/// All JSON with text of cards must be printed through this: the command line's `--json`, the logs of
/// [`crate::sarif_log()`].
///
/// ```
/// let json = "{\"name\":\"txt.\u{202e}exe\"}";
/// assert_eq!(a2a_card::terminal_safe_json(json), r#"{"name":"txt.\u202eexe"}"#);
/// ```
pub fn terminal_safe_json(json: &str) -> Cow<'_, str> {
    if !has_hidden_characters(json) {
        return Cow::Borrowed(json);
    }
    let mut visible = String::with_capacity(json.len() + 16);
    let mut units = [0; 2];
    for (character, hidden) in characters_with_hidden_flag(json) {
        if hidden {
            // The character can only be inside a string, where every character may be escaped.
            for unit in character.encode_utf16(&mut units) {
                // Writing to a String cannot fail.
                let _ = write!(visible, "\\u{unit:04x}");
            }
        } else {
            visible.push(character);
        }
    }
    Cow::Owned(visible)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_text_of_many_scripts_is_not_flagged() {
        for text in [
            "Books flights\r\n\tand hotels",
            "café 東京 ключ",
            "می\u{200c}خواهم",
            "👩\u{200d}🚀",
            "❤\u{fe0f}",
            "葛\u{e0100}城",
            "",
        ] {
            assert!(!has_hidden_characters(text), "{text:?}");
        }
    }

    #[test]
    fn what_cannot_be_seen_is_flagged() {
        for text in [
            "\u{1b}[31m",
            "a\u{202e}b",
            "pay\u{200b}pal",
            "pay\u{200d}pal",
            "\u{e0041}",
            "a\u{0}",
            "\u{feff}a",
            "\u{85}",
            "a\u{2028}b",
            "a\u{3164}b",
            "a\u{e0101}b",
            "葛\u{e0100}\u{e0101}",
            "a\u{2066}b",
        ] {
            assert!(has_hidden_characters(text), "{text:?}");
        }
    }

    #[test]
    fn json_is_written_visibly_and_says_the_same() {
        for hidden in [
            "\u{7f}",
            "\u{80}",
            "\u{9b}31m",
            "\u{9f}",
            "\u{ad}",
            "\u{200b}",
            "a\u{200d}b",
            "\u{202a}",
            "\u{202e}",
            "\u{2066}",
            "\u{2069}",
            "\u{2028}",
            "\u{feff}",
            "\u{e0041}",
            "a\u{e0101}",
            "\u{1b}]0;title\u{7}",
        ] {
            let value = serde_json::json!({ hidden: [hidden, "café 東京"] });
            let written = serde_json::to_string_pretty(&value).unwrap();
            let visible = terminal_safe_json(&written);
            assert!(!has_hidden_characters(&visible), "{visible:?}");
            assert!(visible.contains("café 東京"), "{visible}");
            let read: serde_json::Value = serde_json::from_str(&visible).unwrap();
            assert_eq!(read, value, "{visible}");
        }
        assert_eq!(terminal_safe_json("\"\u{e0041}\""), r#""\udb40\udc41""#);
        assert_eq!(terminal_safe_json("[\"\u{9b}\"]"), r#"["\u009b"]"#);
    }

    #[test]
    fn json_with_nothing_to_hide_is_not_copied() {
        for json in [
            "{\"a\":\r\n\t1}",
            "[\"می\u{200c}خواهم 👩\u{200d}🚀 葛\u{e0100}城\"]",
        ] {
            assert!(matches!(terminal_safe_json(json), Cow::Borrowed(same) if same == json));
        }
    }
}
