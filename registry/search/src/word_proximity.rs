//! Word proximity: pairs of adjacent words in a query, and the score of their distance in a document.

use tantivy::Score;

use super::analysis::AnalyzedQuery;
use super::text_layout::part_at_position;

/// The greatest distance, in positions, of two words that are near each other.
const MAX_DISTANCE: u32 = 5;

type WordPair = (usize, usize);

#[derive(Debug, Clone, Default)]
pub(super) struct AdjacentWordPairs {
    /// Pairs in which one word directly follows the other, counting stop words.
    sequence_pairs: Vec<WordPair>,
    /// Pairs with at most stop words between them.
    content_pairs: Vec<WordPair>,
}

/// Positions of a form of a word in a document, ascending, and its weight.
pub(super) type WeightedPositions<'a> = (&'a [u32], Score);

/// Proximity scores of a document, before weighting.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct ProximityScores {
    /// Score of the pairs that directly follow each other in the query's order.
    pub phrases: Score,
    /// Score of the other pairs that are near each other, which decreases with their distance.
    pub nearness: Score,
}

impl AdjacentWordPairs {
    /// Pairs the words of a query. A word without a number is in no pair.
    pub fn new(query: &AnalyzedQuery, number_of: impl Fn(&str) -> Option<usize>) -> Self {
        let pairs = |words: &[(String, usize)]| {
            let mut pairs: Vec<WordPair> = Vec::new();
            for two in words.windows(2) {
                if let [(left, before), (right, after)] = two
                    && before + 1 == *after
                    && let (Some(left), Some(right)) = (number_of(left), number_of(right))
                    && left != right
                    && !pairs.contains(&(left, right))
                {
                    pairs.push((left, right));
                }
            }
            pairs
        };
        Self {
            sequence_pairs: pairs(&query.sequence),
            content_pairs: pairs(&query.content_words),
        }
    }

    /// Computes the proximity scores of a document, where `forms` gives the positions of each form of a word in it. A
    /// pair scores as much as its lower-weighted word, in its best-scoring forms.
    pub fn compute_proximity_scores<'a, F>(&self, forms: impl Fn(usize) -> F) -> ProximityScores
    where
        F: Iterator<Item = WeightedPositions<'a>>,
    {
        // Most forms of most words do not occur in a document.
        let held = |word| forms(word).filter(|(places, _)| !places.is_empty());
        let best = |(left, right): WordPair, closeness: fn(&[u32], &[u32]) -> Score| {
            let mut best: Score = 0.0;
            for (left, left_worth) in held(left) {
                for (right, right_worth) in held(right) {
                    best = best.max(left_worth.min(right_worth) * closeness(left, right));
                }
            }
            best
        };
        let mut scores = ProximityScores::default();
        let mut phrases: Vec<WordPair> = Vec::new();
        for pair in &self.sequence_pairs {
            let worth = best(*pair, phrase_closeness);
            if worth > 0.0 {
                scores.phrases += worth;
                phrases.push(*pair);
            }
        }
        let others = self.content_pairs.iter();
        scores.nearness = others
            .filter(|pair| !phrases.contains(pair))
            .map(|pair| best(*pair, near_closeness))
            .sum();
        scores
    }
}

/// 1 if a position of the right word directly follows one of the left, otherwise 0.
fn phrase_closeness(left: &[u32], right: &[u32]) -> Score {
    let follows = |place: &u32| right.binary_search(&(place + 1)).is_ok();
    match left.iter().any(follows) {
        true => 1.0,
        false => 0.0,
    }
}

/// Closeness of two words: 1 if adjacent in either order, decreasing with the distance down to [`MAX_DISTANCE`]
/// positions, and 0 beyond. Words of two different skills are never near each other.
#[expect(clippy::cast_precision_loss, reason = "a score is rough")]
fn near_closeness(left: &[u32], right: &[u32]) -> Score {
    let mut nearest: Option<u32> = None;
    for (at, position) in left.iter().enumerate() {
        // Positions repeat (names and tags count several times, and all positions past a skill's limit are one), and
        // nothing is nearer than adjacent words.
        if nearest == Some(1) || (at > 0 && left[at - 1] == *position) {
            continue;
        }
        // At the same position is the same word in another form.
        let before = right[..right.partition_point(|other| other < position)].last();
        let next = right.partition_point(|other| other <= position);
        for other in before.into_iter().chain(right.get(next)) {
            let apart = position.abs_diff(*other);
            if apart <= nearest.unwrap_or(MAX_DISTANCE)
                && part_at_position(*position) == part_at_position(*other)
            {
                nearest = Some(apart);
            }
        }
    }
    nearest.map_or(0.0, |apart| {
        (MAX_DISTANCE + 1 - apart) as Score / MAX_DISTANCE as Score
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::analyze_query;

    /// Proximity scores of the words of a query at these positions, each with weight 1.
    fn together(query: &str, places: &[&[u32]]) -> ProximityScores {
        let query = analyze_query(query);
        let words: Vec<String> = query
            .words
            .iter()
            .map(|word| word.base_form().into())
            .collect();
        let pairs =
            AdjacentWordPairs::new(&query, |form| words.iter().position(|word| word == form));
        pairs.compute_proximity_scores(|word| {
            places.get(word).into_iter().map(|places| (*places, 1.0))
        })
    }

    #[test]
    fn nearer_is_better_and_in_order_is_best() {
        let near = |places: &[&[u32]]| together("book tokyo", places);
        assert_eq!(near(&[&[3], &[4]]).phrases, 1.0);
        assert_eq!(
            near(&[&[3], &[4]]).nearness,
            0.0,
            "counted as a phrase already"
        );
        let worth: Vec<Score> = (1..8)
            .map(|apart| near(&[&[20 + apart], &[20]]).nearness)
            .collect();
        assert_eq!(worth, [1.0, 0.8, 0.6, 0.4, 0.2, 0.0, 0.0]);
        assert_eq!(
            near(&[&[20], &[22]]).nearness,
            near(&[&[22], &[20]]).nearness
        );
        assert_eq!(
            near(&[&[1, 50], &[20, 52]]).nearness,
            0.8,
            "the nearest of all"
        );
        assert_eq!(
            near(&[&[7], &[7]]),
            ProximityScores::default(),
            "one word, two forms"
        );
        assert_eq!(near(&[&[7], &[]]), ProximityScores::default());
    }

    #[test]
    fn stop_words_between_two_words_do_not_part_them() {
        let apart = together("book to the tokyo", &[&[3], &[5]]);
        assert_eq!((apart.phrases, apart.nearness), (0.0, 0.8));
        // Other words separate the pair.
        let parted = together("book flights tokyo", &[&[3], &[], &[5]]);
        assert_eq!(parted, ProximityScores::default());
    }

    #[test]
    fn words_of_two_skills_are_not_near() {
        let end = (1 << 12) - 1;
        assert_eq!(together("book tokyo", &[&[end], &[end + 2]]).nearness, 0.0);
    }
}
