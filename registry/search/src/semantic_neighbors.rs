//! Semantic neighbors: the agents whose vectors are nearest to a query's, as a second source of matches besides full
//! text.

use std::collections::HashMap;
use std::sync::Arc;

use moka::sync::Cache;
use tantivy::index::SegmentId;
use tantivy::query::{EnableScoring, Query, Weight};
use tantivy::{DocId, Score, Searcher, SegmentReader};

use super::doc_bit_set::DocBitSet;
use super::error::IndexError;
use super::filter::DocumentFilter;
use super::request::SemanticQuery;
use crate::vectors::{AgentSimilarity, NO_SLOT, Neighbor, SlotBitSet, VectorStore};

/// Maximum total size of cached slot tables, in bytes; each table has four bytes per document. Tables of merged
/// segments stay until they are evicted.
const SLOT_CACHE_BYTES: u64 = 64 * 1024 * 1024;

/// Number of nearest neighbors that match regardless of their similarity.
pub(super) const MIN_NEIGHBORS: usize = 20;

/// Rank, from 0, of the neighbor from which similarities no longer count as near.
const FAR_RANK: usize = 49;
/// Score of the neighbor at [`FAR_RANK`]. The nearest scores 1; the others lie between 1 and 0.
const FAR_SCORE: Score = 0.01;

/// Cache of the documents' slots, by number of the [`VectorStore`](crate::vectors::VectorStore) and by segment.
pub(super) type VectorSlotCache = Cache<(u64, SegmentId), Arc<[u32]>>;

pub(super) fn new_slot_cache() -> VectorSlotCache {
    Cache::builder()
        .max_capacity(SLOT_CACHE_BYTES)
        .weigher(|_, table: &Arc<[u32]>| u32::try_from(size_of_val(&**table)).unwrap_or(u32::MAX))
        .build()
}

/// The slots of a segment's documents. The ids are read once per segment.
pub(super) fn segment_vector_slots(
    slot_cache: &VectorSlotCache,
    vectors: &VectorStore,
    reader: &SegmentReader,
) -> tantivy::Result<Arc<[u32]>> {
    let key = (vectors.unique_id(), reader.segment_id());
    if let Some(slots) = slot_cache.get(&key) {
        return Ok(slots);
    }
    let ids = super::agent_id_reader::AgentIdReader::open(reader)?;
    let slots: Arc<[u32]> = vectors
        .assign_slots((0..reader.max_doc()).map(|document| ids.get(document)))
        .into();
    slot_cache.insert(key, Arc::clone(&slots));
    Ok(slots)
}

/// The nearest neighbors in a segment with their similarities, ascending by document.
pub(super) type SegmentNeighbors = Arc<[(DocId, AgentSimilarity)]>;

/// The nearest neighbors of a query, as documents of one state of the index.
#[derive(Debug, Clone, Default)]
pub(super) struct SemanticNeighbors {
    /// Neighbors by segment; segments without neighbors are missing.
    segments: HashMap<SegmentId, SegmentNeighbors>,
    /// Similarities that scale the scores: of the nearest neighbor; of the one at [`FAR_RANK`] or the last one before
    /// it; and the least similarity that counts.
    best_similarity: f32,
    far_similarity: f32,
    cutoff: f32,
    /// The similarities of all neighbors, descending.
    similarities: Vec<f32>,
}

impl SemanticNeighbors {
    /// Finds the nearest neighbors of a query among the agents that pass `filter` and match `required`. Those below
    /// the similarity cutoff are left out, except for the nearest [`MIN_NEIGHBORS`].
    pub fn find_nearest(
        searcher: &Searcher,
        filter: &DocumentFilter,
        required: Option<&dyn Query>,
        semantic: &SemanticQuery,
        slot_cache: &VectorSlotCache,
    ) -> Result<Self, IndexError> {
        let readers = searcher.segment_readers();
        let required_weight =
            required.map(|query| query.weight(EnableScoring::disabled_from_searcher(searcher)));
        let required_weight = required_weight.transpose()?;
        let mut segments = Vec::with_capacity(readers.len());
        for reader in readers {
            let mut bits = Arc::unwrap_or_clone(filter.matching_docs(reader)?);
            if let Some(demands) = &required_weight {
                bits.intersect_with(&matching_docs(demands.as_ref(), reader)?);
            }
            segments.push((
                reader.segment_id(),
                bits,
                segment_vector_slots(slot_cache, &semantic.vectors, reader)?,
            ));
        }
        // Take the snapshot after the tables, so that it contains every slot in them.
        let snapshot = semantic.vectors.snapshot();
        let mut allowed_slots = SlotBitSet::with_capacity(snapshot.slot_count());
        for (_, bits, slots) in &segments {
            bits.iter()
                .for_each(|document| allowed_slots.insert(document_slot(slots, document)));
        }
        let mut neighbors = snapshot.find_nearest(&semantic.query, &allowed_slots)?;
        neighbors.sort_unstable_by(|left, right| {
            let by_similarity = right
                .similarity
                .combined_cosine()
                .total_cmp(&left.similarity.combined_cosine());
            by_similarity.then_with(|| {
                snapshot
                    .agent_id(left.slot)
                    .cmp(&snapshot.agent_id(right.slot))
            })
        });
        let mut neighbor_set = Self::with_similarity_scale(&neighbors, semantic.cutoff);
        let close = neighbors.partition_point(|near| neighbor_set.is_close(near.similarity));
        neighbors.truncate(close.max(MIN_NEIGHBORS));
        let mut chosen_slots = SlotBitSet::with_capacity(snapshot.slot_count());
        let by_slot: HashMap<u32, AgentSimilarity> = neighbors
            .iter()
            .map(|near| {
                chosen_slots.insert(near.slot);
                (near.slot, near.similarity)
            })
            .collect();
        for (segment, bits, slots) in segments {
            let documents = documents_in_slots(&slots, &chosen_slots);
            let segment_neighbors: SegmentNeighbors = documents
                .filter(|document| bits.contains(*document))
                .filter_map(|document| {
                    Some((document, *by_slot.get(&document_slot(&slots, document))?))
                })
                .collect();
            if !segment_neighbors.is_empty() {
                neighbor_set.segments.insert(segment, segment_neighbors);
            }
        }
        Ok(neighbor_set)
    }

