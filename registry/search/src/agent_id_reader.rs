//! Ids of agents, read from the columns of a segment.

use tantivy::columnar::Column;
use tantivy::{DocId, SegmentReader};
use uuid::Uuid;

/// Reads the agent ids of a segment's documents.
pub(super) struct AgentIdReader {
    high: Column<u64>,
    low: Column<u64>,
}

impl AgentIdReader {
    pub fn open(reader: &SegmentReader) -> tantivy::Result<Self> {
        let fast = reader.fast_fields();
        Ok(Self {
            high: fast.u64("id_high")?,
            low: fast.u64("id_low")?,
        })
    }

    pub fn get(&self, document: DocId) -> Uuid {
        let half = |column: &Column<u64>| column.first(document).unwrap_or(0);
        Uuid::from_u64_pair(half(&self.high), half(&self.low))
    }
}
