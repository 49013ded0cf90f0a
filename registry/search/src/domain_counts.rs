//! Domain counts: the number of distinct domains among the agents that a caller finds.

use std::collections::HashSet;

use a2a_registry_domain::facet::Facet;
use tantivy::columnar::StrColumn;

use super::Index;
use super::doc_bit_set::{DocBitSet, VisibleDocs};
use super::error::IndexError;

impl Index {
    /// Counts the domains of all agents that a search without filters finds; a facet lists only frequent values.
    pub fn count_domains(&self, visible_to: &[String]) -> Result<u64, IndexError> {
        let inner = &*self.0;
        let view = inner.current_view()?;
        let mut lazy_agents = inner.visible_agents(&view, visible_to)?;
        let visible = lazy_agents.get_or_compute(&view.searcher)?;
        let mut segments: Vec<(StrColumn, DocBitSet)> = Vec::new();
        for (reader, visible_docs) in visible.segments_with_docs() {
            if let Some(column) = reader.fast_fields().str(Facet::Domain.as_str())? {
                let held = visible_ordinals(&column, visible_docs);
                segments.push((column, held));
            }
        }
        // Within a segment each value has one ordinal, so texts are only compared across segments.
        if let [(_, held)] = segments.as_slice() {
            return Ok(u64::from(held.len()));
        }
        let mut domains: HashSet<Vec<u8>> = HashSet::new();
        for (column, held) in &segments {
            let ordinals: Vec<u64> = held.iter().map(u64::from).collect();
            column
                .dictionary()
                .sorted_ords_to_term_cb(&ordinals, |domain| {
                    if !domains.contains(domain) {
                        domains.insert(domain.to_vec());
                    }
                })
                .map_err(tantivy::TantivyError::from)?;
        }
        Ok(domains.len() as u64)
    }
}

fn visible_ordinals(column: &StrColumn, visible: &VisibleDocs) -> DocBitSet {
    let values = column.dictionary().num_terms();
    let mut ordinals = DocBitSet::empty(u32::try_from(values).unwrap_or(u32::MAX));
    for document in visible.iter() {
        for ordinal in column.ords().values_for_doc(document) {
            ordinals.insert(u32::try_from(ordinal).unwrap_or(u32::MAX));
        }
    }
    ordinals
}
