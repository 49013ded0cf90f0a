//! The values of a facet that are shown.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::super::answer::FACET_VALUES;

/// The most frequent values of those offered, equal ones by value.
#[derive(Default)]
pub(super) struct TopValues(BinaryHeap<Reverse<(u64, Reverse<Vec<u8>>)>>);

impl TopValues {
    /// Takes a value up while it is among the most frequent; one that nobody carries never is. Each value is offered
    /// once.
    pub fn offer(&mut self, value: &[u8], count: u64) {
        if count == 0 || self.certain(count, value) {
            return;
        }
        if self.0.len() == FACET_VALUES {
            self.0.pop();
        }
        self.0.push(Reverse((count, Reverse(value.to_owned()))));
    }

    /// Whether as many values as are shown all come before one of this count, and before every value after it that
    /// is not more frequent.
    pub fn certain(&self, count: u64, value: &[u8]) -> bool {
        self.last()
            .is_some_and(|(least, last)| least > count || least == count && last < value)
    }

    /// The count that the others have to exceed, once there are as many values as are shown.
    pub fn least(&self) -> Option<u64> {
        self.last().map(|(least, _)| least)
    }

    fn last(&self) -> Option<(u64, &[u8])> {
        let Reverse((count, Reverse(value))) = self.0.peek()?;
        (self.0.len() == FACET_VALUES).then_some((*count, value))
    }

    /// The values with their counts, in the order in which they are shown.
    pub fn finish(self) -> Vec<(String, u64)> {
        let ascending = self.0.into_sorted_vec();
        ascending
            .into_iter()
            .map(|Reverse((count, Reverse(value)))| {
                (String::from_utf8_lossy(&value).into_owned(), count)
            })
            .collect()
    }
}
