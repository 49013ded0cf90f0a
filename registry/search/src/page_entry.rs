//! Entries of a page, and the order of their positions.

use std::cmp::Ordering;

use tantivy::{DocAddress, Score};

use super::hybrid_score::HybridScore;
use super::request::{SortPosition, SortValue};
use super::rescore_bonus::RescoreBonus;
use super::response::DuplicateAgents;

#[derive(Debug, Clone)]
pub(super) struct PageEntry {
    pub position: SortPosition,
    /// Whether the agent does not fit the query, in any order.
    pub weak: bool,
    pub rescore_bonus: RescoreBonus,
    /// The combination of full-text and semantic score, in a hybrid search.
    pub hybrid_score: Option<HybridScore>,
    /// Its duplicates among the matches, if they are grouped.
    pub duplicates: Option<DuplicateAgents>,
    pub address: DocAddress,
}

impl PageEntry {
    /// Full-text score of an entry that was collected by score, before it is combined; otherwise 0.
    pub fn full_text_score(&self) -> Score {
        match self.position.value {
            SortValue::Score(score) => score,
            _ => 0.0,
        }
    }
}

/// Compares two positions of the same sort key: weak hits come last; better scores, later times and smaller names come
/// first; ties are ordered by the answers of endpoints, then by id.
pub(super) fn compare_sort_positions(left: &SortPosition, right: &SortPosition) -> Ordering {
    let by_value = match (&left.value, &right.value) {
        (SortValue::Score(left), SortValue::Score(right)) => right.total_cmp(left),
        (SortValue::Name(left), SortValue::Name(right)) => left.cmp(right),
        (SortValue::Time(left), SortValue::Time(right)) => right.cmp(left),
        _ => Ordering::Equal,
    };
    left.weak
        .cmp(&right.weak)
        .then(by_value)
        .then_with(|| left.tie_key().cmp(&right.tie_key()))
}

/// The current position of the agent of `after` if it is among these entries, otherwise `after`: any change of the
/// index changes all scores slightly, and the page continues after the same agent.
pub(super) fn refresh_page_position(after: &SortPosition, entries: &[PageEntry]) -> SortPosition {
    let mut positions = entries.iter().map(|entry| &entry.position);
    let current = positions.find(|position| position.id == after.id);
    current.unwrap_or(after).clone()
}
