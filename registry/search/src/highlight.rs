//! Highlights: where the words of a query occur in an agent's texts, and which skills contain them.

use std::ops::Range;

use super::analysis::{IndexedWord, QueryWord, run_pieces, runs};
use super::answer::Highlight;
use super::beginnings::{Beginnings, Blocks};
use super::languages::{Languages, unmarked};
use super::layout::{TextKind, texts, written_languages};

const MAX_HIGHLIGHTS: usize = 6;

const MAX_MATCHED_SKILLS: usize = 10;

/// Approximate bytes of an excerpt from a longer text.
const FRAGMENT: usize = 160;

/// Approximate bytes of the excerpt before its first match.
const LEAD: usize = 40;

pub(super) struct Highlighter {
    /// All matching forms, each with the number of its word.
    forms: Vec<(String, u32)>,
    /// The first two bytes of all forms; a run that begins with none of them needs no analysis.
    beginnings: Beginnings,
}

pub(super) struct MatchedSkill {
    /// Its index among the skills of the agent.
    pub number: usize,
    pub id: String,
}

/// Bytes of a word, and capitals, by their value.
const WORD: u8 = 1;
const CAPITAL: u8 = 2;
static CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let letter = byte as u8;
        if letter.is_ascii_alphanumeric() {
            classes[byte] |= WORD;
        }
        if letter.is_ascii_uppercase() {
            classes[byte] |= CAPITAL;
        }
        byte += 1;
    }
    classes
};

impl Highlighter {
    /// Takes words in their folded forms.
    pub fn new(words: &[QueryWord]) -> Self {
        let mut forms = Vec::new();
        let mut beginnings = Beginnings::none();
        for (word, number) in words.iter().zip(0..) {
            let own = std::iter::once(&word.exact).chain(&word.stem);
            let stems = word.stems.iter().map(|(stem, _)| stem);
            for form in own.chain(stems).chain(&word.others) {
                forms.push((form.clone(), number));
                beginnings.insert(shared(unmarked(form)));
            }
        }
        Self { forms, beginnings }
    }

    pub fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    /// Finds the skills of an agent that contain a word, the one with most distinct words first, and its highlights if
    /// `highlighted`. The texts are joined as by [`written`](super::layout::written).
    pub fn find(&self, written: &str, highlighted: bool) -> (Vec<Highlight>, Vec<MatchedSkill>) {
        let mut highlights = Vec::new();
        let mut all: Vec<(TextKind, usize, &str)> = Vec::new();
        let mut start = 0;
        for (kind, text) in texts(written) {
            // A mark of one byte precedes each text.
            all.push((kind, start + 1, text));
            start += 1 + text.len();
        }
        let languages = written_languages(written);
        all.drain(..usize::from(!languages.is_empty()));
        // The agent's name is stored after its skills but shown before them.
        if let Some(name) = all.iter().position(|(kind, ..)| *kind == TextKind::Name) {
            all[..=name].rotate_right(1);
        }
        let blocks = self.beginnings.blocks(written);
        // By skill, the set of words in it, and its id.
        let mut skills: Vec<(u64, &str)> = Vec::new();
        for (kind, start, text) in all {
            if kind == TextKind::SkillId {
                skills.push((0, text));
            }
            if !highlighted && !kind.is_of_skill() {
                continue;
            }
            let (matches, words) = match self.may_hold(text, start, &blocks) {
                true => self.matches(text, languages),
                false => continue,
            };
            if words == 0 {
                continue;
            }
            let skill = skills.last_mut().filter(|_| kind.is_of_skill());
            let skill = skill.map(|(held, id)| {
                *held |= words;
                *id
            });
            if highlighted
                && let Some(field) = field(kind)
                && highlights.len() < MAX_HIGHLIGHTS
            {
                highlights.push(fragment(field, skill, text, &matches));
            }
        }
        let mut matched: Vec<(usize, (u64, &str))> = skills.into_iter().enumerate().collect();
        matched.retain(|(_, (words, _))| *words != 0);
        matched.sort_by_key(|(_, (words, _))| std::cmp::Reverse(words.count_ones()));
        let matched = matched.into_iter().take(MAX_MATCHED_SKILLS);
        let matched = matched.map(|(number, (_, id))| MatchedSkill {
            number,
            id: id.to_owned(),
        });
        (highlights, matched.collect())
    }

    /// Byte ranges of the words, ascending and disjoint, and a bit set of the words found.
    fn matches(&self, text: &str, languages: Languages) -> (Vec<Range<usize>>, u64) {
        let mut ranges: Vec<Range<usize>> = Vec::new();
        let mut words = 0;
        let mut pieces = Vec::new();
        for run in runs(text) {
            let written = &text[run.clone()];
            if !self.may_match(written) {
                continue;
            }
            pieces.clear();
            run_pieces(text, run, 0, languages, &mut pieces);
            for piece in &pieces {
                let found = self.words_of(piece);
                if found == 0 {
                    continue;
                }
                words |= found;
                match ranges.last_mut() {
                    Some(last) if piece.range.start < last.end => {
                        last.end = last.end.max(piece.range.end)
                    }
                    _ => ranges.push(piece.range.clone()),
                }
            }
        }
        (ranges, words)
    }

