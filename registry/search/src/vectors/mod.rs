//! Semantic search: the vectors of all agents, with the codes for scanning in memory.
//!
//! Each agent has one to four one-bit codes in memory. A search compares all of them with the query's code to find the
//! best candidates, then reads their quantized vectors (one byte per number) from a file. The file is derived from the
//! database and rebuilt by every process; this module knows neither cards nor the search index, only agent ids and
//! vectors.
//!
//! An agent has a *slot*, a number that stays the same while [`Vectors`] exist, so that a caller with other numbers
//! (the documents of a segment) can cache a table of slots.

mod chunk;
mod codes;
mod error;
mod file;
mod nearest;
mod quantised;
mod slots;

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use chunk::{CHUNK, Chunk, VectorPlace};
use file::VectorFile;
use uuid::Uuid;

pub use codes::MAX_CODES;
pub use error::VectorsError;
pub use file::remove_left_over;
pub use nearest::{MAX_NEAREST, Near, Snapshot};
pub use quantised::{AgentVectors, MAX_DIMENSIONS, MAX_VECTORS, NotVectors, Similarity};
pub use slots::{NO_SLOT, SlotBits};

/// Unused bytes of the file from which a rebuild is due, if they are also more than half of the file.
const WASTE: u64 = 64 * 1024 * 1024;

static NUMBER: AtomicU64 = AtomicU64::new(1);

#[derive(Debug)]
pub struct Vectors {
    number: u64,
    dimensions: usize,
    /// Locked briefly, and while a change is written.
    state: Mutex<VectorsState>,
    shown: ArcSwap<Snapshot>,
}

/// A change of an agent's vectors: a stamp of the text they were computed from, and the vectors; `None` removes them.
pub type VectorChange = (Uuid, Option<(u64, AgentVectors)>);

#[derive(Debug, Clone, Copy)]
struct AgentSlot {
    slot: u32,
    /// Stamp of the text that the vectors were computed from; 0 if the agent has none.
    stamp: u64,
}

#[derive(Debug, Default)]
struct VectorsState {
    agents_by_id: HashMap<Uuid, AgentSlot>,
    end: u64,
    /// Bytes of the file that are no longer used.
    waste: u64,
    agents: usize,
}

impl Vectors {
    /// Creates empty vectors, with their file in this folder. Fails for 0 or more than [`MAX_DIMENSIONS`] dimensions.
    pub fn create(folder: &Path, dimensions: usize) -> Result<Self, VectorsError> {
        if !(1..=MAX_DIMENSIONS).contains(&dimensions) {
            return Err(VectorsError::Dimensions(dimensions));
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let file = VectorFile::create(folder, number)?;
        Ok(Self {
            number,
            dimensions,
            state: Mutex::default(),
            shown: ArcSwap::from_pointee(Snapshot {
                chunks: Vec::new(),
                file: Arc::new(file),
                dimensions,
                version: 0,
            }),
        })
    }

    /// Unique within this process.
    pub fn number(&self) -> u64 {
        self.number
    }

    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    pub fn agents(&self) -> usize {
        self.state().agents
    }

    /// Bytes of memory, without the overhead of the allocator.
    pub fn size(&self) -> usize {
        let chunks: usize = self
            .snapshot()
            .chunks
            .iter()
            .map(|chunk| chunk.size())
            .sum();
        // A hash table keeps one more byte for each entry.
        chunks + self.state().agents_by_id.capacity() * (size_of::<(Uuid, AgentSlot)>() + 1)
    }

    /// The stamp of the text that an agent's vectors were computed from; `None` if it has no vectors.
    pub fn stamp(&self, id: Uuid) -> Option<u64> {
        let state = self.state();
        let known = state.agents_by_id.get(&id)?;
        let (chunk, slot) = split(known.slot);
        let held = self.shown.load().chunks.get(chunk)?.place(slot).count > 0;
        held.then_some(known.stamp)
    }

    /// Does not change while it is held.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.shown.load_full()
    }

