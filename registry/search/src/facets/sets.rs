//! Facet counts by intersecting the set of matches with the precomputed holders of frequent values.

use std::cmp::Reverse;
use std::io;
use std::sync::Arc;

use tantivy::{InvertedIndexReader, Term};

use super::super::answer::FacetCounts;
use super::super::bits::Bits;
use super::column::{ColumnValues, SegmentFacet, add_up};
use super::frequent::{FacetValues, FrequentValue, among};
use super::shown::TopValues;

/// The most values of small segments that are looked up in the dictionaries of the large ones. With more of them counting
/// match by match is faster.
const LOOKED_UP: usize = 512;

/// The matches of a large segment.
pub(super) struct LargeMatches<'a> {
    /// Position of this segment among the large segments.
    pub segment: usize,
    pub agents: &'a Bits,
    /// The inverted index of the facet's field.
    pub index: Arc<InvertedIndexReader>,
}

/// The counts of one facet over all small segments together.
struct SmallCounts<'a> {
    values: &'a FacetValues,
    segments: &'a [SegmentFacet],
    /// Counts of the precomputed values, by rank.
    ranked: Vec<u64>,
    /// No other value occurs more often.
    most_unranked: u64,
}

impl<'a> SmallCounts<'a> {
    fn new(values: &'a FacetValues, segments: &'a [SegmentFacet]) -> io::Result<Self> {
        let mut ranked = vec![0; values.ranked.len()];
        let mut most_unranked = 0;
        for segment in segments {
            most_unranked += segment.add_ranked(values, &mut ranked)?;
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
            .map(|segment| segment.unranked(self.values))
            .collect()
    }
}

/// Facet counts over large segments, given as sets, and small segments, which are counted already. `None` if the
/// precomputed values do not suffice: a value that was not counted could still belong to the shown ones.
pub(super) fn counts(
    values: &FacetValues,
    large: &[LargeMatches<'_>],
    small: &[SegmentFacet],
    term: impl Fn(&str) -> Term,
) -> tantivy::Result<Option<FacetCounts>> {
    let small = SmallCounts::new(values, small)?;
    let mut shown = TopValues::default();
    offer_ranked(values, large, &small, &mut shown)?;
    if !offer_unranked(values, large, &small, term, &mut shown)? {
        return Ok(None);
    }
    // What was left out of the precomputed values, and is in no small segment, ranks lower than this.
    let left_out = values.left_out.as_ref();
    if left_out.is_some_and(|(text, agents)| !shown.certain(*agents, text)) {
        return Ok(None);
    }
    let sum = sum(values, large, small.segments);
    let values = shown.finish();
    let in_shown: u64 = values.iter().map(|(_, count)| count).sum();
    Ok(Some(FacetCounts {
        values,
        other_count: sum - in_shown,
    }))
}

/// Counts the precomputed values, as far as they may be shown.
fn offer_ranked(
    values: &FacetValues,
    large: &[LargeMatches<'_>],
    small: &SmallCounts<'_>,
    shown: &mut TopValues,
) -> tantivy::Result<()> {
    let mut ranked = values.ranked.iter().zip(&small.ranked).peekable();
    // From the first value on that is too rare in the large segments, the others are too: only those that small segments
    // have as well can still be shown.
    while let Some((value, in_small)) =
        ranked.next_if(|(value, _)| !shown.certain(value.agents, &value.text))
    {
        shown.offer(&value.text, in_large(value, large)? + in_small);
    }
    for (value, in_small) in ranked.filter(|(_, in_small)| **in_small > 0) {
        if !shown.certain(value.agents + in_small, &value.text) {
            shown.offer(&value.text, in_large(value, large)? + in_small);
        }
    }
    Ok(())
}

/// Counts the other values of small segments, as far as they may be shown; returns whether they were few enough.
fn offer_unranked(
    values: &FacetValues,
    large: &[LargeMatches<'_>],
    small: &SmallCounts<'_>,
    term: impl Fn(&str) -> Term,
    shown: &mut TopValues,
) -> tantivy::Result<bool> {
    let left_out = values.left_out.as_ref();
    let most_in_large = left_out.map_or(0, |(_, agents)| *agents);
    let most = small.most_unranked + most_in_large;
    if small.most_unranked == 0 || shown.least().is_some_and(|least| least > most) {
        return Ok(true);
    }
    let lists = small.unranked()?;
    let mut candidates: Vec<(Reverse<u64>, &[u8])> = Vec::new();
    add_up(&lists, |text, count| {
        if !shown.certain(count + most_in_large, text) {
            candidates.push((Reverse(count), text));
        }
    });
    candidates.sort_unstable();
    let mut looked_up = 0;
    for (Reverse(in_small), text) in candidates {
        if shown.certain(in_small + most_in_large, text) {
            continue;
        }
        // Without a value that was left out, the large segments have none of these.
        let in_large = match left_out {
            None => 0,
            Some(_) if looked_up == LOOKED_UP => return Ok(false),
            Some(_) => {
                looked_up += 1;
                look_up(text, large, &term)?
            }
        };
        shown.offer(text, in_large + in_small);
    }
    Ok(true)
}

/// Total number of values over all matches; an agent with three values counts three times.
fn sum(values: &FacetValues, large: &[LargeMatches<'_>], small: &[SegmentFacet]) -> u64 {
    let in_sets = large.iter().filter_map(|matches| {
        let carried = values.carried.get(matches.segment)?;
        Some(carried.sum(matches.agents))
    });
    in_sets.sum::<u64>() + small.iter().map(SegmentFacet::sum).sum::<u64>()
}

fn in_large(value: &FrequentValue, large: &[LargeMatches<'_>]) -> tantivy::Result<u64> {
    let counts = large
        .iter()
        .map(|matches| value.among(matches.segment, matches.agents, &matches.index));
    counts.sum()
}

/// The count in the large segments of a value that is not precomputed.
fn look_up(
    value: &[u8],
    large: &[LargeMatches<'_>],
    term: impl Fn(&str) -> Term,
) -> tantivy::Result<u64> {
    // The values are valid UTF-8, because the field is indexed as text.
    let term = term(&String::from_utf8_lossy(value));
    let mut count = 0;
    for matches in large {
        if let Some(info) = matches.index.get_term_info(&term)? {
            count += among(&info, matches.agents, &matches.index)?;
        }
    }
    Ok(count)
}
