//! Facet counts by value number in the large segments: reads only the texts of shown values and of values that no
//! large segment has.

use std::cmp::Reverse;
use std::io;

use super::super::response::{FacetCounts, MAX_FACET_VALUES};
use super::column_counting::{FacetColumn, FacetCounter, merge_counted_values};
use super::precomputed::PrecomputedValues;
use super::top_values::TopValues;

pub(super) struct LargeSegmentCounts {
    /// Position of this segment among the large segments.
    pub large_index: usize,
    pub counter: FacetCounter,
}

struct NumberedColumn<'a> {
    column: &'a FacetColumn,
    numbers: &'a [u32],
}

/// Counts a facet; `None` if the values were numbered by other columns, as in a damaged index.
pub(super) fn count_facet_by_numbers(
    values: &PrecomputedValues,
    large: &[LargeSegmentCounts],
    small: &[FacetCounter],
) -> io::Result<Option<FacetCounts>> {
    let mut sums = vec![0_u32; values.distinct_count()];
    let mut columns = Vec::with_capacity(large.len());
    for LargeSegmentCounts {
        large_index: segment,
        counter: facet,
    } in large
    {
        let (column, numbers) = (facet.column(), values.segment_value_numbers(*segment));
        if column.len() != numbers.len() {
            return Ok(None);
        }
        facet.add_counts_by_index(numbers, &mut sums);
        columns.push(NumberedColumn { column, numbers });
    }
    let mut unnumbered = Vec::with_capacity(small.len());
    for facet in small {
        let numbers = facet.value_numbers(|value| find_value_number(value, values, &columns))?;
        facet.add_counts_by_index(numbers, &mut sums);
        unnumbered.push(facet.values_without_index(numbers)?);
    }
    let mut top_values = TopValues::default();
    merge_counted_values(&unnumbered, |text, count| top_values.offer(text, count));
    for (Reverse(count), number) in most_frequent_value_numbers(&sums) {
        let text = value_text_by_number(number, values, &columns)?;
        top_values.offer(&text, count.into());
    }
    let facets = large.iter().map(|one| &one.counter).chain(small);
    Ok(Some(
        top_values.into_counts(facets.map(FacetCounter::total).sum()),
    ))
}

/// The most frequent numbered values. Numbers follow text order, so equally frequent values are in display order.
fn most_frequent_value_numbers(sums: &[u32]) -> Vec<(Reverse<u32>, u32)> {
    let counted = (0..).zip(sums).filter(|(_, count)| **count > 0);
    let counted = counted.map(|(number, count)| (Reverse(*count), number));
    let mut counted: Vec<(Reverse<u32>, u32)> = counted.collect();
    if counted.len() > MAX_FACET_VALUES {
        counted.select_nth_unstable(MAX_FACET_VALUES);
        counted.truncate(MAX_FACET_VALUES);
    }
    counted
}

/// The number of a value; `None` if no large segment has it.
fn find_value_number(
    value: &[u8],
    values: &PrecomputedValues,
    columns: &[NumberedColumn<'_>],
) -> io::Result<Option<u32>> {
    if let Some(frequent) = values.find_by_text(value) {
        return Ok(Some(frequent.number));
    }
    for NumberedColumn { column, numbers } in columns {
        if let Some(ordinal) = column.ordinal_of(value)? {
            return Ok(numbers.get(ordinal).copied());
        }
    }
    Ok(None)
}

fn value_text_by_number(
    number: u32,
    values: &PrecomputedValues,
    columns: &[NumberedColumn<'_>],
) -> io::Result<Vec<u8>> {
    if let Some(frequent) = values.find_by_number(number) {
        return Ok(frequent.text.clone());
    }
    for NumberedColumn { column, numbers } in columns {
        if let Ok(ordinal) = numbers.binary_search(&number) {
            return column.value_at(ordinal);
        }
    }
    Ok(Vec::new())
}
