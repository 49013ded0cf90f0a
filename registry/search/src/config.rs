//! Resource limits of the index.

use super::facets::FacetLimits;

/// Resource limits of the index.
#[derive(Debug, Clone)]
pub struct IndexConfig {
    /// Memory in bytes for uncommitted changes before they are flushed; at least 16 MiB.
    pub writer_memory: usize,
    /// The same during a rebuild, over all its threads; at least 16 MiB each. The memory is allocated as it is filled,
    /// so only large registries use all of it. The more there is, the fewer times a document is rewritten when segments
    /// are merged.
    pub rebuild_memory: usize,
    /// Writing threads of a rebuild, 1 to 8; other changes are written by one thread.
    pub rebuild_threads: usize,
    /// Memory in bytes for the bit sets that filters share.
    pub filter_cache: u64,
    /// Limits of the precomputed facet values.
    pub facets: FacetLimits,
    /// Most changed agents that searches can hide until they are committed. Beyond it searches fail with
    /// [`IndexError::Behind`](super::IndexError::Behind).
    pub overlay_limit: usize,
}

impl Default for IndexConfig {
    fn default() -> Self {
        Self {
            writer_memory: 64 * 1024 * 1024,
            rebuild_memory: 256 * 1024 * 1024,
            rebuild_threads: 2,
            filter_cache: 32 * 1024 * 1024,
            facets: FacetLimits::default(),
            overlay_limit: 160_000,
        }
    }
}
