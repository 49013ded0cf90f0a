//! Filters and exclusions that a question states in words, such as `without login` or `but not zendesk`.
//!
//! Only explicit phrases are understood; everything else stays text. An understood phrase sets a parameter that the
//! caller could have set, so it never finds more than the parameters of a request can.

mod exclusions;
mod matching;
mod phrases;
#[cfg(test)]
mod tests;
mod words;

use std::ops::Range;

use a2a_registry_api::search_query::SearchQuery;
use a2a_registry_api::{Understood, UnderstoodPart};
use a2a_registry_domain::facet::Facet;

use self::exclusions::find_exclusions;
use self::matching::find_phrases;
use self::words::{QuestionWord, is_in, split_question};
use crate::config::LimitsConfig;
use crate::search::query::filter_value_count;

/// Maximum number of understood parts of a question.
const MAX_PARTS: usize = 8;

/// The parameter to which exclusions belong.
const TEXT_PARAMETER: &str = "q";

/// Words directly before a part that connect it with the text and mean nothing without it.
const LEADING_WORDS: &str = "\
    and but also that which who is are it has have having with on over in for using speaks speaking supports \
    supporting must should be can und aber mit die der y con que et avec qui mais";
/// Words that say nothing about what an agent does. A question that consists of them, besides its parts, has no text.
const EMPTY_WORDS: &str = "\
    agent agents a an the any all some every me my i we us you find show list give get need want looking search \
    for of to is are there which that who what please with and but can do does have has it only be in";

/// A query whose text has understood parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnderstoodQuery {
    /// The query with the parts as parameters, which is not to be understood again.
    pub query: SearchQuery,
    pub understood: Understood,
}

