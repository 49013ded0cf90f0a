//! How the texts of an agent are laid out in one field: where a word stands tells to which skill it belongs.
//!
//! Each skill has a range of positions of its own, and what the agent says of itself has the range after the last
//! of them. Names and tags stand in their places several times, which makes them weigh more.

use tantivy::tokenizer::{Token, Tokenizer};

use super::analysis::{AgentTokens, pieces};
use super::document::MAX_SKILLS;
use super::schema::StoredTexts;

/// How many bits of a position are its place within a skill.
const PLACE_BITS: u32 = 12;

/// The last place within a skill; what would stand behind it stands here.
const LAST_PLACE: usize = (1 << PLACE_BITS) - 2;

/// How often a word of the agent's name stands in its place.
const NAME: usize = 3;
/// How often a word of a skill's name or tag does.
const SKILL_NAME: usize = 2;
/// How often every other word does.
const PLAIN: usize = 1;

/// Which part of the agent a position is in: the number of a skill, or one number for the agent itself.
pub(super) fn part_of(position: u32) -> u32 {
    position >> PLACE_BITS
}

/// The name under which [`LayoutTokenizer`] is known in the schema.
pub(super) const LAYOUT: &str = "layout";

/// Where a skill begins, in the written form of all texts.
const SKILL: char = '\u{1}';

/// Where that begins which the agent says of itself.
const AGENT: char = '\u{2}';

/// What stands before a text whose words stand once, twice, three times in their places.
const TIMES: [char; NAME] = ['\u{3}', '\u{4}', '\u{5}'];

fn is_mark(byte: u8) -> bool {
    byte <= 5
}

/// All texts behind one another, each behind a mark. The index cuts them into words where it is written, which
/// several threads do at once. A mark within a text becomes a space: nobody gives words weight by it.
pub(super) fn written(texts: &StoredTexts) -> String {
    let mut out = String::new();
    for skill in texts.skills.iter().take(MAX_SKILLS) {
        out.push(SKILL);
        write(&mut out, &skill.name, SKILL_NAME);
        write(&mut out, &skill.id, PLAIN);
        for tag in &skill.tags {
            write(&mut out, tag, SKILL_NAME);
        }
        write(&mut out, &skill.description, PLAIN);
        for example in &skill.examples {
            write(&mut out, example, PLAIN);
        }
    }
    out.push(AGENT);
    write(&mut out, &texts.name, NAME);
    write(&mut out, &texts.description, PLAIN);
    write(&mut out, &texts.provider, PLAIN);
    out
}

fn write(out: &mut String, text: &str, times: usize) {
    out.push(TIMES[times - 1]);
    if text.bytes().any(is_mark) {
        out.push_str(&text.replace(|letter| letter <= TIMES[NAME - 1], " "));
    } else {
        out.push_str(text);
    }
}

/// Lays out what [`written`] gives: the words of all texts in their places, ascending.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LayoutTokenizer;

impl Tokenizer for LayoutTokenizer {
    type TokenStream<'a> = AgentTokens;

    fn token_stream<'a>(&'a mut self, written: &'a str) -> AgentTokens {
        let mut part = Part::default();
        let mut skills = 0;
        let mut rest = written;
        while let Some(mark) = rest.chars().next() {
            rest = &rest[mark.len_utf8()..];
            match mark {
                SKILL => {
                    part.begin(skills, LAST_PLACE);
                    skills += 1;
                }
                // Nothing comes after the agent itself, so its words may go on.
                AGENT => part.begin(MAX_SKILLS, usize::MAX),
                _ => {
                    let place = TIMES.iter().position(|known| *known == mark);
                    let end = rest.bytes().position(is_mark).unwrap_or(rest.len());
                    part.add(&rest[..end], place.map_or(PLAIN, |place| place + 1));
                    rest = &rest[end..];
                }
            }
        }
        part.tokens.into()
    }
}

/// One part while it is laid out.
#[derive(Default)]
struct Part {
    tokens: Vec<Token>,
    first: usize,
    /// Where the next text begins, within the part.
    next: usize,
    last: usize,
}

impl Part {
    fn begin(&mut self, number: usize, last: usize) {
        self.first = number << PLACE_BITS;
        self.next = 0;
        self.last = last;
    }

    /// Adds a text. A place is left free behind it, so that no phrase reaches into the next one.
    fn add(&mut self, text: &str, times: usize) {
        let mut end = self.next;
        for piece in pieces(text) {
            let place = self.next + piece.position;
            end = end.max(place + 2);
            for form in std::iter::once(piece.exact).chain(piece.stem) {
                if form.is_empty() {
                    continue;
                }
                let token = Token {
                    position: self.first + place.min(self.last),
                    text: form,
                    ..Token::default()
                };
                self.tokens.extend(std::iter::repeat_n(token, times));
            }
        }
        self.next = end;
    }
}

#[cfg(test)]
mod tests {
    use tantivy::tokenizer::TokenStream as _;

    use super::*;
    use crate::index::SkillText;

    fn layout(texts: &StoredTexts) -> Vec<Token> {
        let written = written(texts);
        let mut tokens = Vec::new();
        let mut tokenizer = LayoutTokenizer;
        tokenizer
            .token_stream(&written)
            .process(&mut |token| tokens.push(token.clone()));
        tokens
    }

    fn places(texts: &StoredTexts, word: &str) -> Vec<usize> {
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
        let texts = StoredTexts {
            name: "Travel".into(),
            description: "far away".into(),
            skills: vec![skill("One"), skill("Two")],
            ..StoredTexts::default()
        };
        let parts = |word| -> Vec<u32> {
            let places = places(&texts, word).into_iter();
            places
                .map(|place| part_of(u32::try_from(place).unwrap()))
                .collect()
        };
        let agent = u32::try_from(MAX_SKILLS).unwrap();
        assert_eq!(parts("travel"), [0, 1, agent, agent, agent]);
        assert_eq!(parts("two"), [1, 1]);
        // The end of one text and the beginning of the next are no phrase.
        let (travel, far) = (places(&texts, "travel"), places(&texts, "far"));
        assert_eq!(far[0], travel[0] + 1);
        assert!(far[2] > travel[2] + 1);
    }

    #[test]
    fn the_longest_skill_keeps_to_its_range() {
        let long = SkillText {
            description: "word ".repeat(10_000) + "last",
            ..SkillText::default()
        };
        let texts = StoredTexts {
            description: "word ".repeat(10_000) + "end",
            skills: vec![long.clone(), long],
            ..StoredTexts::default()
        };
        let last = places(&texts, "last");
        assert_eq!(last, [LAST_PLACE, (1 << PLACE_BITS) + LAST_PLACE]);
        assert!(places(&texts, "end")[0] >= (MAX_SKILLS << PLACE_BITS) + 10_000);
    }

    #[test]
    fn a_mark_in_a_text_is_a_space() {
        let texts = |between: &str| StoredTexts {
            name: format!("one{between}two"),
            description: format!("three{between}four"),
            skills: vec![SkillText {
                description: format!("five{between}six"),
                ..SkillText::default()
            }],
            ..StoredTexts::default()
        };
        let plain = layout(&texts(" "));
        for mark in '\u{0}'..='\u{5}' {
            assert_eq!(layout(&texts(&mark.to_string())), plain, "{mark:?}");
        }
    }
}
