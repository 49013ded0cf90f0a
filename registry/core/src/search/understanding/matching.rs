//! Matches the patterns of [`super::phrases`] with the words of a question.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::LazyLock;

use a2a_registry_domain::facet::Facet;

use super::phrases::{
    PHRASES, TRUST_LEVELS, TRUST_PATTERNS, VERSION_PATTERNS, VERSIONS, WORD_LISTS,
};
use super::words::{QuestionWord, is_in};

/// A phrase that was found in a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundPhrase {
    /// The positions of its words.
    pub(super) words: Range<usize>,
    pub(super) facet: Facet,
    pub(super) value: &'static str,
}

#[derive(Debug)]
struct Phrase {
    /// The words that must stand before it, if any.
    before: Option<PatternElement>,
    elements: Vec<PatternElement>,
    /// The words that must stand after it, if any.
    after: Option<PatternElement>,
    start: PhraseStart,
    end: PhraseEnd,
    facet: Facet,
    value: &'static str,
}

/// Where a phrase may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PhraseStart {
    Anywhere,
    AfterPunctuation,
    Text,
}

/// What may follow a phrase, besides the end of the text and punctuation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PhraseEnd {
    /// A word of [`CLAUSE_WORDS`].
    Clause,
    /// A word of [`CLAUSE_WORDS`] or [`CONNECTING_WORDS`].
    Connection,
    Anything,
}

#[derive(Debug)]
struct PatternElement {
    /// Each a row of words.
    alternatives: Vec<Vec<&'static str>>,
    is_optional: bool,
}

static COMPILED_PHRASES: LazyLock<Vec<Phrase>> = LazyLock::new(|| {
    let fixed = PHRASES
        .iter()
        .map(|(pattern, facet, value)| Phrase::new(pattern, *facet, value, ""));
    let variable = [
        (&VERSION_PATTERNS[..], &VERSIONS, Facet::ProtocolVersion),
        (&TRUST_PATTERNS[..], &TRUST_LEVELS, Facet::Trust),
    ];
    let variable = variable.into_iter().flat_map(|(patterns, values, facet)| {
        patterns.iter().flat_map(move |pattern| {
            let values = values.iter();
            values.map(move |(value, spellings)| Phrase::new(pattern, facet, value, spellings))
        })
    });
    fixed.chain(variable).collect()
});

/// Words that turn a phrase into its opposite.
const NEGATIONS: &str = "\
    not no non never without cannot neither nor hardly nicht kein keine keinen ohne sin nunca pas sans";
/// Words that make a phrase one of several alternatives, which a filter would exclude.
pub(super) const ALTERNATIVE_WORDS: &str = "or oder ou o";

/// Words that begin another clause.
const CLAUSE_WORDS: &str = "\
    and but that which who without no not nothing except excluding please und aber ohne y pero sin que et mais \
    sans";
/// Words that connect a phrase with the rest of its clause and do not change its meaning.
const CONNECTING_WORDS: &str = "\
    agent agents for from in on at of by with is are has have can so because as its the a an also only i we my me \
    if when over via speaks speaking accepts accepting returns returning supports supporting signed unsigned \
    version protocol needs requires für mit die der das para con pour avec qui available";

/// First words of phrases that may also belong to what the agent is to do.
const TASK_OPENERS: &str = "with using via from mit con avec";
/// Words after which these belong to what the agent is to do, as in `help with OAuth`.
const TASK_WORDS: &str = "\
    me us help helps problem problems issue issues trouble error errors deal deals dealing struggle struggling \
    login logins signin in log logged authenticate authentication integrate integrates integrating integration app \
    apps application website site user users debug experience familiar start started stuck connect connecting \
    email emails mail mails send sending sends newsletter newsletters api apis";

impl Phrase {
    /// Compiles a pattern; `spellings` are the alternatives of `$VALUE`.
    fn new(
        pattern: &'static str,
        facet: Facet,
        value: &'static str,
        spellings: &'static str,
    ) -> Self {
        let mut phrase = Self {
            before: None,
            elements: Vec::new(),
            after: None,
            start: PhraseStart::Anywhere,
            end: PhraseEnd::Connection,
            facet,
            value,
        };
        for word in pattern.split(' ') {
            match word {
                "," => phrase.start = PhraseStart::AfterPunctuation,
                "^" => phrase.start = PhraseStart::Text,
                "." => phrase.end = PhraseEnd::Clause,
                "*" => phrase.end = PhraseEnd::Anything,
                _ => match word
                    .strip_prefix('[')
                    .and_then(|word| word.strip_suffix(']'))
                {
                    Some(context) if phrase.elements.is_empty() => {
                        phrase.before = Some(PatternElement::new(context, spellings));
                    }
                    Some(context) => phrase.after = Some(PatternElement::new(context, spellings)),
                    None => phrase.elements.push(PatternElement::new(word, spellings)),
                },
            }
        }
        phrase
    }

    /// The longest match of the phrase whose own words begin at this position; returns the position after them.
    fn match_at(&self, words: &[QuestionWord], start: usize) -> Option<usize> {
        let begins = match self.start {
            PhraseStart::Anywhere => true,
            PhraseStart::AfterPunctuation => start > 0 && words[start].after_break,
            PhraseStart::Text => start == 0,
        };
        if !begins {
            return None;
        }
        let stands_before = |element: &PatternElement| {
            let mut alternatives = element.alternatives.iter();
            alternatives.any(|alternative| {
                let begin = start.checked_sub(alternative.len());
                begin.is_some_and(|begin| is_run(words, begin, alternative, false))
            })
        };
        if self
            .before
            .as_ref()
            .is_some_and(|element| !stands_before(element))
        {
            return None;
        }
        match_elements(&self.elements, words, start, true, &|end| {
            self.can_end(words, end)
        })
    }

