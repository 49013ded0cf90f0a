//! Order by relevance: the best candidates of the first scoring are rescored and come first, the others follow
//! unchanged. Rescoring never reduces a score, so all pages together are one order by score.
//!
//! A candidate that covers too little of the query is weak, and comes after all others. If any candidate is weak, so
//! are all matches behind the candidates, which keeps the order across pages.

use tantivy::{Score, Searcher, TantivyError};

use super::blend::{Blend, blended};
use super::collect::{CollectedPage, Order, PageCollector, PageEntry, compare};
use super::error::IndexError;
use super::facets::Facets;
use super::filtered::FilteredQuery;
use super::request::SortPosition;
use super::rescore::{RESCORED, Rescorer};

/// The first `page.top` matches after `page.after`, the total and the facets.
pub(super) fn ranked(
    searcher: &Searcher,
    query: &FilteredQuery,
    page: &PageCollector,
    rescorer: Option<&Rescorer>,
    blend: Option<&Blend>,
) -> Result<CollectedPage, IndexError> {
    if let Some(blend) = blend.filter(|_| page.order == Order::Score && page.top > 0) {
        return blended(searcher, query, page, rescorer, blend);
    }
    let Some(rescorer) = rescorer.filter(|_| page.order == Order::Score && page.top > 0) else {
        return Ok(searcher.search(query, page)?);
    };
    let mut collected = searcher.search(
        query,
        &PageCollector {
            order: page.order,
            top: page.top.max(RESCORED),
            after: None,
            facets: page.facets.clone(),
            apart: None,
            groups: page.groups.clone(),
        },
    )?;
    let entries = &mut collected.entries;
    let deepest = entries.last().map(|entry| entry.position.clone());
    let read = entries.len() as u64;
    let again = entries.len().min(RESCORED);
    rescorer.rescore(searcher, &mut entries[..again])?;
    let enough = rescorer.enough_behind(&entries[..again]);
    mark_weak(&mut entries[again..], enough);
    entries[..again].sort_by(|left, right| compare(&left.position, &right.position));
    if let Some(after) = &page.after {
        let after = &current_position(after, entries);
        entries.retain(|entry| compare(after, &entry.position).is_lt());
        let missing = page.top.saturating_sub(entries.len());
        if missing > 0 && collected.groups > read {
            let deepest = deepest.ok_or_else(|| {
                TantivyError::InternalError("matches were counted and none was kept".into())
            })?;
            let further = behind(page, after, deepest, missing);
            let mut further = searcher.search(query, &further)?.entries;
            mark_weak(&mut further, enough);
            further.retain(|entry| compare(after, &entry.position).is_lt());
            entries.append(&mut further);
        }
    }
    entries.truncate(page.top);
    Ok(collected)
}

/// The position of the same agent among these entries, if it is one of them, else the given position: any change of the
/// index moves the scores of all agents a little, and the page continues after the same agent.
pub(super) fn current_position(after: &SortPosition, entries: &[PageEntry]) -> SortPosition {
    let mut positions = entries.iter().map(|entry| &entry.position);
    let current = positions.find(|position| position.id == after.id);
    current.unwrap_or(after).clone()
}

/// Collects `count` matches after a position and behind the candidates, the last of which is at `deepest`. The order
/// there is by first score alone.
fn behind(
    page: &PageCollector,
    after: &SortPosition,
    deepest: SortPosition,
    count: usize,
) -> PageCollector {
    let by_score_alone = SortPosition {
        weak: false,
        ..after.clone()
    };
    PageCollector {
        order: page.order,
        top: count,
        after: Some(match compare(&by_score_alone, &deepest).is_lt() {
            true => deepest,
            false => by_score_alone,
        }),
        facets: Facets::default(),
        apart: None,
        groups: page.groups.clone(),
    }
}

/// Marks entries, none of them rescored, whose full-text score is below `enough` as weak.
pub(super) fn mark_weak(entries: &mut [PageEntry], enough: Score) {
    for entry in entries {
        entry.position.weak = entry.full_text_score() < enough;
    }
}
