//! Suggestions: completions of names, skills and tags from a prefix.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::ops::Range;

use tantivy::SegmentReader;
use tantivy::postings::TermInfo;
use tantivy::schema::IndexRecordOption;

use super::Index;
use super::doc_bit_set::VisibleDocs;
use super::error::IndexError;
use super::keys::{KIND_BYTES, KeyField, KeyKind, visit_prefixed_terms};
use super::response::Suggestion;
use super::schema::SUGGESTION_MARK;
use super::suggestion_kind::SuggestionKind;
use super::text_folding::fold_text;
use super::visible_agents::{FirstVisibleTerms, KeyPrefix, SegmentTerm, VisibleAgentSet};

const MAX_SUGGESTIONS: usize = 50;

/// The longest prefix, in bytes of its folded form; a longer one has no completions.
const MAX_PREFIX_BYTES: usize = 256;

/// Kinds of suggestions, each with the most visible values that are counted, in alphabetical order. Nearly all names
/// are distinct, so the first ones suffice; only a very short prefix has more skills or tags.
const KIND_LIMITS: [(SuggestionKind, usize); 3] = [
    (SuggestionKind::Name, 250),
    (SuggestionKind::Skill, 1_000),
    (SuggestionKind::Tag, 1_000),
];

struct SegmentSuggestion {
    segment: usize,
    postings: TermInfo,
    /// Ranges of the folded form and of the text as written, in the bytes of all keys.
    folded: Range<usize>,
    displayed: Range<usize>,
}

/// Values of one kind that have the prefix.
struct PrefixValues {
    bytes: String,
    values: Vec<SegmentSuggestion>,
}

/// A completion, with the folded form that orders equal counts.
struct RankedSuggestion {
    folded: String,
    suggestion: Suggestion,
}

impl RankedSuggestion {
    fn compare(&self, other: &Self) -> Ordering {
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
    /// Values that differ only in case or accents are merged and shown in their most frequent spelling. Only agents
    /// found by a search without filters count.
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
        let prefix = fold_text(prefix.trim_start());
        if prefix.is_empty()
            || prefix.len() > MAX_PREFIX_BYTES
            || prefix.contains(SUGGESTION_MARK)
            || limit == 0
        {
            return Ok(Vec::new());
        }
        let inner = &*self.0;
        let keys = inner.fields.keys;
        let view = inner.current_view()?;
        let mut lazy_agents = inner.visible_agents(&view, visible_to)?;
        let visible = lazy_agents.get_or_compute(&view.searcher)?;
        let segments: Vec<(&SegmentReader, &VisibleDocs)> = visible.segments_with_docs().collect();

        let mut suggestions: Vec<RankedSuggestion> = Vec::new();
        for (kind, most) in KIND_LIMITS {
            let values = find_prefixed_values(&visible, keys, kind, &prefix, most)?;
            let count = |group: &[SegmentSuggestion]| {
                count_and_choose_spelling(&segments, keys, &values.bytes, group)
            };
            merge_frequent_suggestions(&mut suggestions, limit, kind, &values, count)?;
        }
        Ok(suggestions
            .into_iter()
            .map(|found| found.suggestion)
            .collect())
    }
}

