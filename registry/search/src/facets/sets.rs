//! Facet counts by intersecting the set of matches with the precomputed holders of frequent values.

use std::io;
use std::sync::Arc;

use tantivy::InvertedIndexReader;

use super::super::answer::{FACET_VALUES, FacetCounts};
use super::super::bits::Bits;
use super::column::{ColumnValues, SegmentFacet, add_up};
use super::frequent::{FacetValues, FrequentValue};
use super::shown::TopValues;

pub(super) struct LargeMatches<'a> {
    /// Position of this segment among the large segments.
    pub segment: usize,
    pub agents: &'a Bits,
    pub index: Arc<InvertedIndexReader>,
}

/// The counts of one facet over all small segments together.
struct SmallCounts<'a> {
    values: &'a FacetValues,
    segments: &'a [SegmentFacet],
    /// Counts of the precomputed values, by rank.
    ranked: Vec<u32>,
    /// No other value occurs more often.
    most_unranked: u64,
}

impl<'a> SmallCounts<'a> {
    fn new(values: &'a FacetValues, segments: &'a [SegmentFacet]) -> io::Result<Self> {
        let mut ranked = vec![0_u32; values.ranked.len()];
        let mut most_unranked = 0;
        for segment in segments {
            let most = segment.add_marked(segment.ranks(values)?, &mut ranked);
            most_unranked += u64::from(most);
        }
        Ok(Self {
            values,
            segments,
            ranked,
            most_unranked,
        })
    }

    /// The values that are not precomputed, as counted in each segment.
    fn unranked(&self) -> io::Result<Vec<ColumnValues>> {
        let segments = self.segments.iter();
        segments
            .map(|segment| segment.unmarked(segment.ranks(self.values)?))
            .collect()
    }
}

/// Facet counts over large segments, given as sets, and small segments, which are counted already. `None` if the
/// precomputed values do not suffice, because a value that was not counted could still belong to the shown ones; or if
/// counting all values of the matches would be faster, which takes `nanos` nanoseconds for each.
pub(super) fn counts(
    values: &FacetValues,
    large: &[LargeMatches<'_>],
    small: &[SegmentFacet],
    nanos: u64,
) -> tantivy::Result<Option<FacetCounts>> {
    let in_large = large.iter().filter_map(|matches| {
        let carried = values.carried.get(matches.segment)?;
        Some(carried.sum(matches.agents))
    });
    let in_large: u64 = in_large.sum();
    let most_nanos = in_large.saturating_mul(nanos);
    // So many values are counted in any case.
    let first = values.ranked.iter().take(FACET_VALUES);
    if first.map(FrequentValue::nanos).sum::<u64>() > most_nanos {
        return Ok(None);
    }
    let small = SmallCounts::new(values, small)?;
    let mut shown = TopValues::default();
    let enough = offer_ranked(values, large, &small, most_nanos, &mut shown)?
        && offer_unranked(&small, &mut shown)?;
    // A value that was left out of the precomputed ones, and that no small segment has, ranks no higher than this one.
    let left_out = values.left_out.as_ref();
    if !enough || left_out.is_some_and(|(text, agents)| !shown.certain(*agents, text)) {
        return Ok(None);
    }
    let in_small: u64 = small.segments.iter().map(SegmentFacet::sum).sum();
    Ok(Some(shown.into_counts(in_large + in_small)))
}

/// Counts the precomputed values, as far as they may be shown; returns whether that was done within these nanoseconds.
fn offer_ranked(
    values: &FacetValues,
    large: &[LargeMatches<'_>],
    small: &SmallCounts<'_>,
    nanos: u64,
    shown: &mut TopValues,
) -> tantivy::Result<bool> {
    let mut left = nanos;
    let mut offer =
        |value: &FrequentValue, in_small: u32, shown: &mut TopValues| -> tantivy::Result<bool> {
            let Some(rest) = left.checked_sub(value.nanos()) else {
                return Ok(false);
            };
            left = rest;
            let in_large = in_large(value, large)?;
            shown.offer(&value.text, in_large + u64::from(in_small));
            Ok(true)
        };
    let mut ranked = values.ranked.iter().zip(&small.ranked).peekable();
    // From the first value on that is too rare in the large segments, the others are too: only those that small segments
    // have as well can still be shown.
    while let Some((value, in_small)) =
        ranked.next_if(|(value, _)| !shown.certain(value.agents, &value.text))
    {
        if !offer(value, *in_small, shown)? {
            return Ok(false);
        }
    }
    for (value, in_small) in ranked.filter(|(_, in_small)| **in_small > 0) {
        let most = value.agents + u64::from(*in_small);
        if !shown.certain(most, &value.text) && !offer(value, *in_small, shown)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Counts the other values of small segments, as far as they may be shown; returns whether none of them has to be counted in
/// the large segments too.
fn offer_unranked(small: &SmallCounts<'_>, shown: &mut TopValues) -> io::Result<bool> {
    let left_out = small.values.left_out.as_ref();
    let most = small.most_unranked + left_out.map_or(0, |(_, agents)| *agents);
    if small.most_unranked == 0 || shown.least().is_some_and(|least| least > most) {
        return Ok(true);
    }
    if left_out.is_some() {
        return Ok(false);
    }
    add_up(&small.unranked()?, |text, count| shown.offer(text, count));
    Ok(true)
}

fn in_large(value: &FrequentValue, large: &[LargeMatches<'_>]) -> tantivy::Result<u64> {
    let counts = large
        .iter()
        .map(|matches| value.among(matches.segment, matches.agents, &matches.index));
    counts.sum()
}
