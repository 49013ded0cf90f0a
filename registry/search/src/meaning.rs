//! Semantic matches: the agents whose vectors are nearest to a query's, as a second source of matches beside full text.

use std::collections::HashMap;
use std::sync::Arc;

use moka::sync::Cache;
use tantivy::index::SegmentId;
use tantivy::query::{EnableScoring, Query, Weight};
use tantivy::{DocId, Score, Searcher, SegmentReader};

use super::bits::Bits;
use super::error::IndexError;
use super::filter::Filter;
use super::request::Meaning;
use crate::vectors::{NO_SLOT, Near, Similarity, SlotBits, Vectors};

/// Bytes for slot tables; a table takes four bytes per document. Tables of segments that were merged away stay until
/// they are evicted.
const SLOT_TABLES: u64 = 64 * 1024 * 1024;

/// Number of nearest neighbors that match whatever their similarity.
pub(super) const NEVER_CUT: usize = 20;

/// Rank, from 0, of the neighbor whose similarity counts as "no longer near".
const FAR_RANK: usize = 49;
/// Score of the neighbor at [`FAR_RANK`]. The nearest scores 1; the others lie between 1 and 0.
const FAR_WORTH: Score = 0.01;

/// The slot of each document, by segment and by the number of the [`Vectors`].
pub(super) type SlotTables = Cache<(u64, SegmentId), Arc<[u32]>>;

pub(super) fn slot_tables() -> SlotTables {
    Cache::builder()
        .max_capacity(SLOT_TABLES)
        .weigher(|_, table: &Arc<[u32]>| u32::try_from(size_of_val(&**table)).unwrap_or(u32::MAX))
        .build()
}

/// The slots of a segment's documents. The ids are read once in the lifetime of a segment.
pub(super) fn slots(
    tables: &SlotTables,
    vectors: &Vectors,
    reader: &SegmentReader,
) -> tantivy::Result<Arc<[u32]>> {
    let key = (vectors.number(), reader.segment_id());
    if let Some(slots) = tables.get(&key) {
        return Ok(slots);
    }
    let ids = super::collect::AgentIds::open(reader)?;
    let slots: Arc<[u32]> = vectors
        .slots_of((0..reader.max_doc()).map(|document| ids.get(document)))
        .into();
    tables.insert(key, Arc::clone(&slots));
    Ok(slots)
}

/// Nearest neighbors in a segment with their similarities, ascending by document.
pub(super) type NearDocuments = Arc<[(DocId, Similarity)]>;

/// The nearest neighbors of a query, as documents of one state of the index.
#[derive(Debug, Clone, Default)]
pub(super) struct NearAgents {
    /// A segment without neighbors has no entry.
    segments: HashMap<SegmentId, NearDocuments>,
    /// Similarities that scale the scores: of the nearest neighbor; of the one at [`FAR_RANK`], or the last one before
    /// it; and the least for a neighbor to count.
    best: f32,
    far: f32,
    cutoff: f32,
    /// Of all neighbors, descending.
    similarities: Vec<f32>,
}

