//! Highlights: the occurrences of a query's words in an agent's texts, and the skills that contain them.

use std::ops::Range;

use super::analysis::{IndexedWord, QueryWord, push_span_words, word_spans};
use super::languages::{LanguageSet, strip_stem_mark};
use super::response::Highlight;
use super::text_layout::{AgentTextKind, split_agent_texts, stored_agent_languages};
use super::word_prefix_scan::{WordPrefixSet, WordStartBlocks};

const MAX_HIGHLIGHTS: usize = 6;

const MAX_MATCHED_SKILLS: usize = 10;

/// Approximate bytes of an excerpt from a longer text.
const EXCERPT_BYTES: usize = 160;

/// Approximate bytes of the excerpt before its first match.
const LEAD_BYTES: usize = 40;

pub(super) struct Highlighter {
    /// The matching forms, each with the number of its word.
    forms: Vec<(String, u32)>,
    /// The first two bytes of all forms; a run that begins with none of them is not analyzed.
    prefix_scan: WordPrefixSet,
}

pub(super) struct MatchedSkill {
    /// Its index among the skills of the agent.
    pub index: usize,
    pub id: String,
}

/// Classes of bytes by their value: bytes of words, and capitals.
const WORD_BYTE: u8 = 1;
const CAPITAL_BYTE: u8 = 2;
static BYTE_CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let letter = byte as u8;
        if letter.is_ascii_alphanumeric() {
            classes[byte] |= WORD_BYTE;
        }
        if letter.is_ascii_uppercase() {
            classes[byte] |= CAPITAL_BYTE;
        }
        byte += 1;
    }
    classes
};

impl Highlighter {
    /// Creates a highlighter of these words, in their folded forms.
    pub fn new(words: &[QueryWord]) -> Self {
        let mut forms = Vec::new();
        let mut prefix_scan = WordPrefixSet::empty();
        for (word, number) in words.iter().zip(0..) {
            let own = std::iter::once(&word.exact).chain(&word.stem);
            let stems = word.language_stems.iter().map(|(stem, _)| stem);
            for form in own.chain(stems).chain(&word.other_forms) {
                forms.push((form.clone(), number));
                prefix_scan.insert(shared_form_prefix(form));
            }
        }
        Self { forms, prefix_scan }
    }

    pub fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    /// Finds the skills of an agent that contain a word, the one with most distinct words first, and the highlights if
    /// `with_highlights`. The texts are joined as by [`join_texts`](super::text_layout::join_texts).
    pub fn find_matches(
        &self,
        joined_texts: &str,
        with_highlights: bool,
    ) -> (Vec<Highlight>, Vec<MatchedSkill>) {
        let mut highlights = Vec::new();
        let mut agent_texts: Vec<(AgentTextKind, usize, &str)> = Vec::new();
        let mut start = 0;
        for (kind, text) in split_agent_texts(joined_texts) {
            // A mark of one byte precedes each text.
            agent_texts.push((kind, start + 1, text));
            start += 1 + text.len();
        }
        let languages = stored_agent_languages(joined_texts);
        agent_texts.drain(..usize::from(!languages.is_empty()));
        // The agent's name is stored after its skills but shown before them.
        if let Some(name) = agent_texts
            .iter()
            .position(|(kind, ..)| *kind == AgentTextKind::Name)
        {
            agent_texts[..=name].rotate_right(1);
        }
        let blocks = self.prefix_scan.find_word_start_blocks(joined_texts);
        // For each skill, the set of words in it, and its id.
        let mut skills: Vec<(u64, &str)> = Vec::new();
        for (kind, start, text) in agent_texts {
            if kind == AgentTextKind::SkillId {
                skills.push((0, text));
            }
            if !with_highlights && !kind.is_skill_text() {
                continue;
            }
            let (matches, words) = match self.text_may_contain_word(text, start, &blocks) {
                true => self.match_ranges(text, languages),
                false => continue,
            };
            if words == 0 {
                continue;
            }
            let skill = skills.last_mut().filter(|_| kind.is_skill_text());
            let skill = skill.map(|(held, id)| {
                *held |= words;
                *id
            });
            if with_highlights
                && let Some(field) = highlight_field_name(kind)
                && highlights.len() < MAX_HIGHLIGHTS
            {
                highlights.push(build_highlight(field, skill, text, &matches));
            }
        }
        let mut matched_skills: Vec<(usize, (u64, &str))> =
            skills.into_iter().enumerate().collect();
        matched_skills.retain(|(_, (words, _))| *words != 0);
        matched_skills.sort_by_key(|(_, (words, _))| std::cmp::Reverse(words.count_ones()));
        let matched = matched_skills.into_iter().take(MAX_MATCHED_SKILLS);
        let matched = matched.map(|(number, (_, id))| MatchedSkill {
            index: number,
            id: id.to_owned(),
        });
        (highlights, matched.collect())
    }

