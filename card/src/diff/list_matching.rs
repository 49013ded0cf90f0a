//! Matching of the elements of two lists.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

#[derive(Debug, PartialEq)]
pub(super) struct ListMatching {
    /// Pairs of indices in the older and the newer list, in the order of the newer list.
    pub(super) matched: Vec<(usize, usize)>,
    pub(super) added: Vec<usize>,
    pub(super) removed: Vec<usize>,
    pub(super) reordered: bool,
    /// Whether a key occurs more than once in the newer list, so that the order decides which element clients use.
    pub(super) ambiguous: bool,
}

/// Matches elements with equal keys; if a key is repeated, the first is matched with the first, and so on.
pub(super) fn match_lists<K: Eq + Hash>(before: Vec<K>, after: Vec<K>) -> ListMatching {
    let ambiguous = after.iter().collect::<HashSet<_>>().len() < after.len();
    // The positions of each key in reverse order, so that `pop` returns the first.
    let mut positions_by_key: HashMap<K, Vec<usize>> = HashMap::new();
    let mut is_gone = vec![true; before.len()];
    for (position, key) in before.into_iter().enumerate().rev() {
        positions_by_key.entry(key).or_default().push(position);
    }
    let mut matched = Vec::new();
    let mut added = Vec::new();
    for (position, key) in after.into_iter().enumerate() {
        match positions_by_key.get_mut(&key).and_then(Vec::pop) {
            Some(old_position) => {
                matched.push((old_position, position));
                if let Some(gone) = is_gone.get_mut(old_position) {
                    *gone = false;
                }
            }
            None => added.push(position),
        }
    }
    let removed = is_gone.iter().enumerate().filter(|(_, gone)| **gone);
    ListMatching {
        reordered: !matched.is_sorted_by_key(|(earlier, _)| *earlier),
        removed: removed.map(|(place, _)| place).collect(),
        matched,
        added,
        ambiguous,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_found_again_by_their_keys() {
        let matched = match_lists(vec!["a", "b", "b", "c"], vec!["b", "d", "a", "b", "b"]);
        assert_eq!(matched.matched, [(1, 0), (0, 2), (2, 3)]);
        assert_eq!((matched.added, matched.removed), (vec![1, 4], vec![3]));
        assert!(matched.reordered && matched.ambiguous);
        let matched = match_lists(vec!["a", "b", "c"], vec!["a", "x", "c"]);
        assert!(!matched.reordered && !matched.ambiguous);
    }
}