impl NearAgents {
    /// Finds the nearest neighbors of a query among the agents that pass `filter` and match `demands`. Those below the
    /// similarity cutoff are left out, except for the nearest [`NEVER_CUT`].
    pub fn find(
        searcher: &Searcher,
        filter: &Filter,
        demands: Option<&dyn Query>,
        meaning: &Meaning,
        tables: &SlotTables,
    ) -> Result<Self, IndexError> {
        let readers = searcher.segment_readers();
        let demands =
            demands.map(|query| query.weight(EnableScoring::disabled_from_searcher(searcher)));
        let demands = demands.transpose()?;
        let mut segments = Vec::with_capacity(readers.len());
        for reader in readers {
            let mut bits = Arc::unwrap_or_clone(filter.bits(reader)?);
            if let Some(demands) = &demands {
                bits.intersect(&matches(demands.as_ref(), reader)?);
            }
            segments.push((
                reader.segment_id(),
                bits,
                slots(tables, &meaning.vectors, reader)?,
            ));
        }
        // The snapshot is taken after the tables, so it contains every slot in them.
        let snapshot = meaning.vectors.snapshot();
        let mut allowed = SlotBits::none(snapshot.slots());
        for (_, bits, slots) in &segments {
            bits.iter()
                .for_each(|document| allowed.insert(slot(slots, document)));
        }
        let mut near = snapshot.nearest(&meaning.query, &allowed)?;
        near.sort_unstable_by(|left, right| {
            let by_similarity = right.similarity.mean().total_cmp(&left.similarity.mean());
            by_similarity.then_with(|| snapshot.id(left.slot).cmp(&snapshot.id(right.slot)))
        });
        let mut meant = Self::of(&near, meaning.cutoff);
        let close = near.partition_point(|near| meant.is_close(near.similarity));
        near.truncate(close.max(NEVER_CUT));
        let mut chosen = SlotBits::none(snapshot.slots());
        let by_slot: HashMap<u32, Similarity> = near
            .iter()
            .map(|near| {
                chosen.insert(near.slot);
                (near.slot, near.similarity)
            })
            .collect();
        for (segment, bits, slots) in segments {
            let documents = chosen_documents(&slots, &chosen);
            let found: NearDocuments = documents
                .filter(|document| bits.contains(*document))
                .filter_map(|document| Some((document, *by_slot.get(&slot(&slots, document))?)))
                .collect();
            if !found.is_empty() {
                meant.segments.insert(segment, found);
            }
        }
        Ok(meant)
    }

    /// An empty set of neighbors, scaled by these similarities, nearest first.
    fn of(near: &[Near], cutoff: f32) -> Self {
        let similarity = |near: &Near| near.similarity.mean();
        let far = near.get(FAR_RANK).or(near.last());
        Self {
            segments: HashMap::new(),
            best: near.first().map_or(cutoff, similarity),
            far: far.map_or(cutoff, similarity),
            cutoff,
            similarities: near.iter().map(similarity).collect(),
        }
    }

    pub fn is_close(&self, similarity: Similarity) -> bool {
        similarity.mean() >= self.cutoff
    }

    /// Number of neighbors nearer than this similarity.
    pub fn rank(&self, similarity: f32) -> usize {
        self.similarities.partition_point(|one| *one > similarity)
    }

    /// The neighbors in a segment. All segments together have at most [`MAX_NEAREST`](crate::vectors::MAX_NEAREST).
    pub fn documents(&self, segment: SegmentId) -> NearDocuments {
        self.segments.get(&segment).cloned().unwrap_or_default()
    }

    pub fn get(&self, segment: SegmentId, document: DocId) -> Option<Similarity> {
        let found = self.segments.get(&segment)?;
        let place = found
            .binary_search_by_key(&document, |(document, _)| *document)
            .ok()?;
        found.get(place).map(|(_, similarity)| *similarity)
    }

    /// The score of a similarity among the query's neighbors: 1 for the nearest, almost 0 from the fiftieth on.
    pub fn worth(&self, similarity: f32) -> Score {
        let part = |value: f32, low: f32, high: f32| match high > low {
            true => ((value - low) / (high - low)).clamp(0.0, 1.0),
            false => 1.0,
        };
        if similarity >= self.far {
            FAR_WORTH + (1.0 - FAR_WORTH) * part(similarity, self.far, self.best)
        } else {
            FAR_WORTH * part(similarity, self.cutoff, self.far)
        }
    }
}

fn slot(slots: &[u32], document: DocId) -> u32 {
    slots.get(document as usize).copied().unwrap_or(NO_SLOT)
}

/// The documents of a segment whose slots are chosen, ascending. Most blocks of documents hold none, and are skipped.
fn chosen_documents<'a>(
    slots: &'a [u32],
    chosen: &'a SlotBits,
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

fn matches(weight: &dyn Weight, reader: &SegmentReader) -> tantivy::Result<Bits> {
    let mut bits = Bits::none(reader.max_doc());
    weight.for_each_no_score(reader, &mut |documents| {
        documents.iter().for_each(|document| bits.insert(*document))
    })?;
    Ok(bits)
}
