//! Limits for texts and lists in tool results: both are cut, and hidden characters are made visible. Cards are
//! untrusted, and every token costs money.

pub(super) use a2a_registry_core::text::multiline_text as cut;
use a2a_registry_core::text::{ADDRESS, LINE};

/// Maximum number of interfaces, tags, modes and other entries of an agent.
pub(super) const MAX_ENTRIES: usize = 20;

/// Cuts the texts and lists of one agent, and records whether anything was left out.
#[derive(Debug, Default)]
pub(super) struct TextLimiter {
    pub(super) is_shortened: bool,
}

impl TextLimiter {
    pub(super) fn limit_text(&mut self, text: &str, limit: usize) -> String {
        let shown = cut(text, limit);
        self.is_shortened |= shown.ends_with('…') && !text.ends_with('…');
        shown
    }

    pub(super) fn limit_optional(&mut self, text: Option<&str>, limit: usize) -> Option<String> {
        text.map(|text| self.limit_text(text, limit))
    }

    pub(super) fn take_first<'a, T>(&mut self, all: &'a [T], max: usize) -> &'a [T] {
        self.is_shortened |= all.len() > max;
        &all[..max.min(all.len())]
    }
}

pub(super) fn limit_lines(texts: &[String]) -> Vec<String> {
    let texts = texts.iter().take(MAX_ENTRIES);
    texts.map(|text| cut(text, LINE)).collect()
}

/// Returns a URL or identifier unless it is too long: a cut one would be wrong.
pub(super) fn address_if_short(text: Option<&str>) -> Option<String> {
    text.filter(|text| text.len() <= ADDRESS).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_to_what_is_shown_of_it() {
        for (text, limit, expected) in [
            ("", 3, ""),
            ("abc", 3, "abc"),
            ("abcd", 3, "abc…"),
            ("東京都", 3, "東京都"),
            ("東京都庁", 3, "東京都…"),
            ("a\u{202e}b", 20, "a⟦U+202E⟧b"),
            ("a\u{202e}b", 10, "a⟦U+202E⟧b"),
            ("a\u{202e}b", 9, "a⟦U+202E⟧…"),
            ("a\r\nb\u{202e}", 20, "a\nb⟦U+202E⟧"),
        ] {
            let mut bounds = TextLimiter::default();
            assert_eq!(
                bounds.limit_text(text, limit),
                expected,
                "{text:?} to {limit}"
            );
            let is_cut = expected.ends_with('…');
            assert_eq!(bounds.is_shortened, is_cut, "{text:?} to {limit}");
        }
    }

    #[test]
    fn what_is_left_out_is_noted() {
        let mut bounds = TextLimiter::default();
        assert_eq!(bounds.limit_text("abc", 3), "abc");
        assert_eq!(bounds.limit_optional(None, 3), None);
        assert_eq!(bounds.take_first(&[1, 2], 2), [1, 2]);
        assert!(!bounds.is_shortened);
        assert_eq!(bounds.take_first(&[1, 2], 1), [1]);
        assert!(bounds.is_shortened);
        let mut bounds = TextLimiter::default();
        assert_eq!(
            bounds.limit_optional(Some("abcd"), 3).as_deref(),
            Some("abc…")
        );
        assert!(bounds.is_shortened);
        assert_eq!(
            limit_lines(&vec!["a".to_owned(); MAX_ENTRIES + 1]).len(),
            MAX_ENTRIES
        );
        let longest = "a".repeat(ADDRESS);
        assert_eq!(address_if_short(Some(&longest)).as_deref(), Some(&*longest));
        assert_eq!(address_if_short(Some(&format!("{longest}a"))), None);
    }

    /// A card of hidden characters cannot exceed the size limit of a page.
    #[test]
    fn hidden_characters_do_not_lengthen_a_text() {
        for hidden in ['\u{1b}', '\u{ad}', '\u{202e}', '\u{e0041}'] {
            let text = hidden.to_string().repeat(1_000);
            let mut bounds = TextLimiter::default();
            let short = bounds.limit_text(&text, 120);
            // The last escaped character may be complete.
            assert!(short.chars().count() <= 120 + "⟦U+E0041⟧…".chars().count());
            assert!(!short.contains(hidden), "{short:?}");
            assert!(bounds.is_shortened);
        }
    }
}
