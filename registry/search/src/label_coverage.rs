//! Label coverage: whether every agent of the index has a label.

use tantivy::schema::IndexRecordOption;
use tantivy::{DocSet, TERMINATED};

use super::Index;
use super::error::IndexError;
use super::keys::KeyKind;

impl Index {
    /// Whether every agent of the last commit has this visibility label; true without an index, which will be rebuilt.
    pub fn all_agents_have_label(&self, label: &str) -> Result<bool, IndexError> {
        let inner = &*self.0;
        let view = match inner.current_view() {
            Err(IndexError::NeedsRebuild { .. }) => return Ok(true),
            view => view?,
        };
        let term = inner.fields.keys.term(KeyKind::VisibleTo, label);
        for reader in view.searcher.segment_readers() {
            let terms = reader.inverted_index(term.field())?;
            let mut labeled_count = 0;
            if let Some(mut postings) = terms.read_postings(&term, IndexRecordOption::Basic)? {
                let alive = reader.alive_bitset();
                while postings.doc() != TERMINATED {
                    labeled_count +=
                        u32::from(alive.is_none_or(|alive| alive.is_alive(postings.doc())));
                    postings.advance();
                }
            }
            if labeled_count < reader.num_docs() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
