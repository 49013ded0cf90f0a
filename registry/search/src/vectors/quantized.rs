//! Quantized vectors with one byte per number: their storage format, and their similarity to a query.

/// The vectors of an agent: the whole card's first, then those of its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentVectors {
    /// The scale and the numbers of each vector.
    bytes: Vec<u8>,
    dimensions: usize,
}

/// Maximum number of vectors of an agent: the whole card, its name and description, and its first 16 skills.
pub const MAX_VECTORS: usize = 18;
pub const MAX_DIMENSIONS: usize = 4096;
/// Bytes of a scale, a little-endian `f32`.
const SCALE_BYTES: usize = size_of::<f32>();
/// Quantization steps of a query's numbers on each side of 0.
const QUERY_STEPS: f32 = 2047.0;

/// An error for bytes or vectors that cannot be the vectors of an agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{bytes} bytes are not 1 to {MAX_VECTORS} vectors of {dimensions} numbers")]
pub struct VectorDecodeError {
    bytes: usize,
    dimensions: usize,
}

/// Similarity of an agent to a query: the cosines of the whole card and of the most similar part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AgentSimilarity {
    pub card: f32,
    /// The index, from 0, and cosine of the most similar part; `None` without parts.
    pub part: Option<(usize, f32)>,
}

impl AgentSimilarity {
    /// Mean of the whole card's cosine and the highest one.
    pub fn combined_cosine(self) -> f32 {
        let best = self.part.map_or(self.card, |(_, part)| part.max(self.card));
        f32::midpoint(self.card, best)
    }
}

impl AgentVectors {
    /// Quantizes vectors of unit length, the whole card's first, at most [`MAX_VECTORS`]; the rest are left out. Fails
    /// if there are none, if their lengths differ, or if they are longer than [`MAX_DIMENSIONS`].
    pub fn new(vectors: &[Vec<f32>]) -> Result<Self, VectorDecodeError> {
        let dimensions = vectors.first().map_or(0, Vec::len);
        let kept = &vectors[..vectors.len().min(MAX_VECTORS)];
        let mut bytes = Vec::with_capacity(kept.len() * vector_byte_size(dimensions));
        for vector in kept {
            if vector.len() != dimensions {
                return Err(VectorDecodeError {
                    bytes: vector.len(),
                    dimensions,
                });
            }
            append_quantized_vector(vector, &mut bytes);
        }
        Self::from_bytes(bytes, dimensions)
    }

    /// Reads stored vectors. Fails if the bytes are not a whole number of vectors, or are none or too many.
    pub fn from_bytes(bytes: Vec<u8>, dimensions: usize) -> Result<Self, VectorDecodeError> {
        let whole = bytes.len().is_multiple_of(vector_byte_size(dimensions));
        let fits = (1..=MAX_VECTORS).contains(&(bytes.len() / vector_byte_size(dimensions)));
        if whole && fits && (1..=MAX_DIMENSIONS).contains(&dimensions) {
            return Ok(Self { bytes, dimensions });
        }
        Err(VectorDecodeError {
            bytes: bytes.len(),
            dimensions,
        })
    }

    /// The stored bytes: for each vector its scale, then one byte per number.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn vector_count(&self) -> usize {
        self.bytes.len() / vector_byte_size(self.dimensions)
    }

    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// The quantized numbers of each vector without its scale, for uses that need only the direction.
    pub(super) fn quantized_numbers(&self) -> impl Iterator<Item = &[u8]> {
        let vectors = self.bytes.chunks_exact(vector_byte_size(self.dimensions));
        vectors.map(|vector| &vector[SCALE_BYTES..])
    }
}

/// Bytes of a vector.
pub(super) fn vector_byte_size(dimensions: usize) -> usize {
    SCALE_BYTES + dimensions
}

#[inline(always)]
pub(super) fn compute_similarity(bytes: &[u8], query: &QuantizedQuery) -> AgentSimilarity {
    // A loop, because an iterator's closure may be compiled separately, without the wide instructions.
    let mut similarity = AgentSimilarity {
        card: 0.0,
        part: None,
    };
    let vectors = bytes.chunks_exact(vector_byte_size(query.numbers.len()));
    for (place, vector) in vectors.enumerate() {
        let cosine = query.dot_product(vector);
        match (place.checked_sub(1), similarity.part) {
            (None, _) => similarity.card = cosine,
            // The first of equally similar parts is kept.
            (Some(_), Some((_, best))) if cosine.total_cmp(&best).is_le() => {}
            (Some(part), _) => similarity.part = Some((part, cosine)),
        }
    }
    similarity
}

/// Decodes a vector to unit length, so its scale does not matter.
pub(super) fn decode_unit_vector(bytes: &[u8]) -> Vec<f32> {
    let numbers = bytes.get(SCALE_BYTES..).unwrap_or_default().iter();
    let vector: Vec<f32> = numbers
        .map(|number| f32::from(number.cast_signed()))
        .collect();
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    let length = if length > 0.0 { length } else { 1.0 };
    vector.into_iter().map(|value| value / length).collect()
}

fn append_quantized_vector(vector: &[f32], bytes: &mut Vec<u8>) {
    let largest = vector
        .iter()
        .fold(0.0_f32, |largest, value| largest.max(value.abs()));
    let scale = largest / f32::from(i8::MAX);
    bytes.extend(scale.to_le_bytes());
    bytes.extend(vector.iter().map(|value| {
        // A vector of zeros has no scale; any other number is at most 127 steps, because the scale is chosen so.
        let steps = if scale > 0.0 {
            (value / scale).round()
        } else {
            0.0
        };
        (steps as i8).cast_unsigned()
    }));
}

/// A query in whole numbers. Its products with quantized vectors are sums of small integers: the compiler may add them
/// in any order, and every processor gets the same result.
#[derive(Debug, Clone)]
pub(super) struct QuantizedQuery {
    /// 12 bits each, so that no sum of [`MAX_DIMENSIONS`] products overflows.
    numbers: Vec<i16>,
    scale: f32,
}

impl QuantizedQuery {
    /// Quantizes a query of at most [`MAX_DIMENSIONS`] numbers.
    pub fn new(query: &[f32]) -> Self {
        let most = query
            .iter()
            .fold(0.0, |most: f32, value| most.max(value.abs()));
        let scale = most / QUERY_STEPS;
        let number = |value: &f32| match scale > 0.0 {
            true => (value / scale).round() as i16,
            false => 0,
        };
        Self {
            numbers: query.iter().map(number).collect(),
            scale,
        }
    }

    #[inline(always)]
    fn dot_product(&self, vector: &[u8]) -> f32 {
        let Some((scale, numbers)) = vector.split_first_chunk::<SCALE_BYTES>() else {
            return 0.0;
        };
        let mut sum = 0_i32;
        for (number, query) in numbers.iter().zip(&self.numbers) {
            sum += i32::from(i16::from(number.cast_signed())) * i32::from(*query);
        }
        f32::from_le_bytes(*scale) * self.scale * sum as f32
    }
}

#[cfg(test)]
#[path = "tests/quantised.rs"]
mod tests;
