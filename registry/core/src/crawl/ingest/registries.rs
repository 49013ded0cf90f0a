//! Ingest of the registries that a catalog names (docs/model.md#registries-in-catalogs).

use a2a_crawler::FetchedCatalog;
use a2a_crawler::catalog::MAX_REGISTRIES;
use a2a_registry_domain::coverage::CoverageLevel;
use a2a_registry_store::Write;
use a2a_registry_store::entity::peer_candidate;
use a2a_registry_store::peer_candidates::peer_candidates_of;

use crate::crawl::ingest::group::Group;
use crate::error::Result;
use crate::visibility::stands_behind_catalogs;

/// Stores the registries that a catalog names as candidates for peers, replacing those that it named before; returns
/// whether anything has changed. Nothing is stored for a domain that is not proved, or whose catalog came from a place
/// that the proof does not cover.
pub async fn ingest_registries(
    write: &Write,
    group: &Group,
    source: i64,
    fetched: &FetchedCatalog,
) -> Result<bool> {
    let catalog = group.sources.get(&source);
    let domain = catalog.and_then(|row| group.domains.get(&row.domain_id));
    let is_covered = group.coverage_of(source) == CoverageLevel::Covered;
    let is_trusted = is_covered && domain.is_some_and(stands_behind_catalogs);
    if !is_trusted || !group.is_catalog(source) {
        return Ok(false);
    }
    let known = peer_candidates_of(write, source).await?;
    let named = fetched.registries.iter();
    let mut rows: Vec<peer_candidate::Model> = named
        .map(|registry| peer_candidate::Model {
            catalog_id: source,
            identifier: registry.identifier.clone(),
            display_name: registry.display_name.clone(),
            url: registry.url.to_string(),
        })
        .collect();
    if !fetched.complete {
        // A missing one may be in a part that was not read.
        let is_missing = |row: &&peer_candidate::Model| {
            let mut named = fetched.registries.iter();
            !named.any(|registry| registry.identifier == row.identifier)
        };
        rows.extend(known.iter().filter(is_missing).cloned());
        rows.truncate(MAX_REGISTRIES);
    }
    let has_changed = rows.len() != known.len() || !rows.iter().all(|row| known.contains(row));
    if has_changed {
        write.peer_candidates_replace(source, rows).await?;
    }
    Ok(has_changed)
}
