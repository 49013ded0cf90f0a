//! Which agents are near in meaning to a query: the vectors of all agents, in memory as far as they are scanned.
//!
//! Of each agent one to four one-bit codes are in memory and are compared with the query's, all of them: that gives
//! the best candidates, whose vectors of a byte a number are then read from a file. It is derived from the database
//! and made anew by every process; it knows neither cards nor the search index, only ids of agents and vectors.
//!
//! An agent has a *slot*, a number that stays while [`Vectors`] exist, so that whoever numbers agents otherwise can
//! keep a table of slots.

mod chunk;
mod codes;
mod error;
mod file;
mod nearest;
mod quantised;
mod slots;

use std::collections::HashMap;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
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

/// Bytes of the file that are no longer used, beyond which it is time to rebuild these vectors where that is
/// most of the file.
const WASTE: u64 = 64 * 1024 * 1024;

/// The number of the next ones.
static NUMBER: AtomicU64 = AtomicU64::new(1);

/// The vectors of all agents, of one model.
#[derive(Debug)]
pub struct Vectors {
    number: u64,
    dimensions: usize,
    /// What changes them; held for moments, and while a change is written.
    state: Mutex<VectorsState>,
    /// What searches see.
    shown: ArcSwap<Snapshot>,
}

/// A change of an agent's vectors: a stamp of the text they were computed from, and the vectors; `None` removes them.
pub type VectorChange = (Uuid, Option<(u64, AgentVectors)>);

/// Slot and vectors of an agent.
#[derive(Debug, Clone, Copy)]
struct AgentSlot {
    slot: u32,
    /// Stamp of the text that its vectors were computed from, if it has any.
    stamp: u64,
    /// Digest of the agent and its vectors; 0 if it has none.
    digest: u64,
}

#[derive(Debug, Default)]
struct VectorsState {
    agents_by_id: HashMap<Uuid, AgentSlot>,
    /// Where the file ends.
    end: u64,
    /// Bytes of the file that are no longer used.
    waste: u64,
    agents: usize,
}

impl Vectors {
    /// None yet, for vectors of so many numbers; the file is made in this folder.
    ///
    /// # Errors
    /// Where the file cannot be made, or `dimensions` is none or more than [`MAX_DIMENSIONS`].
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
                digest: 0,
            }),
        })
    }

    /// A number that no other vectors of this process have.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Numbers in a vector.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// How many agents have vectors.
    pub fn agents(&self) -> usize {
        self.state().agents
    }

    /// The memory they take, in bytes, without what the allocator adds.
    pub fn size(&self) -> usize {
        let chunks: usize = self
            .snapshot()
            .chunks
            .iter()
            .map(|chunk| chunk.size())
            .sum();
        // A hash table keeps a byte beside each entry.
        chunks + self.state().agents_by_id.capacity() * (size_of::<(Uuid, AgentSlot)>() + 1)
    }

    /// What the vectors of an agent were made of, where it has any.
    pub fn stamp(&self, id: Uuid) -> Option<u64> {
        let state = self.state();
        let known = state.agents_by_id.get(&id)?;
        let (chunk, slot) = split(known.slot);
        let held = self.shown.load().chunks.get(chunk)?.place(slot).count > 0;
        held.then_some(known.stamp)
    }

    /// What searches see now. It stays as it is while it is held.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.shown.load_full()
    }

    /// Whether so much of the file is no longer used that these vectors should be rebuilt.
    pub fn is_wasteful(&self) -> bool {
        let state = self.state();
        state.waste > WASTE && state.waste > state.end / 2
    }

    /// Replaces the vectors of agents; `None` removes an agent's. Searches see all of it
    /// at once. Of two changes to one agent the later counts.
    ///
    /// # Errors
    /// Where the file cannot be written; nothing has changed then. Where vectors are of another length.
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
                // Who has no vectors and gets none needs no slot.
                (None, None) => continue,
            };
            let stamp = made.as_ref().map_or(0, |(stamp, _)| *stamp);
            let digest = made.as_ref().map_or(0, |(_, vectors)| digest(*id, vectors));
            next.digest ^= known.map_or(0, |known| known.digest) ^ digest;
            let known = AgentSlot {
                slot,
                stamp,
                digest,
            };
            state.agents_by_id.insert(*id, known);
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

    /// The slots of these agents, in order; who has none yet is given one.
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

    /// Gives an agent the next slot.
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
        // An index holds fewer than 2^31 agents, so the number of one fits.
        let slot = u32::try_from(state.agents_by_id.len()).unwrap_or(NO_SLOT);
        let known = AgentSlot {
            slot,
            stamp: 0,
            digest: 0,
        };
        state.agents_by_id.insert(id, known);
        slot
    }

    /// The bytes at a place.
    fn length(&self, place: VectorPlace) -> u64 {
        u64::from(place.count) * quantised::stride(self.dimensions) as u64
    }

    /// A state whose holder panicked is taken all the same: what it counts is rebuilt with the process.
    fn state(&self) -> MutexGuard<'_, VectorsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Digest of an agent with these vectors.
fn digest(id: Uuid, vectors: &AgentVectors) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one((id, vectors.as_bytes()))
}

/// The chunk of a slot, and its place there.
fn split(slot: u32) -> (usize, usize) {
    (slot as usize / CHUNK, slot as usize % CHUNK)
}

#[cfg(test)]
mod tests;
