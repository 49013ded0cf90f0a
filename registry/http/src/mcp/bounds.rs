//! What a model is given of texts and lists: cut, with hidden characters made visible. Cards are written by strangers, and a
//! model reads at a price.

pub(super) use a2a_registry_core::text::block as cut;
use a2a_registry_core::text::{ADDRESS, LINE};

/// Interfaces, tags, modes and other entries of an agent that are shown.
pub(super) const ENTRIES: usize = 20;

/// Cuts what is shown of one agent, and notes whether a reader misses something by it.
#[derive(Debug, Default)]
pub(super) struct Bounds {
    pub(super) left_out: bool,
}

impl Bounds {
    pub(super) fn text(&mut self, text: &str, limit: usize) -> String {
        let shown = cut(text, limit);
        self.left_out |= shown.ends_with('…') && !text.ends_with('…');
        shown
    }

    pub(super) fn optional(&mut self, text: Option<&str>, limit: usize) -> Option<String> {
        text.map(|text| self.text(text, limit))
    }

    pub(super) fn first<'a, T>(&mut self, all: &'a [T], most: usize) -> &'a [T] {
        self.left_out |= all.len() > most;
        &all[..most.min(all.len())]
    }
}

pub(super) fn lines(texts: &[String]) -> Vec<String> {
    let texts = texts.iter().take(ENTRIES);
    texts.map(|text| cut(text, LINE)).collect()
}

/// An address or identifier as it is, unless it is too long to be one: cut it would be another one.
pub(super) fn whole(text: Option<&str>) -> Option<String> {
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
            let mut bounds = Bounds::default();
            assert_eq!(bounds.text(text, limit), expected, "{text:?} to {limit}");
            let is_cut = expected.ends_with('…');
            assert_eq!(bounds.left_out, is_cut, "{text:?} to {limit}");
        }
    }

    #[test]
    fn what_is_left_out_is_noted() {
        let mut bounds = Bounds::default();
        assert_eq!(bounds.text("abc", 3), "abc");
        assert_eq!(bounds.optional(None, 3), None);
        assert_eq!(bounds.first(&[1, 2], 2), [1, 2]);
        assert!(!bounds.left_out);
        assert_eq!(bounds.first(&[1, 2], 1), [1]);
        assert!(bounds.left_out);
        let mut bounds = Bounds::default();
        assert_eq!(bounds.optional(Some("abcd"), 3).as_deref(), Some("abc…"));
        assert!(bounds.left_out);
        assert_eq!(lines(&vec!["a".to_owned(); ENTRIES + 1]).len(), ENTRIES);
        let longest = "a".repeat(ADDRESS);
        assert_eq!(whole(Some(&longest)).as_deref(), Some(&*longest));
        assert_eq!(whole(Some(&format!("{longest}a"))), None);
    }

    /// A card of hidden characters is no way to a page that is larger than its bound.
    #[test]
    fn hidden_characters_do_not_lengthen_a_text() {
        for hidden in ['\u{1b}', '\u{ad}', '\u{202e}', '\u{e0041}'] {
            let text = hidden.to_string().repeat(1_000);
            let mut bounds = Bounds::default();
            let short = bounds.text(&text, 120);
            // The last one may be written to its end.
            assert!(short.chars().count() <= 120 + "⟦U+E0041⟧…".chars().count());
            assert!(!short.contains(hidden), "{short:?}");
            assert!(bounds.left_out);
        }
    }
}
