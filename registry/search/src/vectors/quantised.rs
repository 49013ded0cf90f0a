//! Vectors in a byte a number: how they are kept, and how near they are to a query.

/// The vectors of one agent: of its card, then of its skills in the card's order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentVectors {
    /// For each vector its scale and its numbers.
    bytes: Vec<u8>,
    dimensions: usize,
}

/// The most vectors of one agent: the card's, and one for each of its first skills.
pub const MAX_VECTORS: usize = 17;
/// The most numbers in a vector.
pub const MAX_DIMENSIONS: usize = 4096;
/// The bytes of a scale, a little-endian `f32`.
const SCALE: usize = size_of::<f32>();

/// Bytes that are not the vectors of an agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{bytes} bytes are not 1 to {MAX_VECTORS} vectors of {dimensions} numbers")]
pub struct NotVectors {
    bytes: usize,
    dimensions: usize,
}

/// How near an agent is to a query, as cosines.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Similarity {
    /// Of the whole card.
    pub card: f32,
    /// Of the best skill, where there is one, and which that is, from 0.
    pub skill: Option<(usize, f32)>,
}

impl Similarity {
    /// The mean of both; without skills the card's.
    pub fn mean(self) -> f32 {
        self.skill
            .map_or(self.card, |(_, skill)| f32::midpoint(self.card, skill))
    }
}

impl AgentVectors {
    /// Quantises vectors of unit length, the card's first; those beyond [`MAX_VECTORS`] are left out.
    ///
    /// # Errors
    /// Where there are none, or they are not all as long as the first, or longer than [`MAX_DIMENSIONS`].
    pub fn new(vectors: &[Vec<f32>]) -> Result<Self, NotVectors> {
        let dimensions = vectors.first().map_or(0, Vec::len);
        let kept = &vectors[..vectors.len().min(MAX_VECTORS)];
        let mut bytes = Vec::with_capacity(kept.len() * stride(dimensions));
        for vector in kept {
            if vector.len() != dimensions {
                return Err(NotVectors {
                    bytes: vector.len(),
                    dimensions,
                });
            }
            quantise(vector, &mut bytes);
        }
        Self::from_bytes(bytes, dimensions)
    }

    /// Vectors as they were kept.
    ///
    /// # Errors
    /// Where these are no whole vectors, none, or too many.
    pub fn from_bytes(bytes: Vec<u8>, dimensions: usize) -> Result<Self, NotVectors> {
        let whole = bytes.len().is_multiple_of(stride(dimensions));
        let fits = (1..=MAX_VECTORS).contains(&(bytes.len() / stride(dimensions)));
        if whole && fits && (1..=MAX_DIMENSIONS).contains(&dimensions) {
            return Ok(Self { bytes, dimensions });
        }
        Err(NotVectors {
            bytes: bytes.len(),
            dimensions,
        })
    }

    /// The vectors as they are kept: for each its scale and then a byte a number.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.bytes.len() / stride(self.dimensions)
    }

    /// Numbers in a vector.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// The numbers of each vector, without its scale: enough for everything that only asks for directions.
    pub(super) fn directions(&self) -> impl Iterator<Item = &[u8]> {
        let vectors = self.bytes.chunks_exact(stride(self.dimensions));
        vectors.map(|vector| &vector[SCALE..])
    }
}

/// The bytes of one vector of so many numbers.
pub(super) fn stride(dimensions: usize) -> usize {
    SCALE + dimensions
}

/// How near the vectors in these bytes are to a query of unit length.
#[inline(always)]
pub(super) fn similarity(bytes: &[u8], query: &[f32]) -> Similarity {
    // Written as a loop: the closure of an iterator may be compiled on its own, for all processors.
    let mut similarity = Similarity {
        card: 0.0,
        skill: None,
    };
    let vectors = bytes.chunks_exact(stride(query.len()));
    for (place, vector) in vectors.enumerate() {
        let near = product(vector, query);
        match (place.checked_sub(1), similarity.skill) {
            (None, _) => similarity.card = near,
            // Of equal ones the first.
            (Some(_), Some((_, best))) if near.total_cmp(&best).is_le() => {}
            (Some(skill), _) => similarity.skill = Some((skill, near)),
        }
    }
    similarity
}

fn quantise(vector: &[f32], bytes: &mut Vec<u8>) {
    let largest = vector
        .iter()
        .fold(0.0_f32, |largest, value| largest.max(value.abs()));
    let scale = largest / f32::from(i8::MAX);
    bytes.extend(scale.to_le_bytes());
    bytes.extend(vector.iter().map(|value| {
        // Nothing but zeros has no scale; a number is at most 127 scales, by how the scale was chosen.
        let steps = if scale > 0.0 {
            (value / scale).round()
        } else {
            0.0
        };
        (steps as i8).cast_unsigned()
    }));
}

/// The product of a kept vector with a query, summed in lanes so that the compiler can use wide registers.
#[inline(always)]
fn product(vector: &[u8], query: &[f32]) -> f32 {
    const LANES: usize = 16;
    let Some((scale, numbers)) = vector.split_first_chunk::<SCALE>() else {
        return 0.0;
    };
    let mut sums = [0.0_f32; LANES];
    let (whole, rest) = numbers.as_chunks::<LANES>();
    let (query, query_rest) = query.as_chunks::<LANES>();
    for (numbers, query) in whole.iter().zip(query) {
        for lane in 0..LANES {
            sums[lane] += f32::from(numbers[lane].cast_signed()) * query[lane];
        }
    }
    let mut sum = 0.0;
    for (number, query) in rest.iter().zip(query_rest) {
        sum += f32::from(number.cast_signed()) * query;
    }
    for lane in sums {
        sum += lane;
    }
    f32::from_le_bytes(*scale) * sum
}

#[cfg(test)]
#[path = "tests/quantised.rs"]
mod tests;
