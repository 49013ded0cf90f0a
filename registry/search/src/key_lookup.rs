//! Look-ups of agents by an exact key, for decisions, whoever may see the agents.

use tantivy::schema::IndexRecordOption;
use tantivy::{DocSet as _, TERMINATED};
use uuid::Uuid;

use super::Index;
use super::agent_id_reader::AgentIdReader;
use super::error::IndexError;
use super::keys::KeyKind;

impl Index {
    /// The ids of all agents with this exact look-up key, including hidden ones, in order; `None` if there are more
    /// than `limit`. Changes that are not applied yet are not considered.
    ///
    /// # Errors
    /// If the index is missing, behind or cannot be read.
    pub fn agent_ids_by_key(
        &self,
        key: &str,
        limit: usize,
    ) -> Result<Option<Vec<Uuid>>, IndexError> {
        let inner = &*self.0;
        let view = inner.current_view()?;
        let term = inner.fields.keys.term(KeyKind::Lookup, key);
        let mut ids = Vec::new();
        for reader in view.searcher.segment_readers() {
            let index = reader.inverted_index(term.field())?;
            let Some(mut postings) = index.read_postings(&term, IndexRecordOption::Basic)? else {
                continue;
            };
            let id_reader = AgentIdReader::open(reader)?;
            let mut document = postings.doc();
            while document != TERMINATED {
                if reader
                    .alive_bitset()
                    .is_none_or(|alive| alive.is_alive(document))
                {
                    ids.push(id_reader.get(document));
                }
                if ids.len() > limit {
                    return Ok(None);
                }
                document = postings.advance();
            }
        }
        ids.sort_unstable();
        ids.dedup();
        Ok(Some(ids))
    }
}
