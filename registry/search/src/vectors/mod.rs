//! Semantic search: the vectors of all agents, with the codes for scanning in memory.
//!
//! Each agent has one to four one-bit codes in memory. A search compares all of them with the query's code to find the
//! best candidates, then reads their quantized vectors (one byte per number) from a file. The file is derived from the
//! database and rebuilt by every process. This module knows agent ids and vectors, but neither cards nor the search
//! index.
//!
//! An agent has a *slot*, a number that stays the same while the [`VectorStore`] exists, so a caller with other
//! numbers (the documents of a segment) can cache a table of slots.

mod chunk;
mod codes;
mod error;
mod file;
mod nearest;
mod quantized;
mod slots;

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use chunk::{CHUNK_SLOTS, SlotChunk, VectorLocation};
use file::ProcessVectorFile;
use uuid::Uuid;

pub use codes::MAX_CODES;
pub use error::VectorsError;
pub use file::remove_leftover_vector_files;
pub use nearest::{MAX_NEAREST, Neighbor, VectorSnapshot};
pub use quantized::{
    AgentSimilarity, AgentVectors, MAX_DIMENSIONS, MAX_VECTORS, VectorDecodeError,
};
pub use slots::{NO_SLOT, SlotBitSet};

/// Unused bytes of the file from which a rebuild is needed, if they are also more than half of the file.
const MIN_REBUILD_WASTE: u64 = 64 * 1024 * 1024;

static NEXT_NUMBER: AtomicU64 = AtomicU64::new(1);

#[derive(Debug)]
pub struct VectorStore {
    store_id: u64,
    dimensions: usize,
    /// The current state. Locked briefly, and while a change is written.
    state: Mutex<VectorsState>,
    current: ArcSwap<VectorSnapshot>,
}

/// A change of an agent's vectors: a stamp of the text that the vectors were computed from, and the vectors; `None`
/// removes them.
pub type VectorChange = (Uuid, Option<(u64, AgentVectors)>);

#[derive(Debug, Clone, Copy)]
struct AgentSlot {
    slot: u32,
    /// Stamp of the text that the vectors were computed from; 0 if the agent has none.
    text_stamp: u64,
}

#[derive(Debug, Default)]
struct VectorsState {
    agents_by_id: HashMap<Uuid, AgentSlot>,
    file_end: u64,
    /// Bytes of the file that are no longer used.
    wasted_bytes: u64,
    agent_count: usize,
}

impl VectorStore {
    /// Creates an empty store with its file in this folder. Fails for 0 or more than [`MAX_DIMENSIONS`] dimensions.
    pub fn create(folder: &Path, dimensions: usize) -> Result<Self, VectorsError> {
        if !(1..=MAX_DIMENSIONS).contains(&dimensions) {
            return Err(VectorsError::Dimensions(dimensions));
        }
        let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
        let file = ProcessVectorFile::create(folder, number)?;
        Ok(Self {
            store_id: number,
            dimensions,
            state: Mutex::default(),
            current: ArcSwap::from_pointee(VectorSnapshot {
                chunks: Vec::new(),
                file: Arc::new(file),
                dimensions,
                version: 0,
            }),
        })
    }

    /// Number of this store, unique within the process.
    pub fn unique_id(&self) -> u64 {
        self.store_id
    }

    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    pub fn agent_count(&self) -> usize {
        self.lock_state().agent_count
    }

    /// Bytes of memory used, without the allocator's overhead.
    pub fn byte_size(&self) -> usize {
        let chunks: usize = self
            .snapshot()
            .chunks
            .iter()
            .map(|chunk| chunk.byte_size())
            .sum();
        // A hash table needs one more byte per entry.
        chunks + self.lock_state().agents_by_id.capacity() * (size_of::<(Uuid, AgentSlot)>() + 1)
    }

    /// The stamp of the text that an agent's vectors were computed from; `None` if it has no vectors.
    pub fn text_stamp(&self, id: Uuid) -> Option<u64> {
        let state = self.lock_state();
        let known = state.agents_by_id.get(&id)?;
        let (chunk, slot) = locate_slot(known.slot);
        let held = self.current.load().chunks.get(chunk)?.location(slot).count > 0;
        held.then_some(known.text_stamp)
    }

    /// A snapshot, which does not change while it is held.
    pub fn snapshot(&self) -> Arc<VectorSnapshot> {
        self.current.load_full()
    }