/// A part of a question that stands for a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
struct QuestionPart {
    /// The bytes of its words.
    words: Range<usize>,
    /// The bytes that are removed with it.
    removed: Range<usize>,
    effect: PartEffect,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PartEffect {
    Filter(Facet, &'static str),
    /// Exclusions in the syntax of queries.
    Exclusion(String),
}

/// Understands the text of a query; `None` if it has no such parts, if `understand` is false, or if it is too long.
/// A filter that the query has is not set again, and no more filters are set than the limits allow.
pub fn understand_query(query: &SearchQuery, limits: &LimitsConfig) -> Option<UnderstoodQuery> {
    let text = query.q.as_deref()?;
    let is_too_long = text.trim().chars().nth(limits.query_chars).is_some();
    if query.understand == Some(false) || is_too_long {
        return None;
    }
    let room = limits.filters.saturating_sub(filter_value_count(query));
    let parts = read_question(query, text, room.min(MAX_PARTS));
    if parts.is_empty() {
        return None;
    }
    let applied = apply_parts(query, text, &parts);
    let understood = Understood {
        q: applied.q.clone().unwrap_or_default(),
        parts: parts.iter().map(|part| part.to_view(text)).collect(),
    };
    Some(UnderstoodQuery {
        query: applied,
        understood,
    })
}

/// The query in which one of its understood parts is text again and the others are parameters. `None` if it has no
/// part at this place.
pub fn query_with_part_as_text(
    query: &SearchQuery,
    understood: &Understood,
    place: usize,
) -> Option<SearchQuery> {
    let text = query.q.as_deref()?;
    let mut parts = read_question(query, text, understood.parts.len());
    if place >= parts.len() {
        return None;
    }
    parts.remove(place);
    Some(apply_parts(query, text, &parts))
}

/// The parts of a question in order, at most `max_parts`.
fn read_question(query: &SearchQuery, text: &str, max_parts: usize) -> Vec<QuestionPart> {
    let words = split_question(text);
    let is_given = |facet: Facet| !query.filter_values(facet).is_empty();
    let phrases = find_phrases(&words, is_given, max_parts);
    let taken: Vec<Range<usize>> = phrases.iter().map(|phrase| phrase.words.clone()).collect();
    let exclusions = find_exclusions(&words, &taken, max_parts - phrases.len());
    let filters = phrases
        .into_iter()
        .map(|phrase| (phrase.words, PartEffect::Filter(phrase.facet, phrase.value)));
    let exclusions = exclusions.into_iter().map(|exclusion| {
        let names = exclusion.names.iter();
        let names = names.map(|name| exclusion_syntax(text, &words[name.clone()]));
        let effect = PartEffect::Exclusion(names.collect::<Vec<_>>().join(" "));
        (exclusion.words, effect)
    });
    let mut parts: Vec<(Range<usize>, PartEffect)> = filters.chain(exclusions).collect();
    parts.sort_by_key(|(places, _)| places.start);
    let mut parts_end = 0;
    let parts = parts.into_iter().map(|(places, effect)| {
        let leading = leading_word_count(&words[parts_end..places.start], &words[places.start]);
        let first_removed = places.start - leading;
        let end = words[places.end - 1].range.end;
        parts_end = places.end;
        QuestionPart {
            words: words[places.start].range.start..end,
            removed: words[first_removed].range.start..end,
            effect,
        }
    });
    parts.collect()
}

/// The number of words at the end of `before` that are removed with the part that begins with this word.
fn leading_word_count(before: &[QuestionWord], first: &QuestionWord) -> usize {
    let mut next = first;
    let leading = before.iter().rev().take_while(|word| {
        let is_leading = !next.after_break && !word.is_opaque && is_in(&word.lower, LEADING_WORDS);
        next = *word;
        is_leading
    });
    leading.count()
}

/// `-name`, or `-"a name"` for several words.
fn exclusion_syntax(text: &str, name: &[QuestionWord]) -> String {
    match name {
        [word] => format!("-{}", &text[word.range.clone()]),
        words => {
            let words = words.iter().map(|word| &text[word.range.clone()]);
            format!("-\"{}\"", words.collect::<Vec<_>>().join(" "))
        }
    }
}

/// The query with these parts as parameters and the rest of the text.
fn apply_parts(query: &SearchQuery, text: &str, parts: &[QuestionPart]) -> SearchQuery {
    let rest = remaining_text(text, parts);
    let mut texts = vec![rest];
    let mut applied = query.clone();
    applied.understand = Some(false);
    for part in parts {
        match &part.effect {
            PartEffect::Filter(facet, value) => {
                set_filter(&mut applied, *facet, (*value).to_owned());
            }
            PartEffect::Exclusion(syntax) => texts.push(syntax.clone()),
        }
    }
    texts.retain(|text| !text.is_empty());
    applied.q = (!texts.is_empty()).then(|| texts.join(" "));
    applied
}

/// The text without these parts and the punctuation beside them; empty if the rest says nothing about an agent.
fn remaining_text(text: &str, parts: &[QuestionPart]) -> String {
    let mut pieces = Vec::new();
    let mut start = 0;
    let ends = parts.iter().map(|part| part.removed.clone());
    for removed in ends.chain(std::iter::once(text.len()..text.len())) {
        let mut piece = &text[start..removed.start];
        if start > 0 {
            piece = piece.trim_start_matches([',', ';', '.', ':', '!', '?', ')']);
        }
        if removed.start < text.len() {
            piece = piece.trim_end().trim_end_matches([',', ';', ':', '(']);
        }
        pieces.push(piece.trim());
        start = removed.end;
    }
    pieces.retain(|piece| piece.contains(char::is_alphanumeric));
    let rest = pieces.join(" ");
    let is_empty = |word: &QuestionWord| !word.is_opaque && is_in(&word.lower, EMPTY_WORDS);
    match !parts.is_empty() && split_question(&rest).iter().all(is_empty) {
        true => String::new(),
        false => rest,
    }
}

/// Sets a filter that the query does not have.
fn set_filter(query: &mut SearchQuery, facet: Facet, value: String) {
    let values = match facet {
        Facet::Trust => {
            query.trust = Some(value);
            return;
        }
        Facet::Auth => &mut query.auth,
        Facet::Binding => &mut query.binding,
        Facet::Capability => &mut query.capability,
        Facet::InputMode => &mut query.input_mode,
        Facet::OutputMode => &mut query.output_mode,
        Facet::ProtocolVersion => &mut query.protocol_version,
        Facet::Signature => &mut query.signature,
        Facet::Tag
        | Facet::Skill
        | Facet::Provider
        | Facet::Domain
        | Facet::Label
        | Facet::Lifecycle
        | Facet::Liveness
        | Facet::Unmanaged
        | Facet::Endpoint => return,
    };
    values.push(value);
}

impl QuestionPart {
    fn to_view(&self, text: &str) -> UnderstoodPart {
        let (parameter, value) = match &self.effect {
            PartEffect::Filter(facet, value) => (facet.as_str(), *value),
            PartEffect::Exclusion(syntax) => (TEXT_PARAMETER, syntax.as_str()),
        };
        UnderstoodPart {
            text: text[self.words.clone()].to_owned(),
            parameter: parameter.to_owned(),
            value: value.to_owned(),
        }
    }
}
