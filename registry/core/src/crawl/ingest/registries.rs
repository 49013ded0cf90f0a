//! Ingest of the registries that a catalog lists (docs/find/federation.md#candidates-for-peers).

use a2a_crawler::FetchedCatalog;
use a2a_crawler::catalog::MAX_REGISTRIES;
use a2a_registry_domain::coverage::CoverageLevel;
use a2a_registry_store::WriteTransaction;
use a2a_registry_store::entity::peer_candidate;
use a2a_registry_store::peer_candidates::peer_candidates_by_catalog;

use crate::crawl::ingest::batch::IngestBatch;
use crate::error::Result;
use crate::visibility::is_catalog_authority;

/// Stores the registries that a catalog lists as candidates for peers, replacing those that it listed before; returns
/// whether anything has changed. Nothing is stored for a domain that is not verified, or whose catalog came from a
/// location that the proof does not cover.
pub async fn ingest_registries(
    write: &WriteTransaction,
    batch: &IngestBatch,
    source: i64,
    fetched: &FetchedCatalog,
) -> Result<bool> {
    let catalog = batch.sources.get(&source);
    let domain = catalog.and_then(|row| batch.domains.get(&row.domain_id));
    let is_covered = batch.source_coverage(source) == CoverageLevel::Covered;
    let is_trusted = is_covered && domain.is_some_and(is_catalog_authority);
    if !is_trusted || !batch.is_catalog_source(source) {
        return Ok(false);
    }
    let previous = peer_candidates_by_catalog(write, source).await?;
    let listed = fetched.registries.iter();
    let mut rows: Vec<peer_candidate::Model> = listed
        .map(|registry| peer_candidate::Model {
            catalog_id: source,
            identifier: registry.identifier.clone(),
            display_name: registry.display_name.clone(),
            url: registry.url.to_string(),
        })
        .collect();
    if !fetched.is_complete {
        // A missing one may be in a part that was not parsed.
        let is_missing = |row: &&peer_candidate::Model| {
            let mut listed = fetched.registries.iter();
            !listed.any(|registry| registry.identifier == row.identifier)
        };
        rows.extend(previous.iter().filter(is_missing).cloned());
        rows.truncate(MAX_REGISTRIES);
    }
    let has_changed =
        rows.len() != previous.len() || !rows.iter().all(|row| previous.contains(row));
    if has_changed {
        write.replace_peer_candidates(source, rows).await?;
    }
    Ok(has_changed)
}
