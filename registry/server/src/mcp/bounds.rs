//! What a model is given of texts and lists: cut, with hidden characters made visible. Cards are written by strangers, and a
//! model reads at a price.

use std::borrow::Cow;

use crate::pages::text::visible;

/// Characters of a name, an id, a tag or another short text.
pub(super) const LINE: usize = 120;
/// Characters of an address, a URN or a digest. Longer ones are left out rather than cut.
const ADDRESS: usize = 2_000;
/// Interfaces, tags, modes and other entries of an agent that are shown.
pub(super) const ENTRIES: usize = 20;

/// Cuts what is shown of one agent, and notes whether a reader misses something by it.
#[derive(Debug, Default)]
pub(super) struct Bounds {
    pub(super) left_out: bool,
}

impl Bounds {
    pub(super) fn text(&mut self, text: &str, limit: usize) -> String {
        self.left_out |= is_longer(text, limit);
        cut(text, limit)
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

/// An address or identifier as it is, unless it is too long to be one.
pub(super) fn whole(text: Option<&str>) -> Option<String> {
    text.filter(|text| text.len() <= ADDRESS).map(str::to_owned)
}

/// A text cut to `limit` characters, in which a hidden one counts as long as it is written; a cut text ends with `…`.
pub(super) fn cut(text: &str, limit: usize) -> String {
    let (shown, is_cut) = first_characters(text, limit);
    let mut shown = shown.into_owned();
    if is_cut {
        shown.push('…');
    }
    shown
}

fn is_longer(text: &str, limit: usize) -> bool {
    first_characters(text, limit).1
}

/// The first `limit` characters of the visible text, and whether there are more.
fn first_characters(text: &str, limit: usize) -> (Cow<'_, str>, bool) {
    // A visible text is never shorter, except for line ends.
    let end = end_of(text, limit);
    let shown = visible(&text[..end]);
    let shown_end = end_of(&shown, limit);
    let is_cut = end < text.len() || shown_end < shown.len();
    let shown = match shown {
        Cow::Borrowed(shown) => Cow::Borrowed(&shown[..shown_end]),
        Cow::Owned(mut shown) => {
            shown.truncate(shown_end);
            Cow::Owned(shown)
        }
    };
    (shown, is_cut)
}

fn end_of(text: &str, limit: usize) -> usize {
    // No text has more characters than bytes.
    if text.len() <= limit {
        return text.len();
    }
    let mut characters = text.char_indices();
    characters.nth(limit).map_or(text.len(), |(end, _)| end)
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
            assert_eq!(cut(text, limit), expected, "{text:?} to {limit}");
            let is_cut = expected.ends_with('…');
            assert_eq!(is_longer(text, limit), is_cut, "{text:?} to {limit}");
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
            let short = cut(&text, 120);
            assert_eq!(short.chars().count(), 121, "{short}");
            assert!(!short.contains(hidden), "{short:?}");
            assert!(is_longer(&text, 120));
        }
    }
}
