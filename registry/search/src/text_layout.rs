//! Text layout: all texts of an agent are in one field, where the position of a word identifies its skill.
//!
//! Each skill has its own range of positions; the agent's own texts have the range after the last skill, and texts
//! outside the card's model the one after that. Words of names and tags are repeated at their positions, which
//! increases their weight; each word of the texts outside the model is kept only once, which reduces its weight.

use std::collections::HashSet;

use tantivy::tokenizer::{Token, Tokenizer};

use super::analysis::{AgentTokenStream, indexed_words};
use super::document::{MAX_SKILLS, MAX_TEXT_BYTES, SkillText};
use super::languages::{LanguageSet, detect_card_languages};

/// Bits of a position for the word within its part.
const POSITION_BITS: u32 = 12;

/// The last position within a skill, which all further words share.
const LAST_SKILL_POSITION: usize = (1 << POSITION_BITS) - 2;

/// The last position of the agent's own texts, counted from their first.
const LAST_AGENT_POSITION: usize = ((OTHER_TEXTS_PART - MAX_SKILLS) << POSITION_BITS) - 2;

/// The part of an agent at a position: the index of a skill, or one number for the agent's own texts.
pub(super) fn part_at_position(position: u32) -> u32 {
    position >> POSITION_BITS
}

/// The part of the texts outside the model. The agent's own texts, with at most one word per byte, end before it.
const OTHER_TEXTS_PART: usize = MAX_SKILLS + 1 + ((4 * MAX_TEXT_BYTES) >> POSITION_BITS) + 1;

/// Whether a part holds the texts outside the model, which count for less.
pub(super) fn is_other_texts_part(part: u32) -> bool {
    usize::try_from(part).is_ok_and(|part| part >= OTHER_TEXTS_PART)
}

/// Name of [`LayoutTokenizer`] in the schema.
pub(super) const LAYOUT_TOKENIZER: &str = "layout";

/// The texts of an agent, each within its limits.
#[derive(Debug, Default)]
pub(super) struct AgentTexts {
    pub name: String,
    pub description: String,
    pub provider: String,
    /// Capabilities, extensions, bindings, protocol versions, media types and authentication schemes.
    pub protocol: Vec<String>,
    pub skills: Vec<SkillText>,
    pub other: Vec<String>,
}

/// Kind of a text. Each skill begins with its id, the agent itself with its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AgentTextKind {
    SkillId,
    SkillName,
    Tag,
    SkillDescription,
    Example,
    Name,
    Description,
    Provider,
    Protocol,
    Other,
    /// The letters of the detected languages, before all texts; not a text of the card.
    Languages,
}

impl AgentTextKind {
    const ALL: [Self; 11] = [
        Self::SkillId,
        Self::SkillName,
        Self::Tag,
        Self::SkillDescription,
        Self::Example,
        Self::Name,
        Self::Description,
        Self::Provider,
        Self::Protocol,
        Self::Other,
        Self::Languages,
    ];

    /// How often a word is repeated at its position.
    pub const fn repetitions(self) -> usize {
        match self {
            Self::Name => 3,
            Self::SkillName | Self::Tag => 2,
            _ => 1,
        }
    }

    /// Whether the text belongs to a skill rather than the agent itself.
    pub const fn is_skill_text(self) -> bool {
        !matches!(
            self,
            Self::Name
                | Self::Description
                | Self::Provider
                | Self::Protocol
                | Self::Other
                | Self::Languages
        )
    }

    /// The mark before a text of this kind: a control character that is no white space.
    const fn mark(self) -> char {
        let number = self as u8;
        let white_space = if number < b'\t' {
            0
        } else {
            FIRST_MARK_AFTER_SPACES - b'\t'
        };
        (number + white_space) as char
    }

    fn from_mark(mark: u8) -> Option<Self> {
        let number = match mark {
            ..b'\t' => mark,
            _ => mark
                .checked_sub(FIRST_MARK_AFTER_SPACES)?
                .checked_add(b'\t')?,
        };
        Self::ALL.get(usize::from(number)).copied()
    }
}

/// The first control character after tab and line breaks.
const FIRST_MARK_AFTER_SPACES: u8 = b'\r' + 1;

