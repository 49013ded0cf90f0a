//! Sets of documents of one segment, one bit each.

use tantivy::DocId;

/// A set of documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    /// The empty set for documents below `max_doc`.
    pub fn none(max_doc: DocId) -> Self {
        Self(vec![0; (max_doc as usize).div_ceil(64)])
    }

    /// All documents below `max_doc`.
    pub fn all(max_doc: DocId) -> Self {
        let mut bits = Self(vec![u64::MAX; (max_doc as usize).div_ceil(64)]);
        let rest = max_doc % 64;
        if let Some(last) = bits.0.last_mut().filter(|_| rest != 0) {
            *last = (1 << rest) - 1;
        }
        bits
    }

    /// Adds a document; one outside the set's bounds is ignored.
    pub fn insert(&mut self, document: DocId) {
        if let Some(word) = self.0.get_mut(document as usize / 64) {
            *word |= 1 << (document % 64);
        }
    }

    /// Takes a document out.
    pub fn remove(&mut self, document: DocId) {
        if let Some(word) = self.0.get_mut(document as usize / 64) {
            *word &= !(1 << (document % 64));
        }
    }

    /// Whether a document is in the set.
    #[inline]
    pub fn contains(&self, document: DocId) -> bool {
        self.0
            .get(document as usize / 64)
            .is_some_and(|word| word >> (document % 64) & 1 == 1)
    }

    /// Keeps what is in the other set too.
    pub fn intersect(&mut self, other: &Self) {
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word &= other;
        }
    }

    /// Keeps what is not in the other set.
    pub fn subtract(&mut self, other: &Self) {
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word &= !other;
        }
    }

    /// Adds what is in the other set.
    pub fn unite(&mut self, other: &Self) {
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word |= other;
        }
    }

    /// How many documents are in the set.
    pub fn len(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// The memory it takes, in bytes.
    pub fn size(&self) -> usize {
        self.0.len() * size_of::<u64>()
    }

    /// The documents, ascending.
    pub fn iter(&self) -> impl Iterator<Item = DocId> + '_ {
        self.0.iter().enumerate().flat_map(|(index, word)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros())?;
                rest &= rest - 1;
                // A segment's documents are numbered in 31 bits, so the index of a word fits.
                DocId::try_from(index * 64).ok().map(|base| base + bit)
            })
        })
    }
}
