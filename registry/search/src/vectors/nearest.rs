//! Nearest neighbors of a query: selects candidates by their codes, then computes similarities from their vectors.

use std::sync::Arc;

use a2a_registry_simd::run_vectorized;
use uuid::Uuid;

use super::chunk::{CHUNK_SLOTS, NOT_COMPARED, SlotChunk};
use super::error::VectorsError;
use super::file::ProcessVectorFile;
use super::quantized::{
    AgentSimilarity, MAX_DIMENSIONS, MAX_VECTORS, QuantizedQuery, compute_similarity,
    decode_unit_vector, vector_byte_size,
};
use super::slots::SlotBitSet;
use super::{codes, locate_slot};

/// Maximum number of candidates whose vectors are compared.
pub const MAX_NEAREST: usize = 240;

/// A snapshot of the vectors for one search.
#[derive(Debug, Clone)]
pub struct VectorSnapshot {
    pub(super) chunks: Vec<Arc<SlotChunk>>,
    pub(super) file: Arc<ProcessVectorFile>,
    pub(super) dimensions: usize,
    pub(super) version: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Neighbor {
    pub slot: u32,
    pub similarity: AgentSimilarity,
}

impl VectorSnapshot {
    /// Version of the vectors, which rises with every change.
    pub fn version(&self) -> u64 {
        self.version
    }

    pub fn slot_count(&self) -> usize {
        let last = self.chunks.last().map_or(0, |chunk| chunk.ids.len());
        self.chunks.len().saturating_sub(1) * CHUNK_SLOTS + last
    }

    /// The agent in a slot; the nil id if there is no such slot.
    pub fn agent_id(&self, slot: u32) -> Uuid {
        let (chunk, place) = locate_slot(slot);
        let chunk = self.chunks.get(chunk);
        let id = chunk.and_then(|chunk| chunk.ids.get(place));
        id.copied().unwrap_or_default()
    }

    /// Finds the [`MAX_NEAREST`] allowed agents whose codes differ least from the query's code, with the similarities
    /// of their vectors, in slot order. Agents at equal distance are chosen by id.
    pub fn find_nearest(
        &self,
        query: &[f32],
        allowed: &SlotBitSet,
    ) -> Result<Vec<Neighbor>, VectorsError> {
        if query.len() != self.dimensions {
            return Err(VectorsError::Dimensions(query.len()));
        }
        let code = codes::query_vector_code(query);
        let mut distances = vec![NOT_COMPARED; self.slot_count()];
        run_vectorized(
            #[inline(always)]
            || self.fill_distances(&code, allowed, &mut distances),
        );
        self.compute_similarities(query, self.nearest_slots(&distances))
    }

    /// The first vector of the agent in a slot, that of its whole card, of unit length; `None` if it has no vectors.
    pub fn card_vector(&self, slot: u32) -> Result<Option<Vec<f32>>, VectorsError> {
        let (chunk, index) = locate_slot(slot);
        let chunk = self.chunks.get(chunk);
        let Some(chunk) = chunk.filter(|chunk| index < chunk.ids.len()) else {
            return Ok(None);
        };
        let location = chunk.location(index);
        if location.count == 0 {
            return Ok(None);
        }
        let mut bytes = vec![0; vector_byte_size(self.dimensions)];
        self.file.read(&mut bytes, location.offset)?;
        Ok(Some(decode_unit_vector(&bytes)))
    }

    #[inline(always)]
    fn fill_distances(&self, code: &[u64], allowed: &SlotBitSet, distances: &mut [u16]) {
        let chunks = self.chunks.iter().zip(distances.chunks_mut(CHUNK_SLOTS));
        for (index, (chunk, distances)) in chunks.enumerate() {
            let allowed = allowed.words(index * CHUNK_SLOTS, CHUNK_SLOTS);
            chunk.update_distances(code, allowed, distances);
        }
    }

    fn nearest_slots(&self, distances: &[u16]) -> Vec<u32> {
        let mut counts = [0_usize; MAX_DIMENSIONS + 1];
        for distance in distances {
            if let Some(count) = counts.get_mut(usize::from(*distance)) {
                *count += 1;
            }
        }
        let mut room = MAX_NEAREST;
        // Slots nearer than `limit` are all among the best; of those at `limit` only some fit.
        let mut limit = counts.len();
        for (distance, count) in counts.iter().enumerate() {
            if *count > room {
                limit = distance;
                break;
            }
            room -= count;
        }
        let mut best = Vec::with_capacity(MAX_NEAREST);
        let mut equal: Vec<(Uuid, u32)> = Vec::new();
        for (slot, distance) in (0_u32..).zip(distances) {
            let distance = usize::from(*distance);
            if distance < limit && distance < counts.len() {
                best.push(slot);
            } else if distance == limit {
                let (chunk, place) = locate_slot(slot);
                equal.push((self.chunks[chunk].ids[place], slot));
            }
        }
        equal.sort_unstable();
        best.extend(equal.into_iter().take(room).map(|(_, slot)| slot));
        best.sort_unstable();
        best
    }

    fn compute_similarities(
        &self,
        query: &[f32],
        slots: Vec<u32>,
    ) -> Result<Vec<Neighbor>, VectorsError> {
        let stride = vector_byte_size(self.dimensions);
        let query = QuantizedQuery::new(query);
        let mut bytes = vec![0; MAX_VECTORS * stride];
        let neighbors = slots.into_iter().map(|slot| {
            let (chunk, place) = locate_slot(slot);
            let place = self.chunks[chunk].location(place);
            let bytes = &mut bytes[..usize::from(place.count).min(MAX_VECTORS) * stride];
            self.file.read(bytes, place.offset)?;
            let similarity = run_vectorized(
                #[inline(always)]
                || compute_similarity(bytes, &query),
            );
            Ok(Neighbor { slot, similarity })
        });
        neighbors.collect()
    }
}
