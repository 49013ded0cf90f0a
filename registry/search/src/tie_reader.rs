//! Reader of what orders documents of equal rank: in the order by relevance whether their agents answer, then the id.

use std::sync::Arc;

use a2a_registry_domain::endpoint::EndpointState;
use tantivy::columnar::Column;
use tantivy::{DocId, SegmentReader};
use uuid::Uuid;

use super::agent_id_reader::AgentIdReader;
use super::request::TieKey;

/// Name of the column with the rank by the endpoint.
pub(super) const TIE_RANK_COLUMN: &str = "tie_rank";

/// Comes after the tie keys of all agents.
pub(super) const LAST_TIE_KEY: TieKey = (u8::MAX, Uuid::max());

/// Reads the tie keys of a segment's documents.
pub(super) struct TieReader {
    ids: Arc<AgentIdReader>,
    /// The ranks by the endpoints; `None` in orders that do not regard them.
    ranks: Option<Column<u64>>,
}

impl TieReader {
    pub fn open(
        reader: &SegmentReader,
        ids: Arc<AgentIdReader>,
        by_relevance: bool,
    ) -> tantivy::Result<Self> {
        let ranks = by_relevance.then(|| reader.fast_fields().u64(TIE_RANK_COLUMN));
        Ok(Self {
            ids,
            ranks: ranks.transpose()?,
        })
    }

    pub fn get(&self, document: DocId) -> TieKey {
        let rank = self.ranks.as_ref().and_then(|ranks| ranks.first(document));
        let rank = rank.and_then(|rank| u8::try_from(rank).ok()).unwrap_or(0);
        (rank, self.ids.get(document))
    }
}

/// The rank of an agent by the values of its facet; one with an unknown value is ranked as not checked.
pub(super) fn endpoint_tie_rank(values: &[String]) -> u8 {
    let state = values.first().and_then(|value| value.parse().ok());
    state.unwrap_or(EndpointState::NotChecked).tie_rank()
}
