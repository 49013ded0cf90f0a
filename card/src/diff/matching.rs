//! Finding the elements of one list again in another.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

/// Which elements of two lists belong together.
#[derive(Debug, PartialEq)]
pub(super) struct Matches {
    /// The places of an element in the older and the newer list, in the newer one's order.
    pub(super) both: Vec<(usize, usize)>,
    /// The places in the newer list of what is new.
    pub(super) added: Vec<usize>,
    /// The places in the older list of what is gone.
    pub(super) gone: Vec<usize>,
    /// Whether what is in both stands in another order.
    pub(super) reordered: bool,
    /// Whether a key stands in the newer list more than once, so that its order decides who is meant.
    pub(super) ambiguous: bool,
}

/// Matches elements of equal keys; of several with one key the first with the first, and so on.
pub(super) fn matches<K: Eq + Hash>(before: Vec<K>, after: Vec<K>) -> Matches {
    let ambiguous = after.iter().collect::<HashSet<_>>().len() < after.len();
    // The places of each key in reverse, so that the first is the last to be taken.
    let mut places: HashMap<K, Vec<usize>> = HashMap::new();
    let mut is_gone = vec![true; before.len()];
    for (place, key) in before.into_iter().enumerate().rev() {
        places.entry(key).or_default().push(place);
    }
    let mut both = Vec::new();
    let mut added = Vec::new();
    for (place, key) in after.into_iter().enumerate() {
        match places.get_mut(&key).and_then(Vec::pop) {
            Some(earlier) => {
                both.push((earlier, place));
                if let Some(gone) = is_gone.get_mut(earlier) {
                    *gone = false;
                }
            }
            None => added.push(place),
        }
    }
    let gone = is_gone.iter().enumerate().filter(|(_, gone)| **gone);
    Matches {
        reordered: !both.is_sorted_by_key(|(earlier, _)| *earlier),
        gone: gone.map(|(place, _)| place).collect(),
        both,
        added,
        ambiguous,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_found_again_by_their_keys() {
        let matched = matches(vec!["a", "b", "b", "c"], vec!["b", "d", "a", "b", "b"]);
        assert_eq!(matched.both, [(1, 0), (0, 2), (2, 3)]);
        assert_eq!((matched.added, matched.gone), (vec![1, 4], vec![3]));
        assert!(matched.reordered && matched.ambiguous);
        let matched = matches(vec!["a", "b", "c"], vec!["a", "x", "c"]);
        assert!(!matched.reordered && !matched.ambiguous);
    }
}
