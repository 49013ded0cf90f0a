//! Merges several lists into one: scores of different registries cannot be compared, but their ranks can (reciprocal
//! rank fusion).

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet};

use a2a_registry_api::ard::SearchResult;

/// The usual constant of reciprocal rank fusion, which sets how much the first ranks differ.
const RRF_CONSTANT: f64 = 60.0;

struct FederatedResult {
    score: f64,
    is_own: bool,
    result: SearchResult,
}

/// Merges this registry's results with those of its peers. Each identifier appears once, as this registry has it, or
/// else as the first peer has it.
pub fn merge_peer_results(
    own: Vec<SearchResult>,
    peers: Vec<Vec<SearchResult>>,
) -> Vec<SearchResult> {
    let mut merged: BTreeMap<String, FederatedResult> = BTreeMap::new();
    let own_list = std::iter::once((true, own));
    for (is_own, list) in own_list.chain(peers.into_iter().map(|list| (false, list))) {
        let mut visited = HashSet::new();
        for (position, result) in (1_u32..).zip(list) {
            let identifier = result.entry.identifier.clone();
            if !visited.insert(identifier.clone()) {
                continue;
            }
            let rank = 1.0 / (RRF_CONSTANT + f64::from(position));
            merged
                .entry(identifier)
                .and_modify(|one| one.score += rank)
                .or_insert(FederatedResult {
                    score: rank,
                    is_own,
                    result,
                });
        }
    }
    let mut merged: Vec<FederatedResult> = merged.into_values().collect();
    merged.sort_by(compare_federated_results);
    let best = merged.first().map_or(1.0, |first| first.score);
    let rescaled = merged.into_iter().map(|one| {
        // The best score is the greatest, so the quotient is at most 1.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let score = (100.0 * one.score / best).floor().clamp(0.0, 100.0) as u8;
        SearchResult {
            score,
            ..one.result
        }
    });
    rescaled.collect()
}

fn compare_federated_results(one: &FederatedResult, other: &FederatedResult) -> Ordering {
    let rank = other.score.total_cmp(&one.score);
    rank.then(other.is_own.cmp(&one.is_own)).then_with(|| {
        one.result
            .entry
            .identifier
            .cmp(&other.result.entry.identifier)
    })
}

#[cfg(test)]
mod tests {
    use a2a_registry_api::ard::Entry;

    use super::*;

    fn list(source: &str, identifiers: &[&str]) -> Vec<SearchResult> {
        let result = |identifier: &&str| SearchResult {
            entry: Entry {
                identifier: (*identifier).to_owned(),
                ..Entry::default()
            },
            score: 50,
            source: source.to_owned(),
        };
        identifiers.iter().map(result).collect()
    }

    #[test]
    fn each_identifier_stands_once_and_this_registry_speaks_first() {
        let own = list("own", &["a", "b", "c"]);
        let peers = vec![list("p1", &["d", "f", "d"]), list("p2", &["d", "e"])];
        let merged = merge_peer_results(own, peers);
        let shown: Vec<(&str, &str)> = merged
            .iter()
            .map(|one| (one.entry.identifier.as_str(), one.source.as_str()))
            .collect();
        assert_eq!(
            shown,
            [
                ("d", "p1"),
                ("a", "own"),
                ("b", "own"),
                ("e", "p2"),
                ("f", "p1"),
                ("c", "own")
            ]
        );
        let scores: Vec<u8> = merged.iter().map(|one| one.score).collect();
        assert!(scores.is_sorted_by(|one, next| one >= next), "{scores:?}");
        assert_eq!(scores.first(), Some(&100));
        assert!(merge_peer_results(Vec::new(), Vec::new()).is_empty());
    }
}
