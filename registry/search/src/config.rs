//! Resource limits of the index.

use super::facets::FacetPrecomputationLimits;

#[derive(Debug, Clone)]
pub struct IndexConfig {
    /// Memory in bytes for uncommitted changes before they are flushed; at least 16 MiB.
    pub writer_memory: usize,
    /// The same limit for a rebuild, shared by its threads; at least 16 MiB each. Memory is allocated as it is filled,
    /// so only large registries use all of it. With more memory, merges rewrite each document less often.
    pub rebuild_memory: usize,
    /// Writing threads of a rebuild, 1 to 8. One thread writes all other changes.
    pub rebuild_threads: usize,
    /// Memory in bytes for the bit sets shared by filters.
    pub filter_cache_bytes: u64,
    pub facets: FacetPrecomputationLimits,
    /// Maximum number of changed agents that searches can hide until they are committed. Beyond it, searches fail with
    /// [`IndexError::Behind`](super::IndexError::Behind).
    pub overlay_limit: usize,
}

impl Default for IndexConfig {
    fn default() -> Self {
        Self {
            writer_memory: 64 * 1024 * 1024,
            rebuild_memory: 256 * 1024 * 1024,
            rebuild_threads: 2,
            filter_cache_bytes: 32 * 1024 * 1024,
            facets: FacetPrecomputationLimits::default(),
            overlay_limit: 160_000,
        }
    }
}
