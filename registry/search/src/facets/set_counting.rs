//! Facet counts by set: intersects the matches with the precomputed agents of frequent values.

use std::io;
use std::sync::Arc;

use tantivy::InvertedIndexReader;

use super::super::doc_bit_set::DocBitSet;
use super::super::response::{FacetCounts, MAX_FACET_VALUES};
use super::column_counting::{CountedValues, FacetCounter, merge_counted_values};
use super::precomputed::{FrequentValue, PrecomputedValues};
use super::top_values::TopValues;

pub(super) struct LargeSegmentMatchSet<'a> {
    /// Position of this segment among the large segments.
    pub large_index: usize,
    pub agents: &'a DocBitSet,
    pub index: Arc<InvertedIndexReader>,
}

/// The counts of one facet summed over all small segments.
struct SmallSegmentCounts<'a> {
    values: &'a PrecomputedValues,
    segments: &'a [FacetCounter],
    /// Counts of the precomputed values by rank.
    counts_by_rank: Vec<u32>,
    /// The highest count of any other value.
    max_unranked_count: u64,
}

impl<'a> SmallSegmentCounts<'a> {
    fn new(values: &'a PrecomputedValues, segments: &'a [FacetCounter]) -> io::Result<Self> {
        let mut counts_by_rank = vec![0_u32; values.ranked.len()];
        let mut max_unranked_count = 0;
        for segment in segments {
            let most = segment
                .add_counts_by_index(segment.precomputed_ranks(values)?, &mut counts_by_rank);
            max_unranked_count += u64::from(most);
        }
        Ok(Self {
            values,
            segments,
            counts_by_rank,
            max_unranked_count,
        })
    }

    /// The values that are not precomputed, as counted in each segment.
    fn unranked_values(&self) -> io::Result<Vec<CountedValues>> {
        let segments = self.segments.iter();
        segments
            .map(|segment| segment.values_without_index(segment.precomputed_ranks(self.values)?))
            .collect()
    }
}

/// Counts a facet over large segments, given as sets, and small segments, which are counted already. `None` if the
/// precomputed values do not suffice, because an uncounted value could still be among the shown ones; or if counting
/// all values of the matches would be faster, at `nanos_per_value` each.
pub(super) fn count_facet_by_sets(
    values: &PrecomputedValues,
    large: &[LargeSegmentMatchSet<'_>],
    small: &[FacetCounter],
    nanos_per_value: u64,
) -> tantivy::Result<Option<FacetCounts>> {
    let large_totals = large.iter().filter_map(|matches| {
        let carried = values.values_per_agent.get(matches.large_index)?;
        Some(carried.sum(matches.agents))
    });
    let large_total: u64 = large_totals.sum();
    let max_nanos = large_total.saturating_mul(nanos_per_value);
    // At least this many values are counted.
    let first = values.ranked.iter().take(MAX_FACET_VALUES);
    if first.map(FrequentValue::counting_nanos).sum::<u64>() > max_nanos {
        return Ok(None);
    }
    let small = SmallSegmentCounts::new(values, small)?;
    let mut top_values = TopValues::default();
    let enough = offer_precomputed_values(values, large, &small, max_nanos, &mut top_values)?
        && offer_small_segment_values(&small, &mut top_values)?;
    // A value that is neither precomputed nor in a small segment ranks no higher than this one.
    let left_out = values.best_omitted.as_ref();
    if !enough || left_out.is_some_and(|(text, agents)| !top_values.excludes(*agents, text)) {
        return Ok(None);
    }
    let in_small: u64 = small.segments.iter().map(FacetCounter::total).sum();
    Ok(Some(top_values.into_counts(large_total + in_small)))
}

/// Counts the precomputed values that may be shown; returns whether this took at most `max_nanos` nanoseconds.
fn offer_precomputed_values(
    values: &PrecomputedValues,
    large: &[LargeSegmentMatchSet<'_>],
    small: &SmallSegmentCounts<'_>,
    max_nanos: u64,
    top_values: &mut TopValues,
) -> tantivy::Result<bool> {
    let mut nanos_left = max_nanos;
    let mut offer =
        |value: &FrequentValue, in_small: u32, shown: &mut TopValues| -> tantivy::Result<bool> {
            let Some(rest) = nanos_left.checked_sub(value.counting_nanos()) else {
                return Ok(false);
            };
            nanos_left = rest;
            let in_large = count_in_large_segments(value, large)?;
            shown.offer(&value.text, in_large + u64::from(in_small));
            Ok(true)
        };
    let mut ranked = values.ranked.iter().zip(&small.counts_by_rank).peekable();
    // From the first value that is too rare in the large segments on, only values that are also in small segments can
    // still be shown.
    while let Some((value, in_small)) =
        ranked.next_if(|(value, _)| !top_values.excludes(value.agent_count, &value.text))
    {
        if !offer(value, *in_small, top_values)? {
            return Ok(false);
        }
    }
    for (value, in_small) in ranked.filter(|(_, in_small)| **in_small > 0) {
        let most = value.agent_count + u64::from(*in_small);
        if !top_values.excludes(most, &value.text) && !offer(value, *in_small, top_values)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Counts the other values of small segments that may be shown; returns whether none of them must also be counted in
/// the large segments.
fn offer_small_segment_values(
    small: &SmallSegmentCounts<'_>,
    top_values: &mut TopValues,
) -> io::Result<bool> {
    let left_out = small.values.best_omitted.as_ref();
    let most = small.max_unranked_count + left_out.map_or(0, |(_, agents)| *agents);
    if small.max_unranked_count == 0 || top_values.min_count().is_some_and(|least| least > most) {
        return Ok(true);
    }
    if left_out.is_some() {
        return Ok(false);
    }
    merge_counted_values(&small.unranked_values()?, |text, count| {
        top_values.offer(text, count)
    });
    Ok(true)
}

fn count_in_large_segments(
    value: &FrequentValue,
    large: &[LargeSegmentMatchSet<'_>],
) -> tantivy::Result<u64> {
    let counts = large
        .iter()
        .map(|matches| value.count_in(matches.large_index, matches.agents, &matches.index));
    counts.sum()
}
