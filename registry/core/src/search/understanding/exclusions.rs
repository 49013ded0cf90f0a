//! Exclusions in words: `not zendesk`, `but not google calendar`, `except acme`.

use std::ops::Range;

use super::matching::ALTERNATIVE_WORDS;
use super::words::{QuestionWord, is_in};

/// Maximum number of words of an excluded name.
const MAX_NAME_WORDS: usize = 2;
/// Maximum number of names after one opener, as in `not zendesk or freshdesk`.
const MAX_NAMES: usize = 3;
/// Maximum number of quoted words and words of the query syntax in a text with exclusions; below, the maximum number
/// of excluded names. Beyond 16 such parts the query parser reads an exclusion as a word.
const MAX_SYNTAX_WORDS: usize = 8;
const MAX_ALL_NAMES: usize = 8;

/// An exclusion that was found in a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundExclusion {
    /// The places of its words, with those that express the exclusion.
    pub(super) words: Range<usize>,
    /// The places of the excluded names.
    pub(super) names: Vec<Range<usize>>,
}

/// Words that exclude whatever follows.
static EXCEPTIONS: [&[&str]; 8] = [
    &["apart", "from"],
    &["except", "for"],
    &["other", "than"],
    &["excluding"],
    &["except"],
    &["excepto"],
    &["außer"],
    &["sauf"],
];
/// Words that exclude the name that follows, and otherwise belong to a sentence; the longest first.
static NEGATIONS: [&[&str]; 7] = [
    &["but", "not", "using"],
    &["but", "not", "from"],
    &["but", "not", "by"],
    &["but", "not"],
    &["not", "from"],
    &["not", "using"],
    &["not"],
];
const ARTICLES: &str = "the a an any der";

/// Words before `not` that make it a part of a sentence about the task, as in `does not work`.
const SENTENCE_WORDS: &str = "\
    is are was were be been am do does did can could should would will must may might shall has have had why if \
    whether or to it it's i'm he she they we you i that which who what when how so as better";

/// Words that no excluded name contains: function words, and words that make another sentence of it.
const NOT_NAMES: &str = "\
    a an the any all some my your our their his her its this that these those it me you us them him i we they he \
    she in on at of to for from by with without over via into about as than like and but or nor not no if when \
    where what which who why how because while during after before between is are was were be been being do does \
    did can could should would will must have has had only just sure too so very yet even really enough every \
    everything always more less least one much many good bad well true found safe here there necessarily limited \
    signed streaming agent agents please";
/// Adjectives that follow `not` in sentences about the task, as in `water not hot`.
const ADJECTIVES: &str = "\
    hot cold warm cool loud quiet bright dark open full empty clean dry wet hard soft big small long short high \
    low fast slow new old free cheap expensive easy difficult clear ready right wrong happy sad real fake nice \
    spicy sweet salty fresh heavy light strong weak tight loose healthy alone present done gone broken stuck \
    online offline sharp smooth straight flat equal dead alive urgent important public private";
/// Endings of verbs, adverbs and adjectives. A single word with one of them is seldom a name.
const WORD_ENDINGS: [&str; 8] = ["ing", "ed", "ly", "able", "ible", "ive", "ful", "ous"];

/// The exclusions of a question in order, at most `max_exclusions`. Words in `taken` belong to other parts.
pub(super) fn find_exclusions(
    words: &[QuestionWord],
    taken: &[Range<usize>],
    max_exclusions: usize,
) -> Vec<FoundExclusion> {
    let mut found: Vec<FoundExclusion> = Vec::new();
    if words.iter().filter(|word| word.is_opaque).count() > MAX_SYNTAX_WORDS {
        return found;
    }
    let reader = ExclusionReader { words, taken };
    let mut start = 0;
    let mut name_count = 0;
    while start < words.len() && found.len() < max_exclusions {
        let exclusion = reader
            .exclusion_at(start)
            .filter(|exclusion| name_count + exclusion.names.len() <= MAX_ALL_NAMES);
        start = exclusion
            .as_ref()
            .map_or(start + 1, |exclusion| exclusion.words.end);
        name_count += exclusion.as_ref().map_or(0, |one| one.names.len());
        found.extend(exclusion);
    }
    found
}

