//! Suggestions: completion of names, skills and tags from a prefix.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::ops::Range;

use tantivy::SegmentReader;
use tantivy::postings::TermInfo;
use tantivy::schema::IndexRecordOption;

use super::Index;
use super::answer::{Suggestion, SuggestionKind};
use super::bits::SeenBits;
use super::error::IndexError;
use super::folding::fold;
use super::keys::{KIND_BYTES, KeyKind, Keys};
use super::schema::SUGGESTION_MARK;
use super::seen::{BegunValues, FirstTerms, SeenAgents, SegmentTerm};

const MAX_SUGGESTIONS: usize = 50;

/// The longest prefix, in bytes of its folded form; a longer one has no completions.
const MAX_PREFIX: usize = 256;

/// Kinds of suggestions, each with the most visible values that are counted, in alphabetical order. Names are nearly
/// all distinct, so the first ones suffice; only a prefix too short to be useful has more skills or tags.
const KINDS: [(SuggestionKind, usize); 3] = [
    (SuggestionKind::Name, 250),
    (SuggestionKind::Skill, 1_000),
    (SuggestionKind::Tag, 1_000),
];

struct ValuePlace {
    segment: usize,
    postings: TermInfo,
    /// Ranges of the folded form and of the text as written, in the bytes of all keys.
    folded: Range<usize>,
    shown: Range<usize>,
}

/// Values of one kind that have the prefix.
struct PrefixValues {
    bytes: String,
    places: Vec<ValuePlace>,
}

/// A completion, and the folded form that decides between equal counts.
struct FoundSuggestion {
    folded: String,
    suggestion: Suggestion,
}

impl FoundSuggestion {
    fn order(&self, other: &Self) -> Ordering {
        let (left, right) = (&self.suggestion, &other.suggestion);
        right
            .count
            .cmp(&left.count)
            .then_with(|| self.folded.cmp(&other.folded))
            .then_with(|| left.kind.cmp(&right.kind))
    }
}

impl Index {
    /// Completes `prefix`, ignoring case and accents: the most frequent values first, equally frequent ones by text.
    /// Values that differ only in case or accents are merged, and shown in their most frequent spelling. Only agents
    /// that a search without filters would find count.
    ///
    /// # Errors
    /// The errors of [`search`](Self::search); [`IndexError::TooMany`] beyond 50 completions.
    pub fn suggest(
        &self,
        prefix: &str,
        visible_to: &[String],
        limit: usize,
    ) -> Result<Vec<Suggestion>, IndexError> {
        if limit > MAX_SUGGESTIONS {
            return Err(IndexError::TooMany {
                what: "suggestions",
                limit: MAX_SUGGESTIONS,
            });
        }
        let prefix = fold(prefix.trim_start());
        if prefix.is_empty()
            || prefix.len() > MAX_PREFIX
            || prefix.contains(SUGGESTION_MARK)
            || limit == 0
        {
            return Ok(Vec::new());
        }
        let inner = &*self.0;
        let keys = inner.fields.keys;
        let view = inner.view()?;
        let mut seen = inner.visible_agents(&view, visible_to)?;
        let seen = seen.agents(&view.searcher)?;
        let segments: Vec<(&SegmentReader, &SeenBits)> = seen.readers().collect();

        let mut found: Vec<FoundSuggestion> = Vec::new();
        for (kind, most) in KINDS {
            let values = values(&seen, keys, kind, &prefix, most)?;
            let count = |group: &[ValuePlace]| count(&segments, keys, &values.bytes, group);
            keep_most_frequent(&mut found, limit, kind, &values, count)?;
        }
        Ok(found.into_iter().map(|found| found.suggestion).collect())
    }
}

