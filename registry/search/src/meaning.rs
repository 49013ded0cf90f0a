//! Which agents are near to a query in meaning: a second source of matches beside the words.

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

/// Memory in bytes for the tables of slots; a table takes four bytes a document. Segments that were merged away
/// leave theirs until they are pushed out.
const SLOT_TABLES: u64 = 64 * 1024 * 1024;

/// Rank, from 0, of the nearest neighbour whose similarity counts as "no longer near".
const FAR_RANK: usize = 49;
/// Score of the agent at that rank; the nearest has 1. The others lie between that and 0.
const FAR_WORTH: Score = 0.01;

/// The slots of the documents of each segment, for the vectors of a number.
pub(super) type SlotTables = Cache<(u64, SegmentId), Arc<[u32]>>;

/// No tables yet.
pub(super) fn slot_tables() -> SlotTables {
    Cache::builder()
        .max_capacity(SLOT_TABLES)
        .weigher(|_, table: &Arc<[u32]>| u32::try_from(size_of_val(&**table)).unwrap_or(u32::MAX))
        .build()
}

/// The slots of a segment's documents. Read from every document once in the life of a segment.
fn slots(
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

/// Documents of one segment with how near they are, ascending.
pub(super) type NearDocuments = Arc<[(DocId, Similarity)]>;

/// Nearest neighbours of a query, as documents of one state.
#[derive(Debug, Clone, Default)]
pub(super) struct NearAgents {
    /// Those near, where a segment has any.
    segments: HashMap<SegmentId, NearDocuments>,
    /// How near the nearest is, the one of [`FAR_RANK`] or the last before it, and how near one has to be at all.
    best: f32,
    far: f32,
    cutoff: f32,
    /// Digest of the query and the vectors.
    digest: u64,
}

impl NearAgents {
    /// The agents nearest to a query among those that a filter lets through and that hold what is demanded, as far as
    /// they are nearer than the cutoff.
    ///
    /// # Errors
    /// Where index or vectors cannot be read.
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
            let mut bits = filter.bits(reader)?;
            if let Some(demands) = &demands {
                bits.intersect(&matches(demands.as_ref(), reader)?);
            }
            segments.push((
                reader.segment_id(),
                bits,
                slots(tables, &meaning.vectors, reader)?,
            ));
        }
        // Taken after the tables: every slot in them is there.
        let snapshot = meaning.vectors.snapshot();
        let mut allowed = SlotBits::none(snapshot.slots());
        for (_, bits, slots) in &segments {
            bits.iter()
                .for_each(|document| allowed.insert(slot(slots, document)));
        }
        let near = snapshot.nearest(&meaning.query, &allowed)?;
        let mut meant = Self::of(&near, meaning.cutoff);
        meant.digest = meaning.digest(&snapshot);
        let mut chosen = SlotBits::none(snapshot.slots());
        let near = near
            .iter()
            .filter(|near| near.similarity.mean() >= meaning.cutoff);
        let by_slot: HashMap<u32, Similarity> = near
            .map(|near| {
                chosen.insert(near.slot);
                (near.slot, near.similarity)
            })
            .collect();
        for (segment, bits, slots) in segments {
            let documents = bits
                .iter()
                .filter(|document| chosen.contains(slot(&slots, *document)));
            let found: NearDocuments = documents
                .filter_map(|document| Some((document, *by_slot.get(&slot(&slots, document))?)))
                .collect();
            if !found.is_empty() {
                meant.segments.insert(segment, found);
            }
        }
        Ok(meant)
    }

    /// Nobody yet, with the scale that these make.
    fn of(near: &[Near], cutoff: f32) -> Self {
        let mut all: Vec<f32> = near.iter().map(|near| near.similarity.mean()).collect();
        all.sort_unstable_by(|left, right| right.total_cmp(left));
        Self {
            segments: HashMap::new(),
            best: all.first().copied().unwrap_or(cutoff),
            far: all.get(FAR_RANK).or(all.last()).copied().unwrap_or(cutoff),
            cutoff,
            digest: 0,
        }
    }

    /// A number that stands for what it was found by.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// Those of a segment. Of all segments together they are at most [`MAX_NEAREST`](crate::vectors::MAX_NEAREST).
    pub fn documents(&self, segment: SegmentId) -> NearDocuments {
        self.segments.get(&segment).cloned().unwrap_or_default()
    }

    /// How near a document is, where it is near.
    pub fn get(&self, segment: SegmentId, document: DocId) -> Option<Similarity> {
        let found = self.segments.get(&segment)?;
        let place = found
            .binary_search_by_key(&document, |(document, _)| *document)
            .ok()?;
        found.get(place).map(|(_, similarity)| *similarity)
    }

    /// What a similarity is worth beside the others of this query, 0 to 1: 1 for the nearest, almost nothing for the
    /// fiftieth, less for those behind it.
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

/// The documents of a segment that match.
fn matches(weight: &dyn Weight, reader: &SegmentReader) -> tantivy::Result<Bits> {
    let mut bits = Bits::none(reader.max_doc());
    weight.for_each_no_score(reader, &mut |documents| {
        documents.iter().for_each(|document| bits.insert(*document))
    })?;
    Ok(bits)
}
