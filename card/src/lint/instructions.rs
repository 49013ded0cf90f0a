//! Rule for texts that address the model that reads a card, instead of describing the agent.
//!
//! Nearly every text is dismissed by one pass that looks for rare words. What is left is searched for sequences of
//! words.

use std::borrow::Cow;
use std::cell::LazyCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, BuildError, MatchKind};
use data_encoding::{BASE64_NOPAD, BASE64URL_NOPAD, Encoding, HEXLOWER_PERMISSIVE};
use serde_json::Value;
use url::form_urlencoded;

use super::instruction_words::{MAX_SEQUENCE_WORDS, RARE, SEQUENCES, Sequence, WORDS};
use super::target::LintTarget;
use crate::finding::FindingCollector;
use crate::hidden_characters::is_hidden_character;
use crate::json_pointer::JsonPointer;
use crate::json_scan::MAX_DEPTH;
use crate::rule::Rule;

/// Identifier of the rule that finds texts which address a model.
pub const INSTRUCTION_RULE: &str = "text.instructs";

/// Maximum number of findings of the rule for one card, so that they do not displace those of other rules.
const MAX_INSTRUCTIONS: usize = 20;

/// Minimum length of a text that is searched.
const MIN_TEXT_BYTES: usize = 12;

/// Minimum length of a word that is decoded.
const MIN_ENCODED_BYTES: usize = 32;

/// Half of [`MIN_ENCODED_BYTES`]: a word of that length fills one block of this length, wherever it begins.
const BLOCK_BYTES: usize = 16;

static ENCODINGS: [Encoding; 3] = [HEXLOWER_PERMISSIVE, BASE64_NOPAD, BASE64URL_NOPAD];

/// Minimum numbers of invisible characters in a row that can hold a message. Zero-width characters hold a bit each.
const MIN_TAGS: usize = 8;
const MIN_SELECTORS: usize = 8;
const MIN_ZERO_WIDTH: usize = 16;

/// Names of attacks: a quoted text beside one of them is an example of what an agent recognizes.
const ATTACK_NAMES: [&str; 8] = [
    "injection",
    "injektion",
    "jailbreak",
    "инъекц",
    "注入",
    "越狱",
    "インジェクション",
    "인젝션",
];

/// Marks that begin a quotation, each with those that end it.
const QUOTES: [(char, &[char]); 10] = [
    ('"', &['"']),
    ('\'', &['\'']),
    ('`', &['`']),
    ('“', &['”']),
    ('„', &['“', '”']),
    ('‘', &['’']),
    ('«', &['»']),
    ('‹', &['›']),
    ('「', &['」']),
    ('『', &['』']),
];

/// Maximum number of characters of a quotation after the words that address a model.
const MAX_QUOTED_CHARS: usize = 200;

/// A text that addresses a model: what it does, and the words that show it.
struct Instruction {
    reason: &'static str,
    excerpt: String,
}

/// Searches every text and member name of the document.
pub(super) fn check_instructions(target: &LintTarget<'_>, rule: &Rule, out: &mut FindingCollector) {
    let Some(finder) = FINDER.as_ref() else {
        return;
    };
    let mut search = InstructionSearch {
        finder,
        rule,
        out,
        findings_left: MAX_INSTRUCTIONS,
    };
    search.search_value(target.document, &JsonPointer::Root, 0);
}

struct InstructionSearch<'s> {
    finder: &'s InstructionFinder,
    rule: &'s Rule,
    out: &'s mut FindingCollector,
    findings_left: usize,
}

impl InstructionSearch<'_> {
    /// Searches a value and everything in it. The reader has limited the depth; this limit protects the stack in any
    /// case.
    fn search_value(&mut self, value: &Value, pointer: &JsonPointer<'_>, depth: usize) {
        if depth > MAX_DEPTH || self.findings_left == 0 {
            return;
        }
        match value {
            Value::String(text) => self.search_text(text, pointer),
            Value::Array(list) => {
                for (index, element) in list.iter().enumerate() {
                    self.search_value(element, &pointer.element(index), depth + 1);
                }
            }
            Value::Object(members) => {
                for (name, value) in members {
                    let pointer = pointer.member(name);
                    self.search_text(name, &pointer);
                    self.search_value(value, &pointer, depth + 1);
                }
            }
            _ => {}
        }
    }

    fn search_text(&mut self, text: &str, pointer: &JsonPointer<'_>) {
        if self.findings_left > 0
            && let Some(instruction) = self.finder.find_instruction(text)
        {
            let Instruction { reason, excerpt } = instruction;
            self.out
                .add(self.rule, pointer, &format!("{reason}: {excerpt}"));
            self.findings_left -= 1;
        }
    }
}

