//! Ranking by relevance: the best candidates of the first scoring are rescored and come first; the others follow
//! unchanged. Rescoring never lowers a score, so all pages together are in one order by score.
//!
//! A match that does not fit is weak and comes after all others. That is decided by its first score, so that matches
//! behind the candidates need no rescoring to be in their place.

use tantivy::{Searcher, TantivyError};

use super::error::IndexError;
use super::facets::RequestedFacets;
use super::filtered_query::FilteredQuery;
use super::hybrid_ranking::{HybridRanker, rank_hybrid};
use super::page_collector::{CollectedPage, PageCollector, SortKey};
use super::page_entry::{compare_sort_positions, refresh_page_position};
use super::request::SortPosition;
use super::rescore::{RESCORED_COUNT, Rescorer};

/// Ranks the first `page.limit` matches after `page.after`, with the total and the facets.
pub(super) fn rank_matches(
    searcher: &Searcher,
    query: &FilteredQuery,
    page: &PageCollector,
    rescorer: Option<&Rescorer>,
    hybrid: Option<&HybridRanker>,
) -> Result<CollectedPage, IndexError> {
    if let Some(blend) = hybrid.filter(|_| page.sort_key == SortKey::Score && page.limit > 0) {
        return rank_hybrid(searcher, query, page, rescorer, blend);
    }
    let Some(rescorer) = rescorer.filter(|_| page.sort_key == SortKey::Score && page.limit > 0)
    else {
        return Ok(searcher.search(query, page)?);
    };
    let mut collected = searcher.search(
        query,
        &PageCollector {
            limit: page.limit.max(RESCORED_COUNT),
            after: None,
            ..page.clone()
        },
    )?;
    let entries = &mut collected.entries;
    // Behind the candidates the order is by score alone.
    let last_position = entries.last().map(|entry| SortPosition {
        weak: false,
        ..entry.position.clone()
    });
    let read_count = entries.len() as u64;
    let again = entries.len().min(RESCORED_COUNT);
    rescorer.rescore(searcher, &mut entries[..again])?;
    entries[..again].sort_by(|left, right| compare_sort_positions(&left.position, &right.position));
    if let Some(after) = &page.after {
        let after = &refresh_page_position(after, entries);
        entries.retain(|entry| compare_sort_positions(after, &entry.position).is_lt());
        let missing = page.limit.saturating_sub(entries.len());
        if missing > 0 && collected.group_count > read_count {
            let deepest = last_position.ok_or_else(|| {
                TantivyError::InternalError("matches were counted but not collected".into())
            })?;
            let further = unrescored_collector(page, after, deepest, missing);
            let mut further = searcher.search(query, &further)?.entries;
            further.retain(|entry| compare_sort_positions(after, &entry.position).is_lt());
            entries.append(&mut further);
        }
    }
    entries.truncate(page.limit);
    Ok(collected)
}

/// Creates a collector of `count` matches after a position and behind the candidates, the last of which is at
/// `last_rescored`. There the order is by first score alone.
fn unrescored_collector(
    page: &PageCollector,
    after: &SortPosition,
    last_rescored: SortPosition,
    count: usize,
) -> PageCollector {
    let by_score_alone = SortPosition {
        weak: false,
        ..after.clone()
    };
    PageCollector {
        limit: count,
        after: Some(
            match compare_sort_positions(&by_score_alone, &last_rescored).is_lt() {
                true => last_rescored,
                false => by_score_alone,
            },
        ),
        facets: RequestedFacets::default(),
        ..page.clone()
    }
}