    /// Byte ranges of the words, ascending and disjoint, and a bit set of the words found.
    fn match_ranges(&self, text: &str, languages: LanguageSet) -> (Vec<Range<usize>>, u64) {
        let mut ranges: Vec<Range<usize>> = Vec::new();
        let mut words = 0;
        let mut span_words = Vec::new();
        for span in word_spans(text) {
            let written = &text[span.clone()];
            if !self.span_may_match(written) {
                continue;
            }
            span_words.clear();
            push_span_words(text, span, 0, languages, &mut span_words);
            for word in &span_words {
                let word_bits = self.matched_word_bits(word);
                if word_bits == 0 {
                    continue;
                }
                words |= word_bits;
                match ranges.last_mut() {
                    Some(last) if word.range.start < last.end => {
                        last.end = last.end.max(word.range.end)
                    }
                    _ => ranges.push(word.range.clone()),
                }
            }
        }
        (ranges, words)
    }

    /// Whether a text, which begins at `start` of the joined texts, may contain a word. Its blocks and one pass over
    /// its bytes exclude most texts.
    fn text_may_contain_word(&self, text: &str, start: usize, blocks: &WordStartBlocks) -> bool {
        (!text.is_ascii() || blocks.may_have_word_start(start, text.len()))
            && self.may_contain_word(text)
    }

    /// Does the same by one pass over the text's bytes.
    pub fn may_contain_word(&self, text: &str) -> bool {
        if !text.is_ascii() {
            return true;
        }
        let bytes = text.as_bytes();
        let mut previous_class = 0;
        for (at, byte) in bytes.iter().enumerate() {
            let class = BYTE_CLASSES[usize::from(*byte)];
            // A word begins here, or a part of a camel-case word.
            let begins = class & (!previous_class & WORD_BYTE | CAPITAL_BYTE) != 0;
            previous_class = class;
            if begins && self.may_start_match(&bytes[at..]) {
                return true;
            }
        }
        false
    }

    /// Whether a run may match: a word shares its prefix with its stem except for the stem's last two letters
    /// (`dying`, `die`), which excludes most runs without analysis. A camel-case run may match from each of its
    /// capitals on.
    fn span_may_match(&self, spelling: &str) -> bool {
        if !spelling.is_ascii() {
            return true;
        }
        let bytes = spelling.strip_prefix('.').unwrap_or(spelling).as_bytes();
        let capital = |at: &usize| bytes[*at].is_ascii_uppercase();
        self.may_start_match(bytes)
            || (1..bytes.len())
                .filter(capital)
                .any(|at| self.may_start_match(&bytes[at..]))
    }

    fn may_start_match(&self, bytes: &[u8]) -> bool {
        let second = bytes.get(1).copied().unwrap_or_default();
        let first = bytes.first();
        first.is_some_and(|first| self.prefix_scan.contains(*first, second))
            && self.forms.iter().any(|(form, _)| {
                let shared = shared_form_prefix(form);
                let begin = bytes.get(..shared.len());
                begin.is_some_and(|begin| begin.eq_ignore_ascii_case(shared))
            })
    }

    fn matched_word_bits(&self, word: &IndexedWord) -> u64 {
        self.forms
            .iter()
            .filter(|(form, _)| {
                let mut stems = word.stem.iter().chain(&word.language_stems);
                *form == word.exact || stems.any(|stem| stem == form)
            })
            .fold(0, |words, (_, number)| words | 1 << (number % 64))
    }
}

/// The prefix that a form shares with every word that has it; of `.net` the letters, because a word begins with one.
fn shared_form_prefix(form: &str) -> &[u8] {
    let form = strip_stem_mark(form).trim_start_matches('.');
    let shared = form.len().saturating_sub(2).clamp(1, 3).min(form.len());
    &form.as_bytes()[..shared]
}

const fn highlight_field_name(kind: AgentTextKind) -> Option<&'static str> {
    Some(match kind {
        AgentTextKind::SkillId | AgentTextKind::Languages => return None,
        AgentTextKind::SkillName => "skill.name",
        AgentTextKind::Tag => "skill.tag",
        AgentTextKind::SkillDescription => "skill.description",
        AgentTextKind::Example => "skill.example",
        AgentTextKind::Name => "name",
        AgentTextKind::Description => "description",
        AgentTextKind::Provider => "provider",
        AgentTextKind::Protocol => "protocol",
        AgentTextKind::Other => "other",
    })
}

fn build_highlight(
    field: &'static str,
    skill: Option<&str>,
    text: &str,
    matches: &[Range<usize>],
) -> Highlight {
    let (mut start, mut end) = (0, text.len());
    if text.len() > EXCERPT_BYTES {
        let first = matches.first().map_or(0, |first| first.start);
        start = first_word_start(
            text,
            text.floor_char_boundary(first.saturating_sub(LEAD_BYTES)),
            first,
        );
        end = text.floor_char_boundary((start + EXCERPT_BYTES).min(text.len()));
        // The end must not split a match, nor a word unless that word alone fills the excerpt.
        if let Some(split_match) = matches
            .iter()
            .find(|range| range.start < end && end < range.end)
        {
            end = if split_match.start > start {
                split_match.start
            } else {
                split_match.end
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
fn first_word_start(text: &str, from: usize, to: usize) -> usize {
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
