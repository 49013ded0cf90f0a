//! Number of facet values of each agent of a segment, to sum over sets of agents.

use tantivy::SegmentReader;
use tantivy::columnar::ColumnIndex;

use super::super::doc_bit_set::DocBitSet;

pub(crate) enum ValuesPerAgent {
    /// Every agent has exactly one value.
    One,
    /// The numbers as bit planes: the first set contains the agents with an odd number, the next one their second bit,
    /// and so on.
    Planes(Vec<DocBitSet>),
}

impl ValuesPerAgent {
    pub fn build(reader: &SegmentReader, name: &str) -> tantivy::Result<Self> {
        let Some(column) = reader.fast_fields().str(name)? else {
            return Ok(Self::Planes(Vec::new()));
        };
        let values = &column.ords().index;
        if matches!(values, ColumnIndex::Full) {
            return Ok(Self::One);
        }
        let mut planes: Vec<DocBitSet> = Vec::new();
        for document in 0..reader.max_doc() {
            let mut rest = values.value_row_ids(document).len();
            for bit in 0.. {
                if rest == 0 {
                    break;
                }
                if bit == planes.len() {
                    planes.push(DocBitSet::empty(reader.max_doc()));
                }
                if rest % 2 == 1 {
                    planes[bit].insert(document);
                }
                rest /= 2;
            }
        }
        Ok(Self::Planes(planes))
    }

    /// Total number of values of these agents.
    pub fn sum(&self, agents: &DocBitSet) -> u64 {
        match self {
            Self::One => u64::from(agents.len()),
            Self::Planes(planes) => (0..)
                .zip(planes)
                .map(|(place, plane)| u64::from(plane.intersection_len(agents)) << place)
                .sum(),
        }
    }
}
