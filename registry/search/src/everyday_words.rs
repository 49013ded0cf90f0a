//! Everyday words of English, which stand for themselves even if no agent contains them: "wedding" is no typing error.
//!
//! `everyday_words.txt` has them in alphabetical order: the words of three or more ASCII letters in the vocabulary of
//! BERT base uncased (Apache License 2.0), which holds the frequent words of encyclopedias and books, and words of
//! everyday tasks. British spellings with an American form in the list are left out, so that they find it. A common
//! misspelling must never be added.

use super::languages::stem_by_script;

static WORDS: &str = include_str!("everyday_words.txt");

/// Whether a folded word is an everyday word or an inflection of one.
pub(super) fn is_everyday_word(word: &str) -> bool {
    if !word.is_ascii() {
        return false;
    }
    is_listed(word)
        || stem_by_script(word, word).is_some_and(|stem| {
            // Stemming cuts a final `e`, and turns a final `y` into `i`.
            is_listed(&stem)
                || is_listed(&format!("{stem}e"))
                || (stem.strip_suffix('i')).is_some_and(|begin| is_listed(&format!("{begin}y")))
        })
}

/// Binary search in the text itself, which needs no memory besides it.
fn is_listed(word: &str) -> bool {
    let is_space = |letter: char| letter.is_ascii_whitespace();
    let (mut low, mut high) = (0, WORDS.len());
    while low < high {
        let middle = low + (high - low) / 2;
        let start = WORDS[..middle].rfind(is_space).map_or(0, |space| space + 1);
        let end = WORDS[start..]
            .find(is_space)
            .map_or(WORDS.len(), |length| start + length);
        match WORDS[start..end].cmp(word) {
            std::cmp::Ordering::Less => low = end + 1,
            std::cmp::Ordering::Equal => return true,
            std::cmp::Ordering::Greater => high = start,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_and_every_word_of_it_is_found() {
        let words: Vec<&str> = WORDS.split_whitespace().collect();
        assert!(words.is_sorted_by(|one, next| one < next));
        let is_plain = |word: &str| word.bytes().all(|letter| letter.is_ascii_lowercase());
        assert!(words.iter().all(|word| is_plain(word) && is_listed(word)));
        for other in ["", "a", "aa", "zzzzzz", "weddin", "#", "\u{fffd}"] {
            assert!(!is_listed(other), "{other}");
        }
    }

    #[test]
    fn inflections_are_known_and_misspellings_are_not() {
        for word in [
            "wedding", "weddings", "parked", "dances", "parties", "plumbers", "mowing",
        ] {
            assert!(is_everyday_word(word), "{word}");
        }
        for word in [
            "recepie",
            "resturant",
            "fligth",
            "wether",
            "calender",
            "colour",
            "kubernetes",
        ] {
            assert!(!is_everyday_word(word), "{word}");
        }
    }
}
