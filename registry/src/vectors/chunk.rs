//! Slots: what is in memory of each agent, in chunks that are copied when they change and shared until then.

use uuid::Uuid;

use super::codes::MAX_CODES;

/// The slots of one chunk.
pub(super) const CHUNK: usize = 1024;

/// Where the vectors of an agent lie in the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// The first byte.
    pub at: u64,
    /// How many vectors.
    pub count: u8,
}

/// Up to [`CHUNK`] slots.
#[derive(Debug)]
pub(super) struct Chunk {
    /// The words of one code.
    words: usize,
    pub ids: Vec<Uuid>,
    /// Room for [`MAX_CODES`] codes a slot.
    codes: Vec<u64>,
    /// How many codes a slot has; none while its agent has no vectors.
    counts: Vec<u8>,
    at: Vec<u64>,
    vectors: Vec<u8>,
}

impl Clone for Chunk {
    /// With room for all its slots: a copy that grew as it is filled would take up to twice the memory.
    fn clone(&self) -> Self {
        let mut copy = Self::new(self.words);
        copy.ids.extend_from_slice(&self.ids);
        copy.codes.extend_from_slice(&self.codes);
        copy.counts.extend_from_slice(&self.counts);
        copy.at.extend_from_slice(&self.at);
        copy.vectors.extend_from_slice(&self.vectors);
        copy
    }
}

impl Chunk {
    /// A chunk without slots for codes of so many words.
    pub fn new(words: usize) -> Self {
        Self {
            words,
            ids: Vec::with_capacity(CHUNK),
            codes: Vec::with_capacity(CHUNK * MAX_CODES * words),
            counts: Vec::with_capacity(CHUNK),
            at: Vec::with_capacity(CHUNK),
            vectors: Vec::with_capacity(CHUNK),
        }
    }

    /// Adds a slot without vectors.
    pub fn add(&mut self, id: Uuid) {
        self.ids.push(id);
        self.codes
            .extend(std::iter::repeat_n(0, MAX_CODES * self.words));
        self.counts.push(0);
        self.at.push(0);
        self.vectors.push(0);
    }

    /// Sets what a slot holds; without codes it holds nothing.
    pub fn set(&mut self, slot: usize, codes: &[u64], place: Place) {
        let stride = MAX_CODES * self.words;
        let count = codes.len() / self.words;
        self.codes[slot * stride..][..codes.len()].copy_from_slice(codes);
        self.counts[slot] = u8::try_from(count).unwrap_or(0);
        (self.at[slot], self.vectors[slot]) = (place.at, place.count);
    }

    /// Where the vectors of a slot lie.
    pub fn place(&self, slot: usize) -> Place {
        Place {
            at: self.at[slot],
            count: self.vectors[slot],
        }
    }

    /// The memory it takes, in bytes.
    pub fn size(&self) -> usize {
        self.ids.capacity() * size_of::<Uuid>()
            + (self.codes.capacity() + self.at.capacity()) * size_of::<u64>()
            + self.counts.capacity()
            + self.vectors.capacity()
    }

    /// Calls back with the slot and the distance of its nearest code, for each allowed slot that has one.
    #[inline(always)]
    pub fn distances(&self, query: &[u64], allowed: &[u64], mut found: impl FnMut(usize, u32)) {
        match self.words {
            6 => self.each::<6>(query, allowed, &mut found),
            8 => self.each::<8>(query, allowed, &mut found),
            12 => self.each::<12>(query, allowed, &mut found),
            16 => self.each::<16>(query, allowed, &mut found),
            _ => self.each_of_any(query, allowed, &mut found),
        }
    }

    /// With the length known the compiler unrolls what it compares.
    #[inline(always)]
    fn each<const WORDS: usize>(
        &self,
        query: &[u64],
        allowed: &[u64],
        found: &mut impl FnMut(usize, u32),
    ) {
        let (Some(query), (codes, [])) = (
            query.first_chunk::<WORDS>(),
            self.codes.as_chunks::<WORDS>(),
        ) else {
            return;
        };
        let (slots, _) = codes.as_chunks::<MAX_CODES>();
        for_each(allowed, |slot| {
            let (Some(codes), Some(count)) = (slots.get(slot), self.counts.get(slot)) else {
                return;
            };
            let codes = codes.iter().take(usize::from(*count));
            let distances = codes.map(|code| {
                let words = code.iter().zip(query);
                words
                    .map(|(code, query)| (code ^ query).count_ones())
                    .sum::<u32>()
            });
            if let Some(nearest) = distances.min() {
                found(slot, nearest);
            }
        });
    }

    #[inline(always)]
    fn each_of_any(&self, query: &[u64], allowed: &[u64], found: &mut impl FnMut(usize, u32)) {
        let stride = MAX_CODES * self.words;
        for_each(allowed, |slot| {
            let Some(count) = self.counts.get(slot) else {
                return;
            };
            let codes = self.codes[slot * stride..][..usize::from(*count) * self.words]
                .chunks_exact(self.words);
            if let Some(nearest) = codes.map(|code| super::codes::differing(code, query)).min() {
                found(slot, nearest);
            }
        });
    }
}

/// Calls back with each bit that is set.
#[inline(always)]
fn for_each(bits: &[u64], mut call: impl FnMut(usize)) {
    for (index, word) in bits.iter().enumerate() {
        let mut rest = *word;
        while rest != 0 {
            call(index * u64::BITS as usize + rest.trailing_zeros() as usize);
            rest &= rest - 1;
        }
    }
}
