//! Which characters do not belong into a card's text.

/// Whether a reader cannot see the character while a machine does: bidirectional controls, zero-width
/// characters, fillers, tag characters and controls other than tab, line feed and carriage return.
///
/// Zero-width joiner and non-joiner are left out: scripts and emoji need them. [`has_hidden`] looks at
/// their neighbours.
pub(crate) fn is_hidden(character: char) -> bool {
    match character {
        '\t' | '\n' | '\r' => false,
        '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' => true,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' | '\u{feff}' => true,
        '\u{200b}' | '\u{200e}' | '\u{200f}' => true,
        // Line and paragraph separators end a line for some readers only.
        '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        // Letters that fill a place and show nothing.
        '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{3164}' | '\u{ffa0}' => true,
        '\u{fff9}'..='\u{fffb}' => true,
        // Tags, and variation selectors beyond the sixteen that emoji use: both carry hidden messages.
        '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}

/// Whether the text has a hidden character, or a joiner or selector behind a character that takes none.
pub(crate) fn has_hidden(text: &str) -> bool {
    // Nearly every text is plain ASCII, which is told without decoding it.
    let plain = |byte: u8| matches!(byte, b'\t' | b'\n' | b'\r' | 0x20..=0x7e);
    if text.bytes().all(plain) {
        return false;
    }
    let mut before = ' ';
    for character in text.chars() {
        let hidden = match character {
            '\u{200c}' | '\u{200d}' => before.is_ascii(),
            '\u{e0100}'..='\u{e01ef}' => !is_ideograph(before),
            other => is_hidden(other),
        };
        if hidden {
            return true;
        }
        before = character;
    }
    false
}

/// Whether the character takes one of the variation selectors beyond the sixteen, which Japanese names need.
fn is_ideograph(character: char) -> bool {
    matches!(character, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// The text cut to `limit` characters, with what cannot be seen written as `\u{…}`. A cut text ends in `…`.
pub(crate) fn visible(text: &str, limit: usize) -> String {
    let mut short = String::new();
    let mut length = 0;
    for character in text.chars() {
        let piece = if is_hidden(character) || character.is_control() {
            character.escape_unicode().to_string()
        } else {
            character.to_string()
        };
        let width = piece.chars().count();
        if length + width >= limit {
            short.push('…');
            break;
        }
        length += width;
        short.push_str(&piece);
    }
    short
}

#[cfg(test)]
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
            assert!(!has_hidden(text), "{text:?}");
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
            assert!(has_hidden(text), "{text:?}");
        }
    }
}