    /// Whether a text, which begins at `start` of all texts, may contain a word. Most contain none, which its blocks
    /// and one pass over the bytes show.
    fn may_hold(&self, text: &str, start: usize, blocks: &Blocks) -> bool {
        (!text.is_ascii() || blocks.may_hold(start, text.len())) && self.may_hold_word(text)
    }

    /// The same by one pass over its bytes.
    pub fn may_hold_word(&self, text: &str) -> bool {
        if !text.is_ascii() {
            return true;
        }
        let bytes = text.as_bytes();
        let mut within = 0;
        for (at, byte) in bytes.iter().enumerate() {
            let class = CLASSES[usize::from(*byte)];
            // A word begins here, or a part of a camel-case word.
            let begins = class & (!within & WORD | CAPITAL) != 0;
            within = class;
            if begins && self.begins(&bytes[at..]) {
                return true;
            }
        }
        false
    }

    /// Whether a run may match: a word shares its beginning with its stem up to the last two letters (`dying`, `die`),
    /// which excludes most runs without analysis. A camel-case run may match from each of its capitals on.
    fn may_match(&self, written: &str) -> bool {
        if !written.is_ascii() {
            return true;
        }
        let bytes = written.as_bytes();
        let capital = |at: &usize| bytes[*at].is_ascii_uppercase();
        self.begins(bytes)
            || (1..bytes.len())
                .filter(capital)
                .any(|at| self.begins(&bytes[at..]))
    }

    fn begins(&self, bytes: &[u8]) -> bool {
        let second = bytes.get(1).copied().unwrap_or_default();
        let first = bytes.first();
        first.is_some_and(|first| self.beginnings.contains(*first, second))
            && self.forms.iter().any(|(form, _)| {
                let shared = shared(unmarked(form));
                let begin = bytes.get(..shared.len());
                begin.is_some_and(|begin| begin.eq_ignore_ascii_case(shared))
            })
    }

    fn words_of(&self, piece: &IndexedWord) -> u64 {
        self.forms
            .iter()
            .filter(|(form, _)| {
                let mut stems = piece.stem.iter().chain(&piece.stems);
                *form == piece.exact || stems.any(|stem| stem == form)
            })
            .fold(0, |words, (_, number)| words | 1 << (number % 64))
    }
}

/// The beginning that a form shares with every word that has it.
fn shared(form: &str) -> &[u8] {
    let shared = form.len().saturating_sub(2).clamp(1, 3).min(form.len());
    &form.as_bytes()[..shared]
}

const fn field(kind: TextKind) -> Option<&'static str> {
    Some(match kind {
        TextKind::SkillId | TextKind::Languages => return None,
        TextKind::SkillName => "skill.name",
        TextKind::Tag => "skill.tag",
        TextKind::SkillDescription => "skill.description",
        TextKind::Example => "skill.example",
        TextKind::Name => "name",
        TextKind::Description => "description",
        TextKind::Provider => "provider",
        TextKind::Protocol => "protocol",
        TextKind::Other => "other",
    })
}

fn fragment(
    field: &'static str,
    skill: Option<&str>,
    text: &str,
    matches: &[Range<usize>],
) -> Highlight {
    let (mut start, mut end) = (0, text.len());
    if text.len() > FRAGMENT {
        let first = matches.first().map_or(0, |first| first.start);
        start = word_start(
            text,
            text.floor_char_boundary(first.saturating_sub(LEAD)),
            first,
        );
        end = text.floor_char_boundary((start + FRAGMENT).min(text.len()));
        // The end must not be within a match, nor within a word unless the word alone fills the excerpt.
        if let Some(parted) = matches
            .iter()
            .find(|range| range.start < end && end < range.end)
        {
            end = if parted.start > start {
                parted.start
            } else {
                parted.end
            };
        } else if end < text.len()
            && let Some(space) = text[start..end].rfind(char::is_whitespace)
            && matches
                .first()
                .is_none_or(|first| first.end <= start + space)
        {
            end = start + space;
        }
    }
    let ranges = matches
        .iter()
        .filter(|range| range.start >= start && range.end <= end)
        .map(|range| range.start - start..range.end - start)
        .collect();
    Highlight {
        field,
        skill: skill.map(str::to_owned),
        text: text[start..end].to_owned(),
        ranges,
        cut_before: start > 0,
        cut_after: end < text.len(),
    }
}

/// The first start of a word in a range of offsets; `to` if there is none.
fn word_start(text: &str, from: usize, to: usize) -> usize {
    if from == 0 {
        return 0;
    }
    match text[from..to].find(char::is_whitespace) {
        Some(space) => {
            let rest = &text[from + space..to];
            to - rest.trim_start().len()
        }
        None => to,
    }
}