    /// Whether so much of the file is unused that these vectors should be rebuilt.
    pub fn is_wasteful(&self) -> bool {
        let state = self.state();
        state.waste > WASTE && state.waste > state.end / 2
    }

    /// Replaces the vectors of agents; searches see all changes at once. Of two changes to one agent the later counts.
    /// On an error, such as vectors of another length, nothing has changed.
    pub fn put(&self, changes: &[VectorChange]) -> Result<(), VectorsError> {
        let other = |vectors: &&AgentVectors| vectors.dimensions() != self.dimensions;
        let vectors = || {
            changes
                .iter()
                .filter_map(|(_, made)| made.as_ref().map(|(_, vectors)| vectors))
        };
        if let Some(other) = vectors().find(other) {
            return Err(VectorsError::Dimensions(other.dimensions()));
        }
        let mut state = self.state();
        let shown = self.shown.load();
        let bytes: Vec<u8> = vectors()
            .flat_map(AgentVectors::as_bytes)
            .copied()
            .collect();
        shown.file.write(&bytes, state.end)?;
        let mut next = Snapshot::clone(&shown);
        for (id, made) in changes {
            let known = state.agents_by_id.get(id).copied();
            let slot = match (known, made) {
                (Some(known), _) => known.slot,
                (None, Some(_)) => self.add(&mut state, &mut next, *id),
                // An agent that has no vectors and gets none needs no slot.
                (None, None) => continue,
            };
            let stamp = made.as_ref().map_or(0, |(stamp, _)| *stamp);
            state.agents_by_id.insert(*id, AgentSlot { slot, stamp });
            let (chunk, slot) = split(slot);
            let chunk = Arc::make_mut(&mut next.chunks[chunk]);
            let before = chunk.place(slot);
            state.waste += self.length(before);
            state.agents -= usize::from(before.count > 0);
            match made {
                None => chunk.set(slot, &[], VectorPlace::default()),
                Some((_, vectors)) => {
                    let count = u8::try_from(vectors.count()).unwrap_or(u8::MAX);
                    let place = VectorPlace {
                        at: state.end,
                        count,
                    };
                    chunk.set(slot, &codes::agent_codes(vectors), place);
                    state.end += self.length(place);
                    state.agents += 1;
                }
            }
        }
        next.version += 1;
        self.shown.store(Arc::new(next));
        Ok(())
    }

    /// The slots of these agents, in order; an agent without a slot is given one.
    pub fn slots_of(&self, ids: impl Iterator<Item = Uuid>) -> Vec<u32> {
        let mut state = self.state();
        let mut next = Snapshot::clone(&self.shown.load());
        let known = state.agents_by_id.len();
        let slots = ids
            .map(|id| match state.agents_by_id.get(&id) {
                Some(known) => known.slot,
                None => self.add(&mut state, &mut next, id),
            })
            .collect();
        if state.agents_by_id.len() > known {
            self.shown.store(Arc::new(next));
        }
        slots
    }

    fn add(&self, state: &mut VectorsState, next: &mut Snapshot, id: Uuid) -> u32 {
        let full = next
            .chunks
            .last()
            .is_none_or(|chunk| chunk.ids.len() == CHUNK);
        if full {
            next.chunks
                .push(Arc::new(Chunk::new(codes::words(self.dimensions))));
        }
        if let Some(last) = next.chunks.last_mut() {
            Arc::make_mut(last).add(id);
        }
        // An index holds fewer than 2^31 agents, so every slot fits.
        let slot = u32::try_from(state.agents_by_id.len()).unwrap_or(NO_SLOT);
        state.agents_by_id.insert(id, AgentSlot { slot, stamp: 0 });
        slot
    }

    fn length(&self, place: VectorPlace) -> u64 {
        u64::from(place.count) * quantised::stride(self.dimensions) as u64
    }

    /// Locks the state, even after a panic of another holder: its counts are rebuilt with the process.
    fn state(&self) -> MutexGuard<'_, VectorsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn split(slot: u32) -> (usize, usize) {
    (slot as usize / CHUNK, slot as usize % CHUNK)
}

#[cfg(test)]
mod tests;