/// Built once; `None` only if the lists were too large for the library, which a test excludes.
static FINDER: LazyLock<Option<InstructionFinder>> =
    LazyLock::new(|| InstructionFinder::from_lists().ok());

struct InstructionFinder {
    /// The rare words in ASCII, for texts in ASCII. Nearly every text is, so this one is the fast and large kind.
    rare_ascii: AhoCorasick,
    rare: AhoCorasick,
    words: AhoCorasick,
    /// The classes of each pattern of `words`.
    classes: Vec<u64>,
}

/// A word in a text.
struct WordHit {
    classes: u64,
    start: usize,
    end: usize,
}

impl InstructionFinder {
    fn from_lists() -> Result<Self, BuildError> {
        let classes_by_word = classes_by_word();
        let rare_classes = RARE.iter().fold(0, |set, class| set | class.bit());
        let mut patterns: Vec<(String, u64)> = Vec::new();
        for (word, classes) in &classes_by_word {
            patterns.extend(spellings(word).map(|spelling| (spelling, *classes)));
        }
        let rare_words = || {
            let rare = patterns
                .iter()
                .filter(move |(_, classes)| classes & rare_classes != 0);
            rare.map(|(word, _)| word.as_str())
        };
        let mut builder = AhoCorasick::builder();
        builder
            .match_kind(MatchKind::LeftmostLongest)
            .ascii_case_insensitive(true)
            .kind(Some(AhoCorasickKind::ContiguousNFA));
        let words = builder.build(patterns.iter().map(|(word, _)| word))?;
        let rare = builder.build(rare_words())?;
        builder.kind(Some(AhoCorasickKind::DFA));
        let rare_ascii = builder.build(rare_words().filter(|word| word.is_ascii()))?;
        Ok(InstructionFinder {
            rare_ascii,
            rare,
            words,
            classes: patterns.iter().map(|(_, classes)| *classes).collect(),
        })
    }

    fn find_instruction(&self, text: &str) -> Option<Instruction> {
        if text.len() < MIN_TEXT_BYTES {
            return None;
        }
        let is_ascii = text.is_ascii();
        // Marks of roles need no blank beside them.
        let is_of_words = |byte: u8| byte.is_ascii_whitespace() || matches!(byte, b'<' | b'[');
        if is_ascii && !text.bytes().any(is_of_words) {
            // An address, an identifier, a digest, …
            return self.find_encoded_instruction(text);
        }
        let mut visible = Cow::Borrowed(text);
        if !is_ascii {
            if let Some(excerpt) = describe_invisible_message(text) {
                return Some(Instruction {
                    reason: "has invisible characters that can hold a message",
                    excerpt,
                });
            }
            visible = remove_invisible_characters(text);
        }
        self.find_sequence(&visible)
            .or_else(|| self.find_encoded_instruction(text))
    }

    fn find_sequence(&self, text: &str) -> Option<Instruction> {
        let has_rare_word = if text.is_ascii() {
            self.rare_ascii.is_match(text)
        } else {
            self.rare.is_match(text)
        };
        if !has_rare_word {
            return None;
        }
        let hits: Vec<WordHit> = self
            .words
            .find_iter(text)
            .filter(|found| !is_within_word(text, found.start()))
            .map(|found| WordHit {
                classes: self.classes[found.pattern().as_usize()],
                start: found.start(),
                end: found.end(),
            })
            .collect();
        let present_classes = hits.iter().fold(0, |set, hit| set | hit.classes);
        // Once for all quotations: a text may consist of them.
        let names_attack = LazyCell::new(|| names_attack(text));
        SEQUENCES.iter().find_map(|sequence| {
            let mut classes = sequence.words.iter();
            if !classes.all(|class| present_classes & class.bit() != 0) {
                return None;
            }
            let range = find_sequence_range(sequence, &hits, text, &names_attack)?;
            Some(Instruction {
                reason: sequence.reason,
                excerpt: text.get(range)?.to_owned(),
            })
        })
    }

