//! Hybrid order by relevance, which combines full-text and semantic scores.
//!
//! The full-text score is divided by the query's best one, so that it lies between 0 and 1 like the semantic score,
//! and both can be added. The weight of full text increases with the part of the query that the best match covers: a
//! query in words that hardly any agent uses is ranked mostly by meaning. All nearest neighbors are collected whatever
//! their full-text score; other matches are ordered by full-text score alone, so the top of the order consists of
//! neighbors and the best full-text matches.
//!
//! Exact matches come first. An entry that does not fit is weak, which is decided by its first full-text score and its
//! similarity. Weak entries come after all others; both groups are ordered by score.

use std::collections::HashSet;
use std::sync::Arc;

use tantivy::{DocAddress, Score, Searcher};
use uuid::Uuid;

use super::error::IndexError;
use super::exact_match::{ExactMatchSegment, ExactMatcher};
use super::facets::RequestedFacets;
use super::filtered_query::FilteredQuery;
use super::fitting::FitModel;
use super::hybrid_score::{HybridMode, HybridScore, TextScoreScale};
use super::page_collector::{CollectedPage, PageCollector};
use super::page_entry::{PageEntry, compare_sort_positions, refresh_page_position};
use super::request::{SortPosition, SortValue};
use super::rescore::{RESCORED_COUNT, Rescorer};
use super::semantic_neighbors::SemanticNeighbors;
use crate::vectors::AgentSimilarity;

/// Relative rounding error of the division; the start position among full-text scores is moved ahead by it.
const ROUNDING_ERROR: Score = 1e-5;
/// Additional matches that are read to compensate for the rounding error.
const EXTRA_MATCHES: usize = 64;

#[derive(Debug, Clone)]
pub(super) struct HybridRanker {
    pub neighbors: Arc<SemanticNeighbors>,
    pub mode: HybridMode,
    /// Finds the exact matches, which come first; `None` if the mode has another order.
    pub exact_matcher: Option<ExactMatcher>,
}

/// Ranks the first `page.limit` matches after `page.after`, with the total and the facets; `query` matches text and
/// neighbors.
pub(super) fn rank_hybrid(
    searcher: &Searcher,
    query: &FilteredQuery,
    page: &PageCollector,
    rescorer: Option<&Rescorer>,
    hybrid: &HybridRanker,
) -> Result<CollectedPage, IndexError> {
    let collector = PageCollector {
        limit: page.limit.max(RESCORED_COUNT),
        after: None,
        separates_neighbors: true,
        ..page.clone()
    };
    let mut collected = searcher.search(query, &collector)?;
    let deepest = collected.entries.last().map(PageEntry::full_text_score);
    let entries = &mut collected.entries;
    entries.append(&mut collected.neighbors);
    let read_count = entries.len();
    entries.sort_by(|left, right| {
        let by_score = right.full_text_score().total_cmp(&left.full_text_score());
        by_score.then_with(|| left.position.id.cmp(&right.position.id))
    });
    let rescored_count = entries
        .iter()
        .take(RESCORED_COUNT)
        .take_while(|entry| entry.full_text_score() > 0.0)
        .count();
    if let Some(rescorer) = rescorer {
        rescorer.rescore(searcher, &mut entries[..rescored_count])?;
    }
    let exact_matches = hybrid.find_exact_matches(searcher, &entries[..rescored_count])?;
    let scores = entries.iter().map(PageEntry::full_text_score);
    let best = scores.fold(0.0, Score::max);
    let scale = TextScoreScale::new(best, rescorer.map(Rescorer::max_text_score));
    for entry in entries.iter_mut() {
        let is_exact = exact_matches.contains(&entry.address);
        hybrid.combine_scores(searcher, entry, scale, is_exact);
    }
    entries.sort_by(|left, right| compare_sort_positions(&left.position, &right.position));
    if let Some(after) = &page.after {
        let after = &refresh_page_position(after, entries);
        let known_addresses: HashSet<DocAddress> =
            entries.iter().map(|entry| entry.address).collect();
        entries.retain(|entry| compare_sort_positions(after, &entry.position).is_lt());
        if collected.group_count > read_count as u64 {
            let deepest = deepest.unwrap_or(Score::MAX);
            let more_entries = collect_further_matches(
                searcher,
                query,
                hybrid,
                (after, page),
                (scale, deepest),
                &known_addresses,
            )?;
            entries.extend(more_entries);
            entries.sort_by(|left, right| compare_sort_positions(&left.position, &right.position));
        }
    }
    entries.truncate(page.limit);
    Ok(collected)
}

