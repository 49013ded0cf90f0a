//! Chunks of slots, with the codes to scan. Snapshots share chunks, and a chunk is copied when it changes.
//!
//! The codes of eight slots are interleaved word by word, so one vector instruction compares a word of several slots,
//! and no sum crosses a register.

use uuid::Uuid;

use super::codes::MAX_CODES;

pub(super) const CHUNK_SLOTS: usize = 1024;

/// Slots whose codes are interleaved; a word of [`SlotBitSet`](super::SlotBitSet) covers a whole number of such
/// groups.
const LANES: usize = 8;

/// Maximum number of `u64` words whose bit counts are summed in bytes: each word adds at most 8 to a byte.
const MAX_SUMMED_WORDS: usize = 31;

/// Distance of a slot that is not compared.
pub(super) const NOT_COMPARED: u16 = u16::MAX;

/// Location of an agent's vectors in the file: byte offset and number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct VectorLocation {
    pub offset: u64,
    pub count: u8,
}

/// A chunk of up to [`CHUNK_SLOTS`] slots.
#[derive(Debug)]
pub(super) struct SlotChunk {
    /// `u64` words per code.
    words_per_code: usize,
    pub ids: Vec<Uuid>,
    /// The codes of each group of [`LANES`] slots: the first codes of all its slots, then the second ones, up to
    /// [`MAX_CODES`]; within a code the first words of all slots, then the second ones. A slot with fewer codes
    /// repeats its first one instead of the missing ones.
    codes: Vec<u64>,
    offsets: Vec<u64>,
    /// Vectors per slot; 0 while its agent has none.
    vector_counts: Vec<u8>,
}

impl Clone for SlotChunk {
    /// Copies with the full capacity: a copy that grows while it is filled could take twice the memory.
    fn clone(&self) -> Self {
        let mut copy = Self::new(self.words_per_code);
        copy.ids.extend_from_slice(&self.ids);
        copy.codes.extend_from_slice(&self.codes);
        copy.offsets.extend_from_slice(&self.offsets);
        copy.vector_counts.extend_from_slice(&self.vector_counts);
        copy
    }
}

impl SlotChunk {
    pub fn new(words_per_code: usize) -> Self {
        Self {
            words_per_code,
            ids: Vec::with_capacity(CHUNK_SLOTS),
            codes: Vec::with_capacity(CHUNK_SLOTS * MAX_CODES * words_per_code),
            offsets: Vec::with_capacity(CHUNK_SLOTS),
            vector_counts: Vec::with_capacity(CHUNK_SLOTS),
        }
    }

    pub fn add_slot(&mut self, id: Uuid) {
        if self.ids.len().is_multiple_of(LANES) {
            let group = LANES * MAX_CODES * self.words_per_code;
            self.codes.extend(std::iter::repeat_n(0, group));
        }
        self.ids.push(id);
        self.offsets.push(0);
        self.vector_counts.push(0);
    }

    /// Sets the codes and the file location of a slot; empty `codes` clear it.
    pub fn set_codes_and_location(&mut self, slot: usize, codes: &[u64], location: VectorLocation) {
        let group = slot / LANES * MAX_CODES * self.words_per_code;
        if let Some(first) = codes.get(..self.words_per_code) {
            let codes = codes.chunks_exact(self.words_per_code);
            let codes = codes.chain(std::iter::repeat(first)).take(MAX_CODES);
            for (row, word) in (group..).zip(codes.flatten()) {
                self.codes[row * LANES + slot % LANES] = *word;
            }
        }
        (self.offsets[slot], self.vector_counts[slot]) = (location.offset, location.count);
    }

    pub fn location(&self, slot: usize) -> VectorLocation {
        VectorLocation {
            offset: self.offsets[slot],
            count: self.vector_counts[slot],
        }
    }

    pub fn byte_size(&self) -> usize {
        self.ids.capacity() * size_of::<Uuid>()
            + (self.codes.capacity() + self.offsets.capacity()) * size_of::<u64>()
            + self.vector_counts.capacity()
    }