    /// Searches what is left of a text when its long words, or its percent-encoding, are decoded. It is decoded once.
    fn find_encoded_instruction(&self, text: &str) -> Option<Instruction> {
        let mut blocks = text.as_bytes().chunks_exact(BLOCK_BYTES);
        if text.len() < MIN_ENCODED_BYTES || blocks.all(|block| block.contains(&b' ')) {
            return None;
        }
        let is_separator = |character: char| {
            !character.is_ascii_alphanumeric() && !matches!(character, '+' | '/' | '-' | '_')
        };
        for word in text.split(is_separator) {
            if word.len() < MIN_ENCODED_BYTES {
                continue;
            }
            let decoded_texts = ENCODINGS
                .iter()
                .filter_map(|encoding| encoding.decode(word.as_bytes()).ok())
                .filter_map(|bytes| String::from_utf8(bytes).ok());
            for decoded in decoded_texts {
                if let Some(instruction) = self.find_sequence(&decoded) {
                    return Some(instruction);
                }
            }
        }
        if !text.contains(['%', '+']) {
            return None;
        }
        let mut parameters = form_urlencoded::parse(text.as_bytes());
        parameters.find_map(|(name, value)| {
            self.find_sequence(&name)
                .or_else(|| self.find_sequence(&value))
        })
    }
}

/// All words with their classes, those of the shorter words that they begin with included: of two words at one place
/// the longer is found.
fn classes_by_word() -> BTreeMap<&'static str, u64> {
    let mut classes_by_word: BTreeMap<&str, u64> = BTreeMap::new();
    for (class, words) in WORDS {
        for word in *words {
            *classes_by_word.entry(word).or_default() |= class.bit();
        }
    }
    // In this order a word comes after those that it begins with.
    let mut beginnings: Vec<(&str, u64)> = Vec::new();
    for (word, classes) in &mut classes_by_word {
        while beginnings
            .last()
            .is_some_and(|(shorter, _)| !word.starts_with(*shorter))
        {
            beginnings.pop();
        }
        *classes |= beginnings.last().map_or(0, |(_, inherited)| *inherited);
        beginnings.push((*word, *classes));
    }
    classes_by_word
}

/// The word, and where it is not ASCII its capitalized and upper-case forms: the automaton folds ASCII alone.
fn spellings(word: &str) -> impl Iterator<Item = String> {
    let mut spellings = vec![word.to_owned()];
    if !word.is_ascii() {
        let mut rest = word.chars();
        let first = rest.next().into_iter().flat_map(char::to_uppercase);
        spellings.push(first.chain(rest).collect());
        spellings.push(word.to_uppercase());
        spellings.dedup();
    }
    spellings.into_iter()
}

/// Whether a word that was found begins amid another, in a script that writes blanks between words.
fn is_within_word(text: &str, start: usize) -> bool {
    let is_letter = |character: char| {
        let is_unspaced = matches!(character, '\u{3040}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}');
        character.is_alphabetic() && !is_unspaced
    };
    let Some((before, after)) = text.split_at_checked(start) else {
        return true;
    };
    after.chars().next().is_some_and(is_letter) && before.chars().next_back().is_some_and(is_letter)
}