/// Merges the values of a kind into the `limit` most frequent ones found so far.
fn keep_most_frequent(
    found: &mut Vec<FoundSuggestion>,
    limit: usize,
    kind: SuggestionKind,
    PrefixValues { bytes, places }: &PrefixValues,
    count: impl Fn(&[ValuePlace]) -> tantivy::Result<Option<(String, u64)>>,
) -> Result<(), IndexError> {
    let bound = |group: &[ValuePlace]| -> u64 {
        group
            .iter()
            .map(|place| u64::from(place.postings.doc_freq))
            .sum()
    };
    let mut groups: Vec<(u64, &[ValuePlace])> = places
        .chunk_by(|left, right| bytes[left.folded.clone()] == bytes[right.folded.clone()])
        .map(|group| (bound(group), group))
        .collect();
    // The sort is stable, so groups with equal bounds stay ordered by their folded forms.
    groups.sort_by_key(|(bound, _)| Reverse(*bound));
    for (bound, group) in groups {
        let folded = group
            .first()
            .map_or("", |place| &bytes[place.folded.clone()]);
        // No group counts more than its bound, so the walk ends at a group that would come after the last kept
        // completion even with that count.
        if let Some(last) = found.get(limit - 1)
            && (bound, Reverse(folded)) < (last.suggestion.count, Reverse(&last.folded))
        {
            break;
        }
        if let Some((text, count)) = count(group)? {
            let one = FoundSuggestion {
                folded: folded.to_owned(),
                suggestion: Suggestion { text, kind, count },
            };
            let at = found.partition_point(|kept| kept.order(&one).is_lt());
            found.insert(at, one);
            found.truncate(limit);
        }
    }
    Ok(())
}

fn values(
    seen: &SeenAgents<'_>,
    keys: Keys,
    kind: SuggestionKind,
    prefix: &str,
    most: usize,
) -> Result<PrefixValues, IndexError> {
    let kind = KeyKind::Suggestion(kind);
    let values = BegunValues {
        kind,
        begun: prefix,
    };
    let first = kind.key(prefix);
    let FirstTerms { bytes, terms, .. } =
        seen.first_terms(keys.field(), Some(values), most, |terms, found| {
            let mut begun = terms.range().ge(&first).into_stream()?;
            while begun.advance()
                && begun.key().starts_with(first.as_bytes())
                && found(begun.key(), begun.value())?
            {}
            Ok(())
        })?;
    let mut places: Vec<ValuePlace> = terms
        .into_iter()
        .filter_map(
            |SegmentTerm {
                 segment,
                 info,
                 text,
             }| {
                let mark = text.start + bytes[text.clone()].find(SUGGESTION_MARK)?;
                Some(ValuePlace {
                    segment,
                    postings: info,
                    folded: text.start + KIND_BYTES..mark,
                    shown: mark + SUGGESTION_MARK.len_utf8()..text.end,
                })
            },
        )
        .collect();
    let folded = |place: &ValuePlace| &bytes[place.folded.clone()];
    places.sort_by(|left, right| (folded(left), left.segment).cmp(&(folded(right), right.segment)));
    Ok(PrefixValues { bytes, places })
}

/// Number of agents of the sets that have a value, and its most frequent spelling; `None` if no agent has it.
fn count(
    segments: &[(&SegmentReader, &SeenBits)],
    keys: Keys,
    bytes: &str,
    group: &[ValuePlace],
) -> tantivy::Result<Option<(String, u64)>> {
    let mut spellings: BTreeMap<&str, u64> = BTreeMap::new();
    let mut total = 0;
    // A group is sorted by segment.
    for places in group.chunk_by(|left, right| left.segment == right.segment) {
        let Some((reader, seen)) = places.first().and_then(|place| segments.get(place.segment))
        else {
            continue;
        };
        let index = keys.index(reader)?;
        // With a single spelling no agent can be counted twice.
        if let [place] = places {
            let holders = u64::from(seen.holders(&index, &place.postings, u32::MAX)?);
            if holders > 0 {
                *spellings.entry(&bytes[place.shown.clone()]).or_default() += holders;
                total += holders;
            }
            continue;
        }
        let mut documents = Vec::new();
        for place in places {
            let postings =
                index.read_postings_from_terminfo(&place.postings, IndexRecordOption::Basic)?;
            for document in seen.among(postings) {
                *spellings.entry(&bytes[place.shown.clone()]).or_default() += 1;
                documents.push(document);
            }
        }
        documents.sort_unstable();
        documents.dedup();
        total += documents.len() as u64;
    }
    let most = spellings.values().copied().max();
    let shown = spellings
        .into_iter()
        .find(|(_, count)| Some(*count) == most);
    Ok(shown.map(|(shown, _)| (shown.to_owned(), total)))
}
