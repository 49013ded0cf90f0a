//! Counts the distinct domains of the agents that a caller finds.

use std::collections::HashSet;

use a2a_registry_domain::facet::Facet;
use tantivy::columnar::StrColumn;

use super::Index;
use super::bits::{Bits, SeenBits};
use super::error::IndexError;

impl Index {
    /// Counts the domains of all agents that a search without filters finds; a facet lists only frequent values.
    pub fn domains(&self, visible_to: &[String]) -> Result<u64, IndexError> {
        let inner = &*self.0;
        let view = inner.view()?;
        let mut seen = inner.visible_agents(&view, visible_to)?;
        let seen = seen.agents(&view.searcher)?;
        let mut segments: Vec<(StrColumn, Bits)> = Vec::new();
        for (reader, seen) in seen.readers() {
            if let Some(column) = reader.fast_fields().str(Facet::Domain.as_str())? {
                let held = held(&column, seen);
                segments.push((column, held));
            }
        }
        // Within a segment a value has one ordinal, so texts are compared only across segments.
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

fn held(column: &StrColumn, seen: &SeenBits) -> Bits {
    let values = column.dictionary().num_terms();
    let mut held = Bits::none(u32::try_from(values).unwrap_or(u32::MAX));
    for document in seen.iter() {
        for ordinal in column.ords().values_for_doc(document) {
            held.insert(u32::try_from(ordinal).unwrap_or(u32::MAX));
        }
    }
    held
}
