//! Order by relevance: the best candidates of the first scoring are rescored and come first, the others follow
//! unchanged. Rescoring never reduces a score, so all pages together are one order by score.

use tantivy::{Searcher, TantivyError};

use super::blend::{Blend, blended};
use super::collect::{CollectedPage, Order, PageCollector, compare};
use super::error::IndexError;
use super::facets::Facets;
use super::filtered::FilteredQuery;
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
        },
    )?;
    let entries = &mut collected.entries;
    let deepest = entries.last().map(|entry| entry.position.clone());
    let read = entries.len() as u64;
    let again = entries.len().min(RESCORED);
    rescorer.rescore(searcher, &mut entries[..again])?;
    entries[..again].sort_by(|left, right| compare(&left.position, &right.position));
    if let Some(after) = &page.after {
        entries.retain(|entry| compare(after, &entry.position).is_lt());
        let missing = page.top.saturating_sub(entries.len());
        if missing > 0 && collected.total > read {
            let deepest = deepest.ok_or_else(|| {
                TantivyError::InternalError("matches were counted and none was kept".into())
            })?;
            let further = PageCollector {
                order: page.order,
                top: missing,
                after: Some(match compare(after, &deepest).is_lt() {
                    true => deepest,
                    false => after.clone(),
                }),
                facets: Facets::default(),
                apart: None,
            };
            entries.extend(searcher.search(query, &further)?.entries);
        }
    }
    entries.truncate(page.top);
    Ok(collected)
}
