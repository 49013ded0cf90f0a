//! Prefix scan for a query's words: one pass over an agent's texts shows where a word may begin.

use a2a_registry_simd::run_vectorized;

/// Bytes per block; one bit tells whether a word may begin in it.
const BLOCK_BYTES: usize = 64;

/// Maximum number of different prefixes; beyond it every block counts as a candidate.
const MAX_PREFIXES: usize = 24;

const CASE_BIT: u8 = 0x20;

/// A set of the first two bytes of words, ignoring case.
pub(super) struct WordPrefixSet {
    bits: Vec<u64>,
    prefixes: Vec<BytePrefix>,
}

/// Two bytes, both with the case bit set; only the bits of `mask` count in the second.
#[derive(Clone, Copy, PartialEq, Eq)]
struct BytePrefix {
    first: u8,
    second: u8,
    mask: u8,
}

pub(super) struct WordStartBlocks(Vec<bool>);

impl WordStartBlocks {
    /// Whether a word may begin in this range of the text.
    pub fn may_have_word_start(&self, start: usize, length: usize) -> bool {
        let (first, end) = (start / BLOCK_BYTES, (start + length).div_ceil(BLOCK_BYTES));
        let blocks = self.0.get(first..end.min(self.0.len()));
        blocks.is_some_and(|blocks| blocks.contains(&true))
    }
}

impl WordPrefixSet {
    pub fn empty() -> Self {
        Self {
            bits: vec![0; (1 << 16) / 64],
            prefixes: Vec::new(),
        }
    }

    /// Adds the words with this prefix; only its first two bytes count.
    pub fn insert(&mut self, start_bytes: &[u8]) {
        let (first, seconds, mask) = match start_bytes {
            [first, second, ..] => (*first, *second..=*second, u8::MAX),
            [first] => (*first, 0..=u8::MAX, 0),
            [] => return,
        };
        let prefix = BytePrefix {
            first: first | CASE_BIT,
            second: (*seconds.start() | CASE_BIT) & mask,
            mask,
        };
        if !self.prefixes.contains(&prefix) {
            self.prefixes.push(prefix);
        }
        for second in seconds {
            let pair = byte_pair_index(first, second);
            self.bits[pair / 64] |= 1 << (pair % 64);
        }
    }

    /// Whether a word may begin with these two bytes; the byte after the end of a text counts as 0.
    #[inline]
    pub fn contains(&self, first: u8, second: u8) -> bool {
        let pair = byte_pair_index(first, second);
        self.bits[pair / 64] >> (pair % 64) & 1 == 1
    }

    /// The blocks of a text in which a word, or a part of a camel-case word, may begin. In text beyond ASCII only words
    /// that begin with an ASCII letter are found.
    pub fn find_word_start_blocks(&self, text: &str) -> WordStartBlocks {
        let count = text.len().div_ceil(BLOCK_BYTES);
        if self.prefixes.len() > MAX_PREFIXES {
            return WordStartBlocks(vec![true; count]);
        }
        // One byte of padding on each side allows all blocks to be read the same way.
        let mut bytes = vec![0; count * BLOCK_BYTES + 2];
        bytes[1..=text.len()].copy_from_slice(text.as_bytes());
        let mut blocks = vec![false; count];
        run_vectorized(
            #[inline(always)]
            || {
                for (block, begins) in blocks.iter_mut().enumerate() {
                    let window = &bytes[block * BLOCK_BYTES..][..BLOCK_BYTES + 2];
                    *begins = self.block_has_word_start(window);
                }
            },
        );
        WordStartBlocks(blocks)
    }

    /// Whether a word may begin in a block, given with the byte before and the byte after it.
    #[inline(always)]
    fn block_has_word_start(&self, window: &[u8]) -> bool {
        let (before, current, after) = (
            &window[..BLOCK_BYTES],
            &window[1..=BLOCK_BYTES],
            &window[2..BLOCK_BYTES + 2],
        );
        let mut matching = [false; BLOCK_BYTES];
        for sought in &self.prefixes {
            for at in 0..BLOCK_BYTES {
                matching[at] |= (current[at] | CASE_BIT == sought.first)
                    & ((after[at] | CASE_BIT) & sought.mask == sought.second);
            }
        }
        let mut any = false;
        for at in 0..BLOCK_BYTES {
            any |= matching[at] & (!is_word_byte(before[at]) | current[at].is_ascii_uppercase());
        }
        any
    }
}

fn byte_pair_index(first: u8, second: u8) -> usize {
    usize::from(first.to_ascii_lowercase()) << 8 | usize::from(second.to_ascii_lowercase())
}

/// Whether a byte is an ASCII letter or digit, without a branch.
#[inline(always)]
fn is_word_byte(byte: u8) -> bool {
    ((byte | CASE_BIT).wrapping_sub(b'a') < 26) | (byte.wrapping_sub(b'0') < 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beginnings(words: &[&str]) -> WordPrefixSet {
        let mut beginnings = WordPrefixSet::empty();
        for word in words {
            beginnings.insert(word.as_bytes());
        }
        beginnings
    }

    #[test]
    fn a_block_with_the_beginning_of_a_word_is_found_wherever_it_stands() {
        let beginnings = beginnings(&["tra", "q"]);
        for at in 0..3 * BLOCK_BYTES {
            let text = format!("{} travel", " ".repeat(at));
            let blocks = beginnings.find_word_start_blocks(&text);
            assert!(blocks.may_have_word_start(0, text.len()));
            assert!(
                blocks.may_have_word_start(at + 1, 1),
                "the block of the word"
            );
            assert!(
                !blocks.may_have_word_start(0, at / BLOCK_BYTES * BLOCK_BYTES),
                "blocks before"
            );
        }
    }

    #[test]
    fn only_beginnings_of_words_and_capitals_count() {
        let beginnings = beginnings(&["tra", "q"]);
        let holds = |text: &str| {
            beginnings
                .find_word_start_blocks(text)
                .may_have_word_start(0, text.len())
        };
        for text in ["Travel", "a TRAIN", "bookTravel", "QQ", "1 q", "é.tr"] {
            assert!(holds(text), "{text}");
        }
        for text in ["", "portrait", "abcq", "t r", "7tra", "the rain"] {
            assert!(!holds(text), "{text}");
        }
    }

    #[test]
    fn with_too_many_beginnings_every_block_counts() {
        let words: Vec<String> = (b'a'..=b'z')
            .map(|letter| format!("{}x", letter as char))
            .collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        assert!(
            beginnings(&words)
                .find_word_start_blocks("none")
                .may_have_word_start(0, 4)
        );
    }
}
