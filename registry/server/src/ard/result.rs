//! Hits as results of ARD: the entry, a score of 0 to 100, and the registry that has it.

use a2a_registry_api::ard::SearchResult;
use a2a_registry_search::HitRow;

use crate::ard::entry_of;

/// The score of a hit of `/v1` that becomes half of what there is.
const HALF: f32 = 12.0;
/// The highest score of a weak hit; all others have more.
const WEAK: f32 = 19.0;
/// The lowest score of a hit that is not weak.
const LEAST: f32 = 20.0;

/// A hit as a result.
pub(crate) fn result(row: &HitRow, source: &str) -> Option<SearchResult> {
    Some(SearchResult {
        entry: entry_of(&row.hit)?,
        score: score(row.score.unwrap_or(0.0), row.weak),
        source: source.to_owned(),
    })
}

/// A score of the search as a whole number: `s` becomes `s / (s + 12)` of 20 to 100, and of 0 to 19 for a weak hit. It
/// never rises where the order of `/v1/agents` goes down, and says the same on every page; the order itself is finer.
fn score(score: f32, weak: bool) -> u8 {
    let part = match score.max(0.0) {
        score if score.is_finite() => score / (score + HALF),
        _ => 1.0,
    };
    let whole = match weak {
        true => WEAK * part,
        false => LEAST + (100.0 - LEAST) * part,
    };
    // Between 0 and 100 by what is above, so the cast keeps the number.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let whole = whole.floor() as u8;
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_fall_with_the_order() {
        let order = [
            (f32::INFINITY, false),
            (1e9, false),
            (24.0, false),
            (12.0, false),
            (0.1, false),
            (0.0, false),
            (f32::INFINITY, true),
            (12.0, true),
            (0.0, true),
        ];
        let scores: Vec<u8> = order.iter().map(|(one, weak)| score(*one, *weak)).collect();
        assert!(scores.is_sorted_by(|one, next| one >= next), "{scores:?}");
        assert_eq!(scores.first(), Some(&100));
        assert_eq!(score(12.0, false), 60);
        assert_eq!(score(0.0, false), 20);
        assert_eq!(score(f32::INFINITY, true), 19);
        assert_eq!(scores.last(), Some(&0));
    }
}