    /// Creates an empty set scaled by these similarities, which are in descending order.
    fn with_similarity_scale(neighbors: &[Neighbor], cutoff: f32) -> Self {
        let similarity = |near: &Neighbor| near.similarity.combined_cosine();
        let far = neighbors.get(FAR_RANK).or(neighbors.last());
        Self {
            segments: HashMap::new(),
            best_similarity: neighbors.first().map_or(cutoff, similarity),
            far_similarity: far.map_or(cutoff, similarity),
            cutoff,
            similarities: neighbors.iter().map(similarity).collect(),
        }
    }

    pub fn is_close(&self, similarity: AgentSimilarity) -> bool {
        similarity.combined_cosine() >= self.cutoff
    }

    /// Number of neighbors nearer than this similarity.
    pub fn count_nearer(&self, similarity: f32) -> usize {
        self.similarities.partition_point(|one| *one > similarity)
    }

    /// The neighbors in a segment. All segments together have at most [`MAX_NEAREST`](crate::vectors::MAX_NEAREST).
    pub fn in_segment(&self, segment: SegmentId) -> SegmentNeighbors {
        self.segments.get(&segment).cloned().unwrap_or_default()
    }

    pub fn similarity_of(&self, segment: SegmentId, document: DocId) -> Option<AgentSimilarity> {
        let neighbors = self.segments.get(&segment)?;
        let place = neighbors
            .binary_search_by_key(&document, |(document, _)| *document)
            .ok()?;
        neighbors.get(place).map(|(_, similarity)| *similarity)
    }

    /// The score of a similarity among the query's neighbors: 1 for the nearest, almost 0 from the fiftieth on.
    pub fn relative_score(&self, similarity: f32) -> Score {
        let part = |value: f32, low: f32, high: f32| match high > low {
            true => ((value - low) / (high - low)).clamp(0.0, 1.0),
            false => 1.0,
        };
        if similarity >= self.far_similarity {
            FAR_SCORE
                + (1.0 - FAR_SCORE) * part(similarity, self.far_similarity, self.best_similarity)
        } else {
            FAR_SCORE * part(similarity, self.cutoff, self.far_similarity)
        }
    }
}

fn document_slot(slots: &[u32], document: DocId) -> u32 {
    slots.get(document as usize).copied().unwrap_or(NO_SLOT)
}

/// The documents of a segment with one of these slots, ascending. Most blocks of documents contain none and are
/// skipped.
fn documents_in_slots<'a>(
    slots: &'a [u32],
    chosen: &'a SlotBitSet,
) -> impl Iterator<Item = DocId> + 'a {
    const BLOCK: usize = 16;
    let blocks = (0_u32..).step_by(BLOCK).zip(slots.chunks(BLOCK));
    blocks
        .filter(|(_, block)| {
            let any = |any, slot: &u32| any | chosen.contains(*slot);
            block.iter().fold(false, any)
        })
        .flat_map(|(first, block)| (first..).zip(block))
        .filter(|(_, slot)| chosen.contains(**slot))
        .map(|(document, _)| document)
}

fn matching_docs(weight: &dyn Weight, reader: &SegmentReader) -> tantivy::Result<DocBitSet> {
    let mut bits = DocBitSet::empty(reader.max_doc());
    weight.for_each_no_score(reader, &mut |documents| {
        documents.iter().for_each(|document| bits.insert(*document))
    })?;
    Ok(bits)
}