/// The mark of the last kind.
const LAST_MARK: u8 = FIRST_MARK_AFTER_SPACES + 1;

fn is_text_mark(byte: u8) -> bool {
    byte < b'\t' || matches!(byte, FIRST_MARK_AFTER_SPACES | LAST_MARK)
}

/// Joins all texts, each after its mark. The index stores the result, which several threads tokenize during the
/// commit. A mark within a text becomes a space, so no card can give its words the weight of another field.
pub(super) fn join_agent_texts(texts: &AgentTexts) -> String {
    let mut out = String::new();
    let languages = detect_agent_languages(texts);
    if !languages.is_empty() {
        append_marked_text(
            &mut out,
            AgentTextKind::Languages,
            &languages.language_letters(),
        );
    }
    for skill in texts.skills.iter().take(MAX_SKILLS) {
        append_marked_text(&mut out, AgentTextKind::SkillId, &skill.id);
        append_marked_text(&mut out, AgentTextKind::SkillName, &skill.name);
        for tag in &skill.tags {
            append_marked_text(&mut out, AgentTextKind::Tag, tag);
        }
        append_marked_text(
            &mut out,
            AgentTextKind::SkillDescription,
            &skill.description,
        );
        for example in &skill.examples {
            append_marked_text(&mut out, AgentTextKind::Example, example);
        }
    }
    append_marked_text(&mut out, AgentTextKind::Name, &texts.name);
    append_marked_text(&mut out, AgentTextKind::Description, &texts.description);
    append_marked_text(&mut out, AgentTextKind::Provider, &texts.provider);
    for text in &texts.protocol {
        append_marked_text(&mut out, AgentTextKind::Protocol, text);
    }
    for text in &texts.other {
        append_marked_text(&mut out, AgentTextKind::Other, text);
    }
    out
}

fn detect_agent_languages(texts: &AgentTexts) -> LanguageSet {
    let skills = texts.skills.iter();
    let skills =
        skills.flat_map(|skill| std::iter::once(&skill.description).chain(&skill.examples));
    let all = std::iter::once(&texts.description).chain(skills);
    detect_card_languages(all.chain(&texts.other).map(String::as_str))
}

fn append_marked_text(out: &mut String, kind: AgentTextKind, text: &str) {
    out.push(kind.mark());
    if text.bytes().any(is_text_mark) {
        out.extend(text.chars().map(|letter| match u8::try_from(letter) {
            Ok(byte) if is_text_mark(byte) => ' ',
            _ => letter,
        }));
    } else {
        out.push_str(text);
    }
}

/// Splits the result of [`join_texts`] into its texts.
pub(super) fn split_agent_texts(joined_texts: &str) -> impl Iterator<Item = (AgentTextKind, &str)> {
    let mut rest = joined_texts;
    std::iter::from_fn(move || {
        let kind = AgentTextKind::from_mark(*rest.as_bytes().first()?)?;
        let text = rest.get(1..)?;
        let end = first_mark_offset(text.as_bytes());
        let (text, behind) = text.split_at(end);
        rest = behind;
        Some((kind, text))
    })
}

/// Offset of the first mark, or the length if there is none. Blocks without control characters are skipped as a whole.
fn first_mark_offset(bytes: &[u8]) -> usize {
    const BLOCK: usize = 32;
    for (number, block) in bytes.chunks(BLOCK).enumerate() {
        let controls = block
            .iter()
            .fold(false, |any, byte| any | (*byte <= LAST_MARK));
        if controls && let Some(at) = block.iter().position(|byte| is_text_mark(*byte)) {
            return number * BLOCK + at;
        }
    }
    bytes.len()
}

pub(super) fn stored_agent_languages(joined_texts: &str) -> LanguageSet {
    match split_agent_texts(joined_texts).next() {
        Some((AgentTextKind::Languages, letters)) => LanguageSet::from_letters(letters),
        _ => LanguageSet::NONE,
    }
}

/// Tokenizer of the texts joined by [`join_texts`]: yields the words of all texts at their positions, ascending.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct JoinedTextsTokenizer;

