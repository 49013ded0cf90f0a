//! Facet counts by intersecting the set of matches with the precomputed holders of frequent values.

use std::collections::BTreeSet;
use std::sync::Arc;

use tantivy::{InvertedIndexReader, Term};

use super::super::answer::FacetCounts;
use super::super::bits::Bits;
use super::column::SegmentFacet;
use super::frequent::{FacetValues, FrequentValue, among};
use super::shown::TopValues;

/// Total number of candidate values that small segments contribute; each is then looked up in the large segments.
const CANDIDATES: usize = 4_096;

/// The matches of a large segment.
pub(super) struct LargeMatches<'a> {
    /// Position of this segment among the large segments.
    pub segment: usize,
    pub agents: &'a Bits,
    /// The inverted index of the facet's field.
    pub index: Arc<InvertedIndexReader>,
}

/// Facet counts over large segments, given as sets, and small segments, which are counted already. `None` if the
/// precomputed values do not suffice: a value that was not counted could still belong to the shown ones.
pub(super) fn counts(
    values: &FacetValues,
    large: &[LargeMatches<'_>],
    small: &[SegmentFacet],
    term: impl Fn(&str) -> Term,
) -> tantivy::Result<Option<FacetCounts>> {
    let (candidates, most_elsewhere) = candidates(small)?;
    let mut shown = TopValues::default();
    let mut looked_at: BTreeSet<&[u8]> = BTreeSet::new();
    let mut ranked = values.ranked.iter();
    let next = loop {
        let Some(value) = ranked.next() else {
            let left_out = values.left_out.as_ref();
            break left_out.map(|(text, agents)| (text.as_slice(), *agents));
        };
        if shown.certain(value.agents + most_elsewhere, &value.text) {
            break Some((value.text.as_slice(), value.agents));
        }
        let count = in_large(value, large)? + in_small(&value.text, small)?;
        shown.offer(&value.text, count);
        if candidates.contains(&value.text) {
            looked_at.insert(&value.text);
        }
    };
    let most_in_large = next.map_or(0, |(_, agents)| agents);
    for candidate in &candidates {
        if looked_at.contains(candidate.as_slice()) {
            continue;
        }
        let mut count = in_small(candidate, small)?;
        if shown.certain(count + most_in_large, candidate) {
            continue;
        }
        // The values are valid UTF-8, because the field is indexed as text.
        let term = term(&String::from_utf8_lossy(candidate));
        for matches in large {
            if let Some(info) = matches.index.get_term_info(&term)? {
                count += among(&info, matches.agents, &matches.index)?;
            }
        }
        shown.offer(candidate, count);
    }
    // A value that was not counted occurs at most `most_elsewhere` times in the small segments together.
    let certain = match next {
        Some((text, agents)) => shown.certain(agents + most_elsewhere, text),
        None => most_elsewhere == 0 || shown.certain(most_elsewhere, &[]),
    };
    if !certain {
        return Ok(None);
    }
    let sum = sum(values, large, small);
    let values = shown.finish();
    let in_shown: u64 = values.iter().map(|(_, count)| count).sum();
    Ok(Some(FacetCounts {
        values,
        other_count: sum - in_shown,
    }))
}

/// Total number of values over all matches; an agent with three values counts three times.
fn sum(values: &FacetValues, large: &[LargeMatches<'_>], small: &[SegmentFacet]) -> u64 {
    let in_sets = large.iter().filter_map(|matches| {
        let carried = values.carried.get(matches.segment)?;
        Some(carried.sum(matches.agents))
    });
    in_sets.sum::<u64>() + small.iter().map(SegmentFacet::sum).sum::<u64>()
}

/// The most frequent values of each small segment, and the highest total that any other value can reach in these
/// segments.
fn candidates(small: &[SegmentFacet]) -> std::io::Result<(BTreeSet<Vec<u8>>, u64)> {
    let mut candidates = BTreeSet::new();
    let mut most_elsewhere = 0;
    // Most often these are all values, so no value is left with only an upper bound.
    let limit = CANDIDATES / small.len().max(1);
    for segment in small {
        most_elsewhere += segment.most_frequent(limit, |text| {
            candidates.insert(text.to_owned());
        })?;
    }
    Ok((candidates, most_elsewhere))
}

fn in_large(value: &FrequentValue, large: &[LargeMatches<'_>]) -> tantivy::Result<u64> {
    let counts = large
        .iter()
        .map(|matches| value.among(matches.segment, matches.agents, &matches.index));
    counts.sum()
}

fn in_small(value: &[u8], small: &[SegmentFacet]) -> std::io::Result<u64> {
    small.iter().map(|segment| segment.count_of(value)).sum()
}