    /// Sets the distance of each allowed slot with vectors to that of its nearest code; leaves the other distances
    /// alone.
    #[inline(always)]
    pub fn update_distances(&self, query: &[u64], allowed: &[u64], distances: &mut [u16]) {
        match self.words_per_code {
            6 => self.update_distances_unrolled::<6>(query, allowed, distances),
            8 => self.update_distances_unrolled::<8>(query, allowed, distances),
            12 => self.update_distances_unrolled::<12>(query, allowed, distances),
            16 => self.update_distances_unrolled::<16>(query, allowed, distances),
            _ => {
                let (rows, _) = self.codes.as_chunks::<LANES>();
                self.update_group_distances(
                    allowed,
                    distances,
                    #[inline(always)]
                    |group| {
                        let stride = MAX_CODES * self.words_per_code;
                        let codes = rows.get(group * stride..)?.get(..stride)?;
                        Some(nearest_code_distances(
                            codes.chunks_exact(self.words_per_code),
                            query,
                        ))
                    },
                );
            }
        }
    }

    /// Does the same for a code length known at compile time, so the compiler unrolls the comparison.
    #[inline(always)]
    fn update_distances_unrolled<const WORDS: usize>(
        &self,
        query: &[u64],
        allowed: &[u64],
        distances: &mut [u16],
    ) {
        let Some(query) = query.first_chunk::<WORDS>() else {
            return;
        };
        let (rows, _) = self.codes.as_chunks::<LANES>();
        let (codes, _) = rows.as_chunks::<WORDS>();
        let (groups, _) = codes.as_chunks::<MAX_CODES>();
        self.update_group_distances(
            allowed,
            distances,
            #[inline(always)]
            |group| Some(nearest_code_distances(groups.get(group)?.iter(), query)),
        );
    }

    /// Computes the distances in each group that contains an allowed slot.
    #[inline(always)]
    fn update_group_distances(
        &self,
        allowed: &[u64],
        distances: &mut [u16],
        nearest: impl Fn(usize) -> Option<[u64; LANES]>,
    ) {
        let (vectors, distances) = (
            self.vector_counts.chunks(LANES),
            distances.chunks_mut(LANES),
        );
        for (group, (vectors, distances)) in vectors.zip(distances).enumerate() {
            let word = allowed.get(group * LANES / u64::BITS as usize);
            let allowed = word.map_or(0, |word| word >> (group * LANES % u64::BITS as usize));
            if allowed & ((1 << LANES) - 1) == 0 {
                continue;
            }
            let Some(nearest) = nearest(group) else {
                return;
            };
            for (lane, ((distance, vectors), nearest)) in
                distances.iter_mut().zip(vectors).zip(nearest).enumerate()
            {
                if allowed >> lane & 1 == 1 && *vectors > 0 {
                    // The number of differing bits is at most the number of dimensions, so it fits.
                    *distance = nearest as u16;
                }
            }
        }
    }
}

/// The distance of the nearest code, for each slot of a group.
#[inline(always)]
fn nearest_code_distances<'a, C>(codes: impl Iterator<Item = &'a C>, query: &[u64]) -> [u64; LANES]
where
    C: AsRef<[[u64; LANES]]> + ?Sized + 'a,
{
    let mut nearest = [u64::MAX; LANES];
    for code in codes {
        let code = code.as_ref();
        let mut differing = [0; LANES];
        for (words, query) in code
            .chunks(MAX_SUMMED_WORDS)
            .zip(query.chunks(MAX_SUMMED_WORDS))
        {
            let mut counts = [0; LANES];
            for (words, query) in words.iter().zip(query) {
                for lane in 0..LANES {
                    counts[lane] += bit_counts_by_byte(words[lane] ^ query);
                }
            }
            for lane in 0..LANES {
                differing[lane] += sum_of_bytes(counts[lane]);
            }
        }
        for lane in 0..LANES {
            nearest[lane] = nearest[lane].min(differing[lane]);
        }
    }
    nearest
}

/// The number of set bits of each byte, in that byte. Written out, because with `count_ones` the compiler arranges the
/// comparison word by word instead of lane by lane, which takes twice as long.
#[inline(always)]
const fn bit_counts_by_byte(word: u64) -> u64 {
    let pairs = word - (word >> 1 & 0x5555_5555_5555_5555);
    let nibbles = (pairs & 0x3333_3333_3333_3333) + (pairs >> 2 & 0x3333_3333_3333_3333);
    (nibbles + (nibbles >> 4)) & 0x0f0f_0f0f_0f0f_0f0f
}

#[inline(always)]
const fn sum_of_bytes(word: u64) -> u64 {
    let pairs = (word & 0x00ff_00ff_00ff_00ff) + (word >> 8 & 0x00ff_00ff_00ff_00ff);
    let halves = (pairs & 0x0000_ffff_0000_ffff) + (pairs >> 16 & 0x0000_ffff_0000_ffff);
    (halves + (halves >> 32)) & 0xffff_ffff
}