impl Tokenizer for JoinedTextsTokenizer {
    type TokenStream<'a> = AgentTokenStream;

    fn token_stream<'a>(&'a mut self, joined_texts: &'a str) -> AgentTokenStream {
        let mut writer = PartTokenWriter::default();
        let mut skills = 0;
        let mut other_words = None;
        for (kind, text) in split_agent_texts(joined_texts) {
            match kind {
                AgentTextKind::Languages => {
                    writer.languages = LanguageSet::from_letters(text);
                    continue;
                }
                AgentTextKind::SkillId => {
                    writer.start_part(skills, LAST_SKILL_POSITION);
                    skills += 1;
                }
                // The agent's own texts come after all skills, so they can use as many positions as they need.
                AgentTextKind::Name => writer.start_part(MAX_SKILLS, LAST_AGENT_POSITION),
                AgentTextKind::Other => {
                    let known_words = other_words.get_or_insert_with(|| {
                        writer.start_part(OTHER_TEXTS_PART, usize::MAX);
                        HashSet::new()
                    });
                    writer.add_new_words(text, known_words);
                    continue;
                }
                _ => {}
            }
            writer.add_text(text, kind.repetitions());
        }
        writer.tokens.into()
    }
}

#[derive(Default)]
struct PartTokenWriter {
    tokens: Vec<Token>,
    languages: LanguageSet,
    first_position: usize,
    /// The position of the next text within the part.
    next_position: usize,
    last_position: usize,
}

impl PartTokenWriter {
    fn start_part(&mut self, number: usize, last: usize) {
        self.first_position = number << POSITION_BITS;
        self.next_position = 0;
        self.last_position = last;
    }

    /// Adds a text. The position after it stays empty, so no phrase matches across two texts.
    fn add_text(&mut self, text: &str, repetitions: usize) {
        let mut end = self.next_position;
        for piece in indexed_words(text, self.languages) {
            let place = self.next_position + piece.position;
            end = end.max(place + 2);
            for form in piece.forms() {
                let token = Token {
                    position: self.first_position + place.min(self.last_position),
                    text: form,
                    ..Token::default()
                };
                self.tokens.extend(std::iter::repeat_n(token, repetitions));
            }
        }
        self.next_position = end;
    }

    /// Adds the forms of a text that are not in `known_words`.
    fn add_new_words(&mut self, text: &str, known_words: &mut HashSet<String>) {
        let first = self.tokens.len();
        self.add_text(text, 1);
        let mut kept_count = first;
        for place in first..self.tokens.len() {
            if known_words.insert(self.tokens[place].text.clone()) {
                self.tokens.swap(kept_count, place);
                kept_count += 1;
            }
        }
        self.tokens.truncate(kept_count);
    }
}

#[cfg(test)]
mod tests {
    use tantivy::tokenizer::TokenStream as _;

    use super::*;
    use crate::SkillText;

    fn layout(texts: &AgentTexts) -> Vec<Token> {
        let written = join_agent_texts(texts);
        let mut tokens = Vec::new();
        let mut tokenizer = JoinedTextsTokenizer;
        tokenizer
            .token_stream(&written)
            .process(&mut |token| tokens.push(token.clone()));
        tokens
    }

    fn places(texts: &AgentTexts, word: &str) -> Vec<usize> {
        let tokens = layout(texts);
        assert!(tokens.is_sorted_by_key(|token| token.position));
        let found = tokens.into_iter().filter(|token| token.text == word);
        found.map(|token| token.position).collect()
    }

    #[test]
    fn every_skill_has_a_range_of_its_own() {
        let skill = |name: &str| SkillText {
            id: "x".into(),
            name: name.into(),
            description: "travel far".into(),
            ..SkillText::default()
        };
        let texts = AgentTexts {
            name: "Travel".into(),
            description: "far away".into(),
            skills: vec![skill("One"), skill("Two")],
            ..AgentTexts::default()
        };
        let parts = |word| -> Vec<u32> {
            let places = places(&texts, word).into_iter();
            places
                .map(|place| part_at_position(u32::try_from(place).unwrap()))
                .collect()
        };
        let agent = u32::try_from(MAX_SKILLS).unwrap();
        assert_eq!(parts("travel"), [0, 1, agent, agent, agent]);
        assert_eq!(parts("two"), [1, 1]);
        // The end of one text and the beginning of the next do not form a phrase.
        let (travel, far) = (places(&texts, "travel"), places(&texts, "far"));
        assert_eq!(far[0], travel[0] + 1);
        assert!(far[2] > travel[2] + 1);
    }