/// The first place where the sequence's words stand near enough to each other in one sentence. What is quoted in a
/// text that names the attack is an example, as in the description of an agent that recognizes it.
fn find_sequence_range(
    sequence: &Sequence,
    hits: &[WordHit],
    text: &str,
    names_attack: &LazyCell<bool, impl FnOnce() -> bool>,
) -> Option<Range<usize>> {
    // For each number of words, where their last occurrence begins and ends: it is the nearest to what follows.
    let mut beginnings: [Option<(usize, usize)>; MAX_SEQUENCE_WORDS] = [None; MAX_SEQUENCE_WORDS];
    let last = sequence.words.len() - 1;
    for hit in hits {
        for (index, class) in sequence.words.iter().enumerate().rev() {
            if hit.classes & class.bit() == 0 {
                continue;
            }
            let start = match index.checked_sub(1) {
                None => Some(hit.start),
                Some(previous) => beginnings[previous]
                    .filter(|(_, end)| {
                        let between = text.get(*end..hit.start);
                        between.is_some_and(|between| is_within_gap(between, sequence.max_gap))
                    })
                    .map(|(start, _)| start),
            };
            let Some(start) = start else {
                continue;
            };
            if index < last {
                beginnings[index] = Some((start, hit.end));
            } else if !(is_quoted(text, &(start..hit.end)) && **names_attack) {
                return Some(start..hit.end);
            }
        }
    }
    None
}

/// Whether a text between two words has at most so many characters and no end of a sentence.
fn is_within_gap(between: &str, max_gap: usize) -> bool {
    // A character has at most four bytes.
    if between.len() > 4 * max_gap || between.chars().count() > max_gap {
        return false;
    }
    let mut characters = between.chars().peekable();
    while let Some(character) = characters.next() {
        let ends_sentence = match character {
            '。' | '！' | '？' => true,
            '.' | '!' | '?' => characters.peek().is_none_or(|next| next.is_whitespace()),
            '\n' => characters.peek() == Some(&'\n'),
            _ => false,
        };
        if ends_sentence {
            return false;
        }
    }
    true
}

/// Whether a quotation begins right before this range, and ends soon after it.
fn is_quoted(text: &str, range: &Range<usize>) -> bool {
    let before = text.get(..range.start).unwrap_or_default();
    let quotes = QUOTES.iter().find(|(open, _)| before.ends_with(*open));
    let Some((_, closing)) = quotes else {
        return false;
    };
    let within = text.get(range.clone()).unwrap_or_default();
    let after = text.get(range.end..).unwrap_or_default();
    !has_closing_quote(within.chars(), closing)
        && has_closing_quote(after.chars().take(MAX_QUOTED_CHARS), closing)
}

/// Whether one of these marks ends a word; between letters it is an apostrophe.
fn has_closing_quote(characters: impl Iterator<Item = char>, closing: &[char]) -> bool {
    let mut characters = characters.peekable();
    while let Some(character) = characters.next() {
        let ends_word = characters.peek().is_none_or(|next| !next.is_alphanumeric());
        if ends_word && closing.contains(&character) {
            return true;
        }
    }
    false
}

fn names_attack(text: &str) -> bool {
    let lower = text.to_lowercase();
    ATTACK_NAMES.iter().any(|name| lower.contains(name))
}

/// Describes a run of invisible characters that can hold a message.
fn describe_invisible_message(text: &str) -> Option<String> {
    let (mut tags, mut selectors, mut zero_width) = (String::new(), 0, 0);
    let mut has_message = false;
    for character in text.chars() {
        match character {
            // Tag characters repeat ASCII.
            '\u{e0020}'..='\u{e007e}' => {
                let ascii = char::from_u32(u32::from(character) - 0xe_0000);
                tags.push(ascii.unwrap_or_default());
            }
            _ if tags.len() >= MIN_TAGS => break,
            _ => tags.clear(),
        }
        let is_selector = matches!(character, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}');
        selectors = if is_selector { selectors + 1 } else { 0 };
        let is_zero_width = matches!(
            character,
            '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2064}' | '\u{feff}'
        );
        zero_width = if is_zero_width { zero_width + 1 } else { 0 };
        has_message |= selectors == MIN_SELECTORS || zero_width == MIN_ZERO_WIDTH;
    }
    if tags.len() >= MIN_TAGS {
        return Some(tags);
    }
    has_message.then(|| "a run of zero-width characters or variation selectors".to_owned())
}

/// The text as a model may read it: without characters that nobody sees.
fn remove_invisible_characters(text: &str) -> Cow<'_, str> {
    let is_invisible = |character: char| {
        is_hidden_character(character)
            || matches!(character, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}')
    };
    if text.contains(is_invisible) {
        text.chars().filter(|one| !is_invisible(*one)).collect()
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
#[path = "instructions_tests.rs"]
mod tests;