struct ExclusionReader<'a> {
    words: &'a [QuestionWord],
    taken: &'a [Range<usize>],
}

impl ExclusionReader<'_> {
    fn exclusion_at(&self, start: usize) -> Option<FoundExclusion> {
        if let Some(opener) = self.opener_at(start, &EXCEPTIONS) {
            let names = self.read_names(start + opener.len());
            let end = names.last()?.end;
            return Some(FoundExclusion {
                words: start..end,
                names,
            });
        }
        let opener = self.opener_at(start, &NEGATIONS)?;
        let names = self.read_names(start + opener.len());
        let end = names.last()?.end;
        // Alone, `not` is only an exclusion at the end of a clause that is no sentence.
        let is_alone = opener.first() == Some(&"not");
        let is_sentence = is_alone && (self.follows_sentence(start) || !self.ends_clause(end));
        if is_sentence || !names.iter().all(|name| self.is_name(name)) {
            return None;
        }
        Some(FoundExclusion {
            words: start..end,
            names,
        })
    }

    fn opener_at(
        &self,
        start: usize,
        openers: &[&'static [&'static str]],
    ) -> Option<&'static [&'static str]> {
        let is_at = |opener: &&&'static [&'static str]| {
            let found = self.words.get(start..start + opener.len());
            found.is_some_and(|found| {
                found
                    .iter()
                    .zip(opener.iter())
                    .enumerate()
                    .all(|(index, (word, expected))| {
                        let is_free = !word.is_opaque && !self.is_taken(start + index);
                        let adjacent = index == 0 || !word.after_break;
                        is_free && adjacent && word.lower == *expected
                    })
            })
        };
        openers.iter().find(is_at).copied()
    }

    fn is_taken(&self, place: usize) -> bool {
        self.taken.iter().any(|range| range.contains(&place))
    }

    fn follows_sentence(&self, start: usize) -> bool {
        let previous = start.checked_sub(1).map(|place| &self.words[place]);
        previous.is_some_and(|previous| {
            is_in(&previous.lower, SENTENCE_WORDS) && !self.words[start].after_break
        })
    }

    /// The names from this place on, joined by `or`; none if there are more words than names have.
    fn read_names(&self, start: usize) -> Vec<Range<usize>> {
        let is_article = |word: &QuestionWord| is_in(&word.lower, ARTICLES);
        let has_article = self.words.get(start).is_some_and(is_article);
        let mut at = start + usize::from(has_article);
        let mut names: Vec<Range<usize>> = Vec::new();
        while names.len() < MAX_NAMES {
            let Some(name) = self.read_name(at) else {
                break;
            };
            at = name.end + 1;
            let joins = self.words.get(name.end).is_some_and(|next| {
                let word = next.lower.as_str();
                !next.after_break && (word == "nor" || is_in(word, ALTERNATIVE_WORDS))
            });
            names.push(name);
            if !joins {
                break;
            }
        }
        names
    }

    /// The name at this place: one or two words up to a function word, punctuation or the end of the text.
    fn read_name(&self, start: usize) -> Option<Range<usize>> {
        let is_name_word = |place: usize| {
            self.words.get(place).is_some_and(|word| {
                let lower = word.lower.as_str();
                lower.starts_with(char::is_alphabetic)
                    && !word.is_opaque
                    && !word.after_break
                    && !self.is_taken(place)
                    && !is_in(lower, NOT_NAMES)
                    && !is_in(lower, ALTERNATIVE_WORDS)
            })
        };
        let count = (start..).take_while(|place| is_name_word(*place)).count();
        (1..=MAX_NAME_WORDS)
            .contains(&count)
            .then_some(start..start + count)
    }

    fn ends_clause(&self, end: usize) -> bool {
        let next = self.words.get(end);
        next.is_none_or(|next| next.after_break || next.is_opaque || self.is_taken(end))
    }

    /// Whether these words look like a name, and not like what an agent does or how something is.
    fn is_name(&self, name: &Range<usize>) -> bool {
        let last = self.words[name.end - 1].lower.as_str();
        let is_word =
            is_in(last, ADJECTIVES) || WORD_ENDINGS.iter().any(|ending| last.ends_with(ending));
        name.len() > 1 || !is_word
    }
}