/// Merges the values of a kind into the `limit` most frequent ones found so far.
fn merge_frequent_suggestions(
    suggestions: &mut Vec<RankedSuggestion>,
    limit: usize,
    kind: SuggestionKind,
    PrefixValues {
        bytes,
        values: places,
    }: &PrefixValues,
    count_group: impl Fn(&[SegmentSuggestion]) -> tantivy::Result<Option<(String, u64)>>,
) -> Result<(), IndexError> {
    let max_count = |group: &[SegmentSuggestion]| -> u64 {
        group
            .iter()
            .map(|place| u64::from(place.postings.doc_freq))
            .sum()
    };
    let mut groups: Vec<(u64, &[SegmentSuggestion])> = places
        .chunk_by(|left, right| bytes[left.folded.clone()] == bytes[right.folded.clone()])
        .map(|group| (max_count(group), group))
        .collect();
    // The sort is stable, so groups with equal bounds stay ordered by their folded forms.
    groups.sort_by_key(|(bound, _)| Reverse(*bound));
    for (bound, group) in groups {
        let folded = group
            .first()
            .map_or("", |place| &bytes[place.folded.clone()]);
        // No group counts more than its bound, so the loop ends at a group that would come after the last kept
        // completion even with that count.
        if let Some(last) = suggestions.get(limit - 1)
            && (bound, Reverse(folded)) < (last.suggestion.count, Reverse(&last.folded))
        {
            break;
        }
        if let Some((text, count)) = count_group(group)? {
            let candidate = RankedSuggestion {
                folded: folded.to_owned(),
                suggestion: Suggestion { text, kind, count },
            };
            let at = suggestions.partition_point(|kept| kept.compare(&candidate).is_lt());
            suggestions.insert(at, candidate);
            suggestions.truncate(limit);
        }
    }
    Ok(())
}

fn find_prefixed_values(
    visible: &VisibleAgentSet<'_>,
    keys: KeyField,
    kind: SuggestionKind,
    prefix: &str,
    limit: usize,
) -> Result<PrefixValues, IndexError> {
    let kind = KeyKind::Suggestion(kind);
    let prefixed_keys = KeyPrefix { kind, prefix };
    let key_prefix = kind.encode(prefix);
    let FirstVisibleTerms { bytes, terms, .. } =
        visible.first_terms(keys.field(), Some(prefixed_keys), limit, |terms, found| {
            visit_prefixed_terms(terms, &key_prefix, found)
        })?;
    let mut segment_values: Vec<SegmentSuggestion> = terms
        .into_iter()
        .filter_map(
            |SegmentTerm {
                 segment,
                 info,
                 text,
             }| {
                let mark_offset = text.start + bytes[text.clone()].find(SUGGESTION_MARK)?;
                Some(SegmentSuggestion {
                    segment,
                    postings: info,
                    folded: text.start + KIND_BYTES..mark_offset,
                    displayed: mark_offset + SUGGESTION_MARK.len_utf8()..text.end,
                })
            },
        )
        .collect();
    let folded = |place: &SegmentSuggestion| &bytes[place.folded.clone()];
    segment_values
        .sort_by(|left, right| (folded(left), left.segment).cmp(&(folded(right), right.segment)));
    Ok(PrefixValues {
        bytes,
        values: segment_values,
    })
}

/// Number of agents of the sets that have a value, and its most frequent spelling; `None` if no agent has it.
fn count_and_choose_spelling(
    segments: &[(&SegmentReader, &VisibleDocs)],
    keys: KeyField,
    bytes: &str,
    group: &[SegmentSuggestion],
) -> tantivy::Result<Option<(String, u64)>> {
    let mut spellings: BTreeMap<&str, u64> = BTreeMap::new();
    let mut total = 0;
    // A group is sorted by segment.
    for places in group.chunk_by(|left, right| left.segment == right.segment) {
        let Some((reader, visible)) = places.first().and_then(|place| segments.get(place.segment))
        else {
            continue;
        };
        let index = keys.inverted_index(reader)?;
        // With a single spelling, no agent is counted twice.
        if let [place] = places {
            let holders = u64::from(visible.count_term_docs(&index, &place.postings, u32::MAX)?);
            if holders > 0 {
                *spellings
                    .entry(&bytes[place.displayed.clone()])
                    .or_default() += holders;
                total += holders;
            }
            continue;
        }
        let mut documents = Vec::new();
        for place in places {
            let postings =
                index.read_postings_from_terminfo(&place.postings, IndexRecordOption::Basic)?;
            for document in visible.intersect_postings(postings) {
                *spellings
                    .entry(&bytes[place.displayed.clone()])
                    .or_default() += 1;
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
