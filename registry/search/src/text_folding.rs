//! Text folding: one form for all spellings that a reader takes for the same word.

use std::borrow::Cow;
use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization;

/// The first character of the block with traditional characters; below, its number of characters.
const FIRST_IDEOGRAPH: u32 = 0x4e00;
const IDEOGRAPH_COUNT: usize = 0x5200;

/// The simplified form of each character of the block, or the character itself.
static SIMPLIFIED: LazyLock<Vec<char>> = LazyLock::new(|| {
    let block = (FIRST_IDEOGRAPH..).take(IDEOGRAPH_COUNT);
    let mut simplified: Vec<char> = block.filter_map(char::from_u32).collect();
    let lines = include_str!("traditional.txt").lines();
    for line in lines.filter(|line| !line.starts_with('#')) {
        let mut letters = line.chars();
        while let (Some(traditional), Some(simple)) = (letters.next(), letters.next()) {
            if let Some(place) = ideograph_index(traditional) {
                simplified[place] = simple;
            }
        }
    }
    simplified
});

fn ideograph_index(letter: char) -> Option<usize> {
    let place = u32::from(letter).checked_sub(FIRST_IDEOGRAPH)?;
    usize::try_from(place)
        .ok()
        .filter(|place| *place < IDEOGRAPH_COUNT)
}

/// Folds a text: lower case, without accents, Arabic vowel signs, width variants and traditional characters.
pub(super) fn fold_text(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            Cow::Owned(text.to_ascii_lowercase())
        } else {
            Cow::Borrowed(text)
        };
    }
    let mut plain = String::with_capacity(text.len());
    for letter in text
        .chars()
        .flat_map(char::to_lowercase)
        .nfkd()
        .filter(|letter| !is_removed_mark(*letter))
        .flat_map(char::to_lowercase)
    {
        match letter {
            // These letters have no decomposition but are commonly typed without their stroke or ligature.
            'ß' => plain.push_str("ss"),
            'æ' => plain.push_str("ae"),
            'œ' => plain.push_str("oe"),
            'ø' => plain.push('o'),
            'ł' => plain.push('l'),
            'đ' => plain.push('d'),
            'ı' => plain.push('i'),
            // Interchangeable Arabic letters.
            'ٱ' => plain.push('ا'),
            'ى' | 'ی' => plain.push('ي'),
            'ک' => plain.push('ك'),
            'ة' => plain.push('ه'),
            other => plain.push(match ideograph_index(other) {
                Some(place) => SIMPLIFIED[place],
                None => other,
            }),
        }
    }
    Cow::Owned(plain.nfc().collect())
}

/// Whether folding removes a character: an accent, an Arabic vowel sign, another mark, or the Arabic stretching line.
fn is_removed_mark(letter: char) -> bool {
    matches!(letter, '\u{300}'..='\u{36f}' | '\u{610}'..='\u{61a}' | '\u{64b}'..='\u{65f}' | '\u{670}' | '\u{640}')
}
