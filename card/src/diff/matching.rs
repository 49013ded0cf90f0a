//! Matches the elements of two lists.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

#[derive(Debug, PartialEq)]
pub(super) struct Matches {
    /// Pairs of positions in the older and the newer list, in the newer one's order.
    pub(super) both: Vec<(usize, usize)>,
    pub(super) added: Vec<usize>,
    pub(super) gone: Vec<usize>,
    pub(super) reordered: bool,
    /// Whether a key occurs in the newer list more than once, so that the order decides which element clients take.
    pub(super) ambiguous: bool,
}

/// Matches elements with equal keys; of several with one key the first with the first, and so on.
pub(super) fn matches<K: Eq + Hash>(before: Vec<K>, after: Vec<K>) -> Matches {
    let ambiguous = after.iter().collect::<HashSet<_>>().len() < after.len();
    // The positions of each key in reverse, so that `pop` gives the first.
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
