//! Nearest neighbors of a query: candidates by their codes, then similarities by their vectors.

use std::sync::Arc;

use a2a_registry_simd::widened;
use uuid::Uuid;

use super::chunk::{CHUNK, Chunk, FAR};
use super::error::VectorsError;
use super::file::VectorFile;
use super::quantised::{
    MAX_DIMENSIONS, MAX_VECTORS, QuantisedQuery, Similarity, direction, similarity, stride,
};
use super::slots::SlotBits;
use super::{codes, split};

/// The most candidates whose vectors are compared.
pub const MAX_NEAREST: usize = 240;

/// The vectors as one search sees them.
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub(super) chunks: Vec<Arc<Chunk>>,
    pub(super) file: Arc<VectorFile>,
    pub(super) dimensions: usize,
    pub(super) version: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Near {
    pub slot: u32,
    pub similarity: Similarity,
}

impl Snapshot {
    /// Rises with every change.
    pub fn version(&self) -> u64 {
        self.version
    }

    pub fn slots(&self) -> usize {
        let last = self.chunks.last().map_or(0, |chunk| chunk.ids.len());
        self.chunks.len().saturating_sub(1) * CHUNK + last
    }

    /// Nil if there is no such slot.
    pub fn id(&self, slot: u32) -> Uuid {
        let (chunk, place) = split(slot);
        let chunk = self.chunks.get(chunk);
        let id = chunk.and_then(|chunk| chunk.ids.get(place));
        id.copied().unwrap_or_default()
    }

    /// Finds the [`MAX_NEAREST`] allowed agents whose codes differ least from the query's, with the similarities of
    /// their vectors, in slot order. Agents at equal distance are chosen by id.
    pub fn nearest(&self, query: &[f32], allowed: &SlotBits) -> Result<Vec<Near>, VectorsError> {
        if query.len() != self.dimensions {
            return Err(VectorsError::Dimensions(query.len()));
        }
        let code = codes::query_code(query);
        let mut distances = vec![FAR; self.slots()];
        widened(
            #[inline(always)]
            || self.distances(&code, allowed, &mut distances),
        );
        self.compare(query, self.best(&distances))
    }

    /// The first vector of the agent in a slot, that of its whole card, of unit length; `None` if it has no vectors.
    pub fn first_vector(&self, slot: u32) -> Result<Option<Vec<f32>>, VectorsError> {
        let (chunk, place) = split(slot);
        let chunk = self.chunks.get(chunk);
        let Some(chunk) = chunk.filter(|chunk| place < chunk.ids.len()) else {
            return Ok(None);
        };
        let place = chunk.place(place);
        if place.count == 0 {
            return Ok(None);
        }
        let mut bytes = vec![0; stride(self.dimensions)];
        self.file.read(&mut bytes, place.at)?;
        Ok(Some(direction(&bytes)))
    }

    #[inline(always)]
    fn distances(&self, code: &[u64], allowed: &SlotBits, distances: &mut [u16]) {
        let chunks = self.chunks.iter().zip(distances.chunks_mut(CHUNK));
        for (index, (chunk, distances)) in chunks.enumerate() {
            let allowed = allowed.words(index * CHUNK, CHUNK);
            chunk.distances(code, allowed, distances);
        }
    }

    fn best(&self, distances: &[u16]) -> Vec<u32> {
        let mut count = [0_usize; MAX_DIMENSIONS + 1];
        for distance in distances {
            if let Some(count) = count.get_mut(usize::from(*distance)) {
                *count += 1;
            }
        }
        let mut room = MAX_NEAREST;
        // Slots nearer than `limit` are all among the best; of those at `limit` only some fit.
        let mut limit = count.len();
        for (distance, count) in count.iter().enumerate() {
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
            if distance < limit && distance < count.len() {
                best.push(slot);
            } else if distance == limit {
                let (chunk, place) = split(slot);
                equal.push((self.chunks[chunk].ids[place], slot));
            }
        }
        equal.sort_unstable();
        best.extend(equal.into_iter().take(room).map(|(_, slot)| slot));
        best.sort_unstable();
        best
    }

    fn compare(&self, query: &[f32], slots: Vec<u32>) -> Result<Vec<Near>, VectorsError> {
        let stride = stride(self.dimensions);
        let query = QuantisedQuery::new(query);
        let mut bytes = vec![0; MAX_VECTORS * stride];
        let near = slots.into_iter().map(|slot| {
            let (chunk, place) = split(slot);
            let place = self.chunks[chunk].place(place);
            let bytes = &mut bytes[..usize::from(place.count).min(MAX_VECTORS) * stride];
            self.file.read(bytes, place.at)?;
            let similarity = widened(
                #[inline(always)]
                || similarity(bytes, &query),
            );
            Ok(Near { slot, similarity })
        });
        near.collect()
    }
}
