//! Facet counts by the numbers of values in the large segments: only the texts of shown values, and of values that no
//! large segment has, are read.

use std::cmp::Reverse;
use std::io;

use super::super::answer::{FACET_VALUES, FacetCounts};
use super::column::{FacetColumn, SegmentFacet, add_up};
use super::frequent::FacetValues;
use super::shown::TopValues;

pub(super) struct LargeCounts {
    /// Its position among the large segments.
    pub segment: usize,
    pub facet: SegmentFacet,
}

struct NumberedColumn<'a> {
    column: &'a FacetColumn,
    numbers: &'a [u32],
}

/// `None` if the values were numbered by other columns, as in a damaged index.
pub(super) fn counts(
    values: &FacetValues,
    large: &[LargeCounts],
    small: &[SegmentFacet],
) -> io::Result<Option<FacetCounts>> {
    let mut sums = vec![0_u32; values.distinct()];
    let mut columns = Vec::with_capacity(large.len());
    for LargeCounts { segment, facet } in large {
        let (column, numbers) = (facet.column(), values.numbers(*segment));
        if column.len() != numbers.len() {
            return Ok(None);
        }
        facet.add_marked(numbers, &mut sums);
        columns.push(NumberedColumn { column, numbers });
    }
    let mut only_small = Vec::with_capacity(small.len());
    for facet in small {
        let numbers = facet.numbers(|value| number_of(value, values, &columns))?;
        facet.add_marked(numbers, &mut sums);
        only_small.push(facet.unmarked(numbers)?);
    }
    let mut shown = TopValues::default();
    add_up(&only_small, |text, count| shown.offer(text, count));
    for (Reverse(count), number) in most_frequent(&sums) {
        let text = text_of(number, values, &columns)?;
        shown.offer(&text, count.into());
    }
    let facets = large.iter().map(|one| &one.facet).chain(small);
    Ok(Some(shown.into_counts(facets.map(SegmentFacet::sum).sum())))
}

/// The most frequent numbered values. Numbers are in text order, so equally frequent values come in display order.
fn most_frequent(sums: &[u32]) -> Vec<(Reverse<u32>, u32)> {
    let counted = (0..).zip(sums).filter(|(_, count)| **count > 0);
    let counted = counted.map(|(number, count)| (Reverse(*count), number));
    let mut counted: Vec<(Reverse<u32>, u32)> = counted.collect();
    if counted.len() > FACET_VALUES {
        counted.select_nth_unstable(FACET_VALUES);
        counted.truncate(FACET_VALUES);
    }
    counted
}

/// `None` if no large segment has the value.
fn number_of(
    value: &[u8],
    values: &FacetValues,
    columns: &[NumberedColumn<'_>],
) -> io::Result<Option<u32>> {
    if let Some(frequent) = values.find(value) {
        return Ok(Some(frequent.number));
    }
    for NumberedColumn { column, numbers } in columns {
        if let Some(ordinal) = column.ordinal(value)? {
            return Ok(numbers.get(ordinal).copied());
        }
    }
    Ok(None)
}

fn text_of(
    number: u32,
    values: &FacetValues,
    columns: &[NumberedColumn<'_>],
) -> io::Result<Vec<u8>> {
    if let Some(frequent) = values.find_number(number) {
        return Ok(frequent.text.clone());
    }
    for NumberedColumn { column, numbers } in columns {
        if let Ok(ordinal) = numbers.binary_search(&number) {
            return column.value(ordinal);
        }
    }
    Ok(Vec::new())
}
