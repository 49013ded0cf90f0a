//! How many values of a facet each agent of a segment carries, for the sum over a set of agents.

use tantivy::SegmentReader;
use tantivy::columnar::ColumnIndex;

use super::super::bits::Bits;

pub(crate) enum ValuesPerAgent {
    /// Every agent carries exactly one value.
    One,
    /// The numbers as bit planes: the first set holds the agents whose number is odd, the next one their second bit,
    /// and so on.
    Planes(Vec<Bits>),
}

impl ValuesPerAgent {
    pub fn of(reader: &SegmentReader, name: &str) -> tantivy::Result<Self> {
        let Some(column) = reader.fast_fields().str(name)? else {
            return Ok(Self::Planes(Vec::new()));
        };
        let values = &column.ords().index;
        if matches!(values, ColumnIndex::Full) {
            return Ok(Self::One);
        }
        let mut planes: Vec<Bits> = Vec::new();
        for document in 0..reader.max_doc() {
            let mut rest = values.value_row_ids(document).len();
            for place in 0.. {
                if rest == 0 {
                    break;
                }
                if place == planes.len() {
                    planes.push(Bits::none(reader.max_doc()));
                }
                if rest % 2 == 1 {
                    planes[place].insert(document);
                }
                rest /= 2;
            }
        }
        Ok(Self::Planes(planes))
    }

    /// Total number of values that these agents carry.
    pub fn sum(&self, agents: &Bits) -> u64 {
        match self {
            Self::One => u64::from(agents.len()),
            Self::Planes(planes) => (0..)
                .zip(planes)
                .map(|(place, plane)| u64::from(plane.common(agents)) << place)
                .sum(),
        }
    }
}