    /// Whether what stands from this position on may follow the phrase.
    fn can_end(&self, words: &[QuestionWord], end: usize) -> bool {
        let Some(after) = &self.after else {
            return self.end.allows(words.get(end));
        };
        let mut alternatives = after.alternatives.iter();
        alternatives.any(|alternative| {
            is_run(words, end, alternative, false)
                && self.end.allows(words.get(end + alternative.len()))
        })
    }
}

impl PhraseEnd {
    fn allows(self, next: Option<&QuestionWord>) -> bool {
        let Some(next) = next else {
            return true;
        };
        if next.after_break || next.is_opaque {
            return true;
        }
        let word = next.lower.as_str();
        match self {
            Self::Anything => true,
            Self::Clause => is_in(word, CLAUSE_WORDS),
            Self::Connection => is_in(word, CLAUSE_WORDS) || is_in(word, CONNECTING_WORDS),
        }
    }
}

impl PatternElement {
    fn new(text: &'static str, spellings: &'static str) -> Self {
        let required = text.strip_suffix('?');
        let mut element = Self {
            alternatives: Vec::new(),
            is_optional: required.is_some(),
        };
        for alternative in required.unwrap_or(text).split('|') {
            let list = WORD_LISTS.iter().find(|(name, _)| *name == alternative);
            let listed = match (alternative, list) {
                ("$VALUE", _) => spellings,
                (_, Some((_, listed))) => *listed,
                (_, None) => alternative,
            };
            let rows = listed
                .split('|')
                .map(|row| row.split('_').collect::<Vec<_>>());
            element.alternatives.extend(rows);
        }
        // The longest alternative first, so that nothing of a phrase is left over.
        element
            .alternatives
            .sort_by_key(|row| std::cmp::Reverse(row.len()));
        element
    }
}

/// Matches the elements of a phrase one after another; returns the position after them if `accepts` accepts it.
fn match_elements(
    elements: &[PatternElement],
    words: &[QuestionWord],
    at: usize,
    is_first: bool,
    accepts: &dyn Fn(usize) -> bool,
) -> Option<usize> {
    let Some((element, rest)) = elements.split_first() else {
        return accepts(at).then_some(at);
    };
    for alternative in &element.alternatives {
        if is_run(words, at, alternative, !is_first)
            && let Some(end) = match_elements(rest, words, at + alternative.len(), false, accepts)
        {
            return Some(end);
        }
    }
    match element.is_optional {
        true => match_elements(rest, words, at, is_first, accepts),
        false => None,
    }
}

/// Whether these words stand at a position without punctuation between them, nor before them if they are `joined`.
fn is_run(words: &[QuestionWord], at: usize, run: &[&str], joined: bool) -> bool {
    let Some(found) = words.get(at..at + run.len()) else {
        return false;
    };
    found
        .iter()
        .zip(run)
        .enumerate()
        .all(|(index, (word, expected))| {
            let adjacent = !word.after_break || (index == 0 && !joined);
            adjacent && !word.is_opaque && word.lower == *expected
        })
}

/// The phrases of a question in order, at most one for each facet and none for a facet that `is_given`.
pub(super) fn find_phrases(
    words: &[QuestionWord],
    is_given: impl Fn(Facet) -> bool,
    max_phrases: usize,
) -> Vec<FoundPhrase> {
    let mut found: Vec<FoundPhrase> = Vec::new();
    let mut facets = HashSet::new();
    let mut start = 0;
    while start < words.len() && found.len() < max_phrases {
        let phrase = longest_phrase_at(words, start)
            .filter(|phrase| is_unambiguous(words, &phrase.words))
            .filter(|phrase| !is_given(phrase.facet) && !facets.contains(&phrase.facet));
        start += 1;
        if let Some(phrase) = phrase {
            facets.insert(phrase.facet);
            start = phrase.words.end;
            found.push(phrase);
        }
    }
    found
}

fn longest_phrase_at(words: &[QuestionWord], start: usize) -> Option<FoundPhrase> {
    let matches = COMPILED_PHRASES.iter().filter_map(|phrase| {
        let end = phrase.match_at(words, start)?;
        Some(FoundPhrase {
            words: start..end,
            facet: phrase.facet,
            value: phrase.value,
        })
    });
    matches.max_by_key(|phrase| phrase.words.end)
}

/// Whether the words around a phrase neither negate it, nor make it an alternative or part of the task.
fn is_unambiguous(words: &[QuestionWord], phrase: &Range<usize>) -> bool {
    let is_alternative = |word: &QuestionWord| is_in(&word.lower, ALTERNATIVE_WORDS);
    if words.get(phrase.end).is_some_and(is_alternative) {
        return false;
    }
    let first = &words[phrase.start];
    let previous = phrase.start.checked_sub(1).map(|position| &words[position]);
    let Some(previous) = previous.filter(|_| !first.after_break) else {
        return true;
    };
    let previous_word = previous.lower.as_str();
    let opens_task = is_in(&first.lower, TASK_OPENERS) && is_in(previous_word, TASK_WORDS);
    let is_negation = is_in(previous_word, NEGATIONS) || previous_word.ends_with("n't");
    !is_alternative(previous) && !is_negation && !opens_task
}