    /// Whether so much of the file is unused that the store should be rebuilt.
    pub fn needs_rebuild(&self) -> bool {
        let state = self.lock_state();
        state.wasted_bytes > MIN_REBUILD_WASTE && state.wasted_bytes > state.file_end / 2
    }

    /// Replaces the vectors of agents; searches see all changes at once. The last of several changes to one agent
    /// counts. On an error, such as vectors of another length, nothing has changed.
    pub fn replace_agent_vectors(&self, changes: &[VectorChange]) -> Result<(), VectorsError> {
        let has_other_dimensions =
            |vectors: &&AgentVectors| vectors.dimensions() != self.dimensions;
        let vectors = || {
            changes
                .iter()
                .filter_map(|(_, made)| made.as_ref().map(|(_, vectors)| vectors))
        };
        if let Some(other) = vectors().find(has_other_dimensions) {
            return Err(VectorsError::Dimensions(other.dimensions()));
        }
        let mut state = self.lock_state();
        let current = self.current.load();
        let bytes: Vec<u8> = vectors()
            .flat_map(AgentVectors::as_bytes)
            .copied()
            .collect();
        current.file.write(&bytes, state.file_end)?;
        let mut next = VectorSnapshot::clone(&current);
        for (id, made) in changes {
            let known = state.agents_by_id.get(id).copied();
            let slot = match (known, made) {
                (Some(known), _) => known.slot,
                (None, Some(_)) => self.add_slot(&mut state, &mut next, *id),
                // An agent that neither has nor gets vectors needs no slot.
                (None, None) => continue,
            };
            let text_stamp = made.as_ref().map_or(0, |(stamp, _)| *stamp);
            state
                .agents_by_id
                .insert(*id, AgentSlot { slot, text_stamp });
            let (chunk, slot) = locate_slot(slot);
            let chunk = Arc::make_mut(&mut next.chunks[chunk]);
            let before = chunk.location(slot);
            state.wasted_bytes += self.location_byte_length(before);
            state.agent_count -= usize::from(before.count > 0);
            match made {
                None => chunk.set_codes_and_location(slot, &[], VectorLocation::default()),
                Some((_, vectors)) => {
                    let count = u8::try_from(vectors.vector_count()).unwrap_or(u8::MAX);
                    let location = VectorLocation {
                        offset: state.file_end,
                        count,
                    };
                    chunk.set_codes_and_location(
                        slot,
                        &codes::agent_vector_codes(vectors),
                        location,
                    );
                    state.file_end += self.location_byte_length(location);
                    state.agent_count += 1;
                }
            }
        }
        next.version += 1;
        self.current.store(Arc::new(next));
        Ok(())
    }

    /// The slots of these agents, in order. An agent without a slot gets one.
    pub fn assign_slots(&self, ids: impl Iterator<Item = Uuid>) -> Vec<u32> {
        let mut state = self.lock_state();
        let mut next = VectorSnapshot::clone(&self.current.load());
        let known_count = state.agents_by_id.len();
        let slots = ids
            .map(|id| match state.agents_by_id.get(&id) {
                Some(known) => known.slot,
                None => self.add_slot(&mut state, &mut next, id),
            })
            .collect();
        if state.agents_by_id.len() > known_count {
            self.current.store(Arc::new(next));
        }
        slots
    }

    fn add_slot(&self, state: &mut VectorsState, next: &mut VectorSnapshot, id: Uuid) -> u32 {
        let full = next
            .chunks
            .last()
            .is_none_or(|chunk| chunk.ids.len() == CHUNK_SLOTS);
        if full {
            next.chunks
                .push(Arc::new(SlotChunk::new(codes::u64s_per_code(
                    self.dimensions,
                ))));
        }
        if let Some(last) = next.chunks.last_mut() {
            Arc::make_mut(last).add_slot(id);
        }
        // An index holds fewer than 2^31 agents, so every slot fits.
        let slot = u32::try_from(state.agents_by_id.len()).unwrap_or(NO_SLOT);
        state.agents_by_id.insert(
            id,
            AgentSlot {
                slot,
                text_stamp: 0,
            },
        );
        slot
    }

    fn location_byte_length(&self, location: VectorLocation) -> u64 {
        u64::from(location.count) * quantized::vector_byte_size(self.dimensions) as u64
    }

    /// Locks the state, even if another thread panicked while holding it: the counts are rebuilt with the process.
    fn lock_state(&self) -> MutexGuard<'_, VectorsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn locate_slot(slot: u32) -> (usize, usize) {
    (slot as usize / CHUNK_SLOTS, slot as usize % CHUNK_SLOTS)
}

#[cfg(test)]
mod tests;
