//! Segment columns that nearly every search reads, each opened once.

use std::sync::{Arc, OnceLock};

use a2a_registry_domain::facet::{Facet, FacetMap};
use tantivy::SegmentReader;

use super::super::agent_id_reader::AgentIdReader;
use super::column_counting::FacetColumn;

#[derive(Default)]
pub(crate) struct SegmentColumns {
    agent_ids: OnceLock<Arc<AgentIdReader>>,
    facets: FacetMap<OnceLock<Arc<FacetColumn>>>,
}

impl SegmentColumns {
    /// The agent ids of the segment of `reader`.
    pub fn agent_ids(&self, reader: &SegmentReader) -> tantivy::Result<Arc<AgentIdReader>> {
        open_once(&self.agent_ids, || AgentIdReader::open(reader))
    }

    pub fn facet_column(
        &self,
        reader: &SegmentReader,
        facet: Facet,
    ) -> tantivy::Result<Arc<FacetColumn>> {
        open_once(&self.facets[facet], || {
            FacetColumn::open(reader, facet.as_str())
        })
    }
}

fn open_once<T>(
    cell: &OnceLock<Arc<T>>,
    open: impl FnOnce() -> tantivy::Result<T>,
) -> tantivy::Result<Arc<T>> {
    if let Some(known) = cell.get() {
        return Ok(Arc::clone(known));
    }
    let opened = Arc::new(open()?);
    Ok(Arc::clone(cell.get_or_init(|| opened)))
}