    #[test]
    fn texts_outside_the_model_come_last_and_each_word_once() {
        let texts = AgentTexts {
            name: "Votes".into(),
            description: "word ".repeat(4 * MAX_TEXT_BYTES),
            other: vec!["votes count votes".into(), "the votes of members".into()],
            ..AgentTexts::default()
        };
        let part = |place: usize| part_at_position(u32::try_from(place).unwrap());
        let own = places(&texts, "word");
        assert!(!is_other_texts_part(part(*own.last().unwrap())));
        let votes = places(&texts, "votes");
        assert_eq!(votes.len(), 3 + 1, "three times as the name, and once");
        let other = votes[3];
        assert!(!is_other_texts_part(part(votes[2])) && is_other_texts_part(part(other)));
        assert_eq!(places(&texts, "count"), [other + 1]);
        assert!(places(&texts, "members")[0] > other + 4);
    }

    #[test]
    fn the_longest_skill_keeps_to_its_range() {
        let long = SkillText {
            description: "word ".repeat(10_000) + "last",
            ..SkillText::default()
        };
        let texts = AgentTexts {
            description: "word ".repeat(10_000) + "end",
            skills: vec![long.clone(), long],
            ..AgentTexts::default()
        };
        let last = places(&texts, "last");
        assert_eq!(
            last,
            [
                LAST_SKILL_POSITION,
                (1 << POSITION_BITS) + LAST_SKILL_POSITION
            ]
        );
        assert!(places(&texts, "end")[0] >= (MAX_SKILLS << POSITION_BITS) + 10_000);
    }

    #[test]
    fn the_texts_come_back_as_they_were_written() {
        let skill = |id: &str| SkillText {
            id: id.into(),
            name: "N\tame\n".into(),
            description: String::new(),
            tags: vec!["é".into(), "t".into()],
            examples: vec!["example".into()],
            rendered: String::new(),
        };
        let all = AgentTexts {
            name: "name".into(),
            description: "first\nsecond".into(),
            provider: "provider".into(),
            protocol: vec!["streaming".into()],
            skills: vec![skill("one"), skill("")],
            other: vec!["more".into(), "texts".into()],
        };
        let of_skill = |id| {
            [
                (AgentTextKind::SkillId, id),
                (AgentTextKind::SkillName, "N\tame\n"),
                (AgentTextKind::Tag, "é"),
                (AgentTextKind::Tag, "t"),
                (AgentTextKind::SkillDescription, ""),
                (AgentTextKind::Example, "example"),
            ]
        };
        let own = [
            (AgentTextKind::Name, "name"),
            (AgentTextKind::Description, "first\nsecond"),
            (AgentTextKind::Provider, "provider"),
            (AgentTextKind::Protocol, "streaming"),
            (AgentTextKind::Other, "more"),
            (AgentTextKind::Other, "texts"),
        ];
        let expected: Vec<_> = [of_skill("one"), of_skill("")].concat();
        let written = join_agent_texts(&all);
        let read: Vec<_> = super::split_agent_texts(&written).collect();
        assert_eq!(read, [expected, own.to_vec()].concat());
    }

    #[test]
    fn a_mark_in_a_text_is_a_space() {
        let texts = |between: &str| AgentTexts {
            name: format!("one{between}two"),
            description: format!("three{between}four"),
            skills: vec![SkillText {
                description: format!("five{between}six"),
                ..SkillText::default()
            }],
            ..AgentTexts::default()
        };
        let plain = layout(&texts(" "));
        for mark in ('\u{0}'..='\u{8}').chain(['\u{e}', '\u{f}']) {
            assert_eq!(layout(&texts(&mark.to_string())), plain, "{mark:?}");
        }
    }
}
