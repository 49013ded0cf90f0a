//! Top values of a facet, which a response shows.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::super::response::{FacetCounts, MAX_FACET_VALUES};

/// The most frequent values so far; equally frequent ones are ordered by value.
#[derive(Default)]
pub(super) struct TopValues(BinaryHeap<Reverse<(u64, Reverse<Vec<u8>>)>>);

impl TopValues {
    /// Keeps a value if it is among the most frequent and its count is not 0. Each value must be offered only once.
    pub fn offer(&mut self, value: &[u8], count: u64) {
        if count == 0 || self.excludes(count, value) {
            return;
        }
        if self.0.len() == MAX_FACET_VALUES {
            self.0.pop();
        }
        self.0.push(Reverse((count, Reverse(value.to_owned()))));
    }

    /// Whether the list is full and all its values rank before this one, and so before every later value with at most
    /// `count` agents.
    pub fn excludes(&self, count: u64, value: &[u8]) -> bool {
        self.lowest()
            .is_some_and(|(least, last)| least > count || least == count && last < value)
    }

    /// The count that another value must exceed once the list is full.
    pub fn min_count(&self) -> Option<u64> {
        self.lowest().map(|(least, _)| least)
    }

    fn lowest(&self) -> Option<(u64, &[u8])> {
        let Reverse((count, Reverse(value))) = self.0.peek()?;
        (self.0.len() == MAX_FACET_VALUES).then_some((*count, value))
    }

    /// The values in display order, and the rest of the `sum` of all counts.
    pub fn into_counts(self, sum: u64) -> FacetCounts {
        let ascending = self.0.into_sorted_vec().into_iter();
        let values: Vec<(String, u64)> = ascending
            .map(|Reverse((count, Reverse(value)))| {
                (String::from_utf8_lossy(&value).into_owned(), count)
            })
            .collect();
        let shown: u64 = values.iter().map(|(_, count)| count).sum();
        FacetCounts {
            values,
            other_count: sum - shown,
        }
    }
}
