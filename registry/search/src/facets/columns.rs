//! The columns of a segment that nearly every search reads, each opened once.

use std::sync::{Arc, OnceLock};

use a2a_registry_domain::facet::{Facet, FacetMap};
use tantivy::SegmentReader;

use super::super::collect::AgentIds;
use super::column::FacetColumn;

#[derive(Default)]
pub(crate) struct SegmentColumns {
    ids: OnceLock<Arc<AgentIds>>,
    facets: FacetMap<OnceLock<Arc<FacetColumn>>>,
}

impl SegmentColumns {
    /// `reader` is that of the segment.
    pub fn ids(&self, reader: &SegmentReader) -> tantivy::Result<Arc<AgentIds>> {
        opened(&self.ids, || AgentIds::open(reader))
    }

    pub fn facet(&self, reader: &SegmentReader, facet: Facet) -> tantivy::Result<Arc<FacetColumn>> {
        opened(&self.facets[facet], || {
            FacetColumn::open(reader, facet.as_str())
        })
    }
}

fn opened<T>(
    known: &OnceLock<Arc<T>>,
    open: impl FnOnce() -> tantivy::Result<T>,
) -> tantivy::Result<Arc<T>> {
    if let Some(known) = known.get() {
        return Ok(Arc::clone(known));
    }
    let opened = Arc::new(open()?);
    Ok(Arc::clone(known.get_or_init(|| opened)))
}
