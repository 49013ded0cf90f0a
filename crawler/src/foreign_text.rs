//! Makes foreign text safe to display.

/// Maximum length in characters of an attempt's detail.
pub const MAX_DETAIL: usize = 300;
/// Maximum length in characters of a detail that summarizes two requests, or the entries of a catalog.
pub const MAX_SUMMARY: usize = 1_200;

/// `text` on one line, without control, format and escape characters, cut at `limit` characters. Text of a server or a
/// card may contain terminal escapes or direction overrides, and must pass through this function before it reaches
/// logs and pages.
pub fn sanitize_text(text: &str, limit: usize) -> String {
    let mut out = String::new();
    let mut length = 0;
    for c in text
        .chars()
        .map(|c| if c.is_whitespace() { ' ' } else { c })
    {
        if is_invisible(c) || (c == ' ' && out.ends_with(' ')) {
            continue;
        }
        if length == limit {
            // The last character is replaced by the ellipsis to keep the limit.
            out.pop();
            out.push('…');
            break;
        }
        out.push(c);
        length += 1;
    }
    out
}

/// `text` with its control, format and escape characters escaped, as in `\\u{1b}`, cut at `limit` characters. Used to
/// quote text to a reader who must see what is wrong with it.
pub fn escape_invisible(text: &str, limit: usize) -> String {
    let mut out = String::new();
    let mut length = 0;
    for c in text.chars() {
        let hidden = is_invisible(c) || (c.is_whitespace() && c != ' ');
        let displayed = if hidden {
            c.escape_default().to_string()
        } else {
            c.to_string()
        };
        length += displayed.chars().count();
        if length > limit {
            // Characters at the end are replaced by the ellipsis to keep the limit.
            while out.chars().count() >= limit && out.pop().is_some() {}
            out.extend((limit > 0).then_some('…'));
            break;
        }
        out.push_str(&displayed);
    }
    out
}

/// Whether a character is invisible or changes how others are displayed.
const fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{61c}' | '\u{180e}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_becomes_one_plain_bounded_line() {
        assert_eq!(
            sanitize_text("a\u{1b}[31mred\r\n\tb\u{202e}c\u{200b}d\u{e0041}", 100),
            "a[31mred bcd"
        );
        assert_eq!(sanitize_text(&"x".repeat(300), MAX_DETAIL), "x".repeat(300));
        let cut = sanitize_text(&"ü".repeat(301), MAX_DETAIL);
        assert_eq!(cut.chars().count(), MAX_DETAIL);
        assert!(cut.ends_with('…'));
    }

    #[test]
    fn what_cannot_be_seen_is_written_out() {
        assert_eq!(
            escape_invisible("a\u{1b}[31m\r\n\u{202e}b c", 100),
            "a\\u{1b}[31m\\r\\n\\u{202e}b c"
        );
        assert_eq!(escape_invisible("abc", 3), "abc");
        assert_eq!(escape_invisible("abcd", 3), "ab…");
        assert_eq!(escape_invisible("ab\u{1b}", 3), "ab…");
        assert_eq!(escape_invisible("abc", 0), "");
    }

    proptest::proptest! {
        #[test]
        fn nothing_hidden_is_quoted(text in "\\PC*|[\\x00-\\x{2fff}]*", limit in 0_usize..400) {
            let out = escape_invisible(&text, limit);
            proptest::prop_assert!(out.chars().count() <= limit);
            proptest::prop_assert!(!out.chars().any(|c| c.is_control() || is_invisible(c)));
        }

        #[test]
        fn nothing_hidden_comes_through(text in "\\PC*|[\\x00-\\x{2fff}]*", limit in 1_usize..400) {
            let out = sanitize_text(&text, limit);
            proptest::prop_assert!(out.chars().count() <= limit);
            proptest::prop_assert!(!out.chars().any(|c| c.is_control() || is_invisible(c)));
        }
    }
}