/// Collects as many matches after a position as the page has room for, ordered by full-text score alone, without
/// neighbors and those in `known_addresses`. Reads twice as many each time equal scores leave too few.
fn collect_further_matches(
    searcher: &Searcher,
    query: &FilteredQuery,
    hybrid: &HybridRanker,
    (after, page): (&SortPosition, &PageCollector),
    (scale, deepest): (TextScoreScale, Score),
    known_addresses: &HashSet<DocAddress>,
) -> Result<Vec<PageEntry>, IndexError> {
    let empty_score = HybridScore {
        mode: hybrid.mode,
        text_score: None,
        scale,
        semantic: None,
        nearer_count: 0,
        is_exact: false,
    };
    let fitting_score = page.fit.map_or(0.0, FitModel::sufficient_text_score);
    let start_score = match after.value {
        // Weak matches follow the last one that is not weak, starting with the best of them.
        SortValue::Score(score) if !after.weak => {
            empty_score.required_text_score(score).max(fitting_score)
        }
        SortValue::Score(score) => empty_score.required_text_score(score),
        _ => deepest,
    };
    let start_score = start_score.min(deepest) * (1.0 + ROUNDING_ERROR);
    let mut read_limit = page.limit + EXTRA_MATCHES;
    loop {
        let collector = PageCollector {
            limit: read_limit,
            after: Some(SortPosition {
                weak: false,
                value: SortValue::Score(start_score),
                tie_rank: 0,
                id: Uuid::nil(),
            }),
            facets: RequestedFacets::default(),
            // Excludes the neighbors, which are all known already.
            separates_neighbors: true,
            ..page.clone()
        };
        let mut entries = searcher.search(query, &collector)?.entries;
        let is_exhausted = entries.len() < read_limit;
        entries.retain(|entry| !known_addresses.contains(&entry.address));
        entries
            .iter_mut()
            .for_each(|entry| hybrid.combine_scores(searcher, entry, scale, false));
        entries.retain(|entry| compare_sort_positions(after, &entry.position).is_lt());
        if is_exhausted || entries.len() >= page.limit {
            return Ok(entries);
        }
        read_limit = read_limit.saturating_mul(2);
    }
}

impl HybridRanker {
    pub fn uses_text(&self) -> bool {
        self.mode != HybridMode::SemanticOnly
    }

    /// The similarity of an entry; `None` if it is not a neighbor.
    fn similarity_of(&self, searcher: &Searcher, entry: &PageEntry) -> Option<AgentSimilarity> {
        let segment = searcher
            .segment_reader(entry.address.segment_ord)
            .segment_id();
        self.neighbors.similarity_of(segment, entry.address.doc_id)
    }

    /// The addresses of those of these entries that are exact matches.
    fn find_exact_matches(
        &self,
        searcher: &Searcher,
        entries: &[PageEntry],
    ) -> Result<HashSet<DocAddress>, IndexError> {
        let Some(matcher) = &self.exact_matcher else {
            return Ok(HashSet::new());
        };
        let mut addresses: Vec<DocAddress> = entries.iter().map(|entry| entry.address).collect();
        addresses.sort_unstable();
        let mut exact_matches = HashSet::new();
        let mut current_segment: Option<(u32, ExactMatchSegment)> = None;
        for address in addresses {
            let segment = match &mut current_segment {
                Some((ordinal, segment)) if *ordinal == address.segment_ord => segment,
                _ => {
                    let reader = searcher.segment_reader(address.segment_ord);
                    let segment = matcher.open_segment(reader)?;
                    &mut current_segment.insert((address.segment_ord, segment)).1
                }
            };
            if segment.advance_and_check(address.doc_id) {
                exact_matches.insert(address);
            }
        }
        Ok(exact_matches)
    }

    /// Combines the full-text score of an entry with its semantic score.
    fn combine_scores(
        &self,
        searcher: &Searcher,
        entry: &mut PageEntry,
        scale: TextScoreScale,
        is_exact: bool,
    ) {
        let text_score =
            Some(entry.full_text_score()).filter(|score| *score > 0.0 && self.uses_text());
        let similarity = self.similarity_of(searcher, entry);
        let hybrid_score = HybridScore {
            mode: self.mode,
            text_score,
            scale,
            semantic: similarity
                .map(|near| (near, self.neighbors.relative_score(near.combined_cosine()))),
            nearer_count: similarity.map_or(0, |near| {
                self.neighbors.count_nearer(near.combined_cosine())
            }),
            is_exact,
        };
        entry.position.value = SortValue::Score(hybrid_score.score());
        entry.hybrid_score = Some(hybrid_score);
    }
}
