//! Escaping of foreign text for a terminal: characters that are invisible or would control the terminal become
//! `\u{…}`, and lengths are counted in columns.

use std::io::Write;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Escapes one line: every control character, including line ends and tabs.
pub fn escape_line(text: &str) -> String {
    escape_characters(text, |character| {
        matches!(character, '\n' | '\r' | '\t') || is_unsafe_for_terminal(character)
    })
}

/// Escapes a text of several lines: line ends and tabs stay, CRLF becomes a line feed.
pub fn escape_lines(text: &str) -> String {
    escape_characters(&text.replace("\r\n", "\n"), |character| {
        !matches!(character, '\n' | '\t') && is_unsafe_for_terminal(character)
    })
}

/// Escapes one line and cuts it to at most `columns` columns; a cut line ends in `…`.
pub fn escape_and_truncate(text: &str, columns: usize) -> String {
    // An escaped character takes at most ten columns and at least one byte, so no more than this much of a huge text
    // can be shown. Only combining marks beyond that are lost.
    let mut end = text.len().min(columns.saturating_mul(4).saturating_add(64));
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let visible = escape_line(&text[..end]);
    if end == text.len() && visible.width() <= columns {
        return visible;
    }
    let mut truncated = String::new();
    let mut width = 0;
    for character in visible.chars() {
        let more = character.width().unwrap_or(0);
        if width + more >= columns {
            break;
        }
        width += more;
        truncated.push(character);
    }
    truncated.push('…');
    truncated
}

/// Writes an error line to standard error, escaped. A failure to write cannot be reported.
pub fn eprint_error(text: &str) {
    eprint_note(&format!("a2a-registry: {text}"));
}

/// Writes a line of advice or progress to standard error, escaped.
pub fn eprint_note(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", escape_line(text));
}

fn escape_characters(text: &str, must_escape: impl Fn(char) -> bool) -> String {
    if text.bytes().all(|byte| matches!(byte, 0x20..=0x7e)) {
        return text.to_owned();
    }
    let mut safe = String::with_capacity(text.len());
    let mut previous = ' ';
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        // Joiners are part of some scripts and of emoji, but between plain letters they are only invisible.
        let joiner = matches!(character, '\u{200c}' | '\u{200d}');
        let next_is_plain = rest.peek().is_none_or(char::is_ascii);
        if must_escape(character) || (joiner && (previous.is_ascii() || next_is_plain)) {
            match character {
                '\n' => safe.push_str("\\n"),
                '\r' => safe.push_str("\\r"),
                '\t' => safe.push_str("\\t"),
                _ => safe.extend(character.escape_unicode()),
            }
        } else {
            safe.push(character);
        }
        previous = character;
    }
    safe
}

/// Whether a character is a control (including escape), bidirectional control, without width, or a separator that
/// starts a new line. The joiners of scripts and emoji are checked with their neighbors.
fn is_unsafe_for_terminal(character: char) -> bool {
    if character.is_control() {
        return true;
    }
    matches!(
        character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_the_terminal() {
        for (text, expected) in [
            ("plain", "plain"),
            (
                "\u{1b}[2J\u{1b}]0;title\u{7}",
                "\\u{1b}[2J\\u{1b}]0;title\\u{7}",
            ),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("two\r\nlines\tand a tab", "two\\r\\nlines\\tand a tab"),
            ("over\rwritten", "over\\rwritten"),
            ("evil\u{202e}txt.exe", "evil\\u{202e}txt.exe"),
            ("pay\u{200b}pal", "pay\\u{200b}pal"),
            ("pay\u{200d}pal", "pay\\u{200d}pal"),
            ("a\u{2028}b", "a\\u{2028}b"),
            ("\u{e0041}", "\\u{e0041}"),
            ("del\u{7f}", "del\\u{7f}"),
        ] {
            assert_eq!(escape_line(text), expected);
        }
    }

    #[test]
    fn writing_of_every_script_stays() {
        for text in [
            "café 東京 ключ",
            "می\u{200c}خواهم",
            "👩\u{200d}🚀",
            "e\u{301}",
        ] {
            assert_eq!(escape_line(text), text);
        }
    }

    #[test]
    fn several_lines_stay_several_lines() {
        assert_eq!(
            escape_lines("a\r\nb\n\tc\rd\u{1b}"),
            "a\nb\n\tc\\u{d}d\\u{1b}".replace("\\u{d}", "\\r")
        );
    }

    #[test]
    fn lengths_are_counted_in_columns() {
        assert_eq!(escape_and_truncate("abcdef", 6), "abcdef");
        assert_eq!(escape_and_truncate("abcdefg", 6), "abcde…");
        // Each of these takes two columns.
        assert_eq!(escape_and_truncate("東京東京", 8), "東京東京");
        assert_eq!(escape_and_truncate("東京東京東", 8), "東京東…");
        assert_eq!(escape_and_truncate("\u{1b}\u{1b}", 6), "\\u{1b…");
        assert_eq!(escape_and_truncate("abc", 0), "…");
    }

    #[test]
    fn a_huge_text_is_shortened_without_looking_at_all_of_it() {
        let huge = "é".repeat(10_000_000);
        assert_eq!(escape_and_truncate(&huge, 20).width(), 20);
    }
}
