//! Sets of documents of one segment, one bit each, and which of them hold a term.

use a2a_registry_simd::widened;
use tantivy::postings::{SegmentPostings, TermInfo};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, DocSet, InvertedIndexReader, SegmentReader, TERMINATED};

/// Postings are decoded in blocks of so many documents, and looking for another block pays only beyond them.
const POSTINGS_BLOCK: u32 = 128;

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

    /// Adds the documents of these postings, from where they stand.
    pub fn insert_all(&mut self, mut postings: SegmentPostings) {
        while postings.doc() != TERMINATED {
            self.insert(postings.doc());
            postings.advance();
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

    /// The first document of the set from this one on.
    fn first_from(&self, document: DocId) -> Option<DocId> {
        let first = document as usize / 64;
        let words = self.0.iter().enumerate().skip(first);
        words
            .map(|(index, word)| match index == first {
                true => (index, word & (u64::MAX << (document % 64))),
                false => (index, *word),
            })
            .find(|(_, word)| *word != 0)
            .and_then(|(index, word)| {
                let base = DocId::try_from(index * 64).ok()?;
                Some(base + word.trailing_zeros())
            })
    }

    /// The documents of these postings that are in the set, ascending. Stretches of postings that the set has nothing
    /// of are passed over.
    pub fn among(&self, mut postings: SegmentPostings) -> impl Iterator<Item = DocId> + '_ {
        std::iter::from_fn(move || {
            loop {
                let document = postings.doc();
                if document == TERMINATED {
                    return None;
                }
                let next = self.first_from(document)?;
                if next == document {
                    postings.advance();
                    return Some(document);
                }
                if next - document > POSTINGS_BLOCK {
                    postings.seek(next);
                } else {
                    postings.advance();
                }
            }
        })
    }

    /// How many documents are in both sets.
    pub fn common(&self, other: &Self) -> u32 {
        widened(
            #[inline(always)]
            || {
                let mut common = 0;
                for (one, other) in self.0.iter().zip(&other.0) {
                    common += (one & other).count_ones();
                }
                common
            },
        )
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

/// The documents of a segment that a caller may see.
pub(super) struct SeenBits {
    bits: Bits,
    seen: u32,
    hidden: u32,
    /// The other documents, where they are so few that looking for them among many is worth it.
    others: Option<Bits>,
}

impl SeenBits {
    /// Of a segment's documents these.
    pub fn new(reader: &SegmentReader, bits: Bits) -> Self {
        let seen = bits.len();
        let hidden = reader.max_doc().saturating_sub(seen);
        let others = (hidden < reader.max_doc() / POSTINGS_BLOCK).then(|| {
            let mut others = Bits::all(reader.max_doc());
            others.subtract(&bits);
            others
        });
        Self {
            bits,
            seen,
            hidden,
            others,
        }
    }

    /// How many there are.
    pub fn len(&self) -> u32 {
        self.seen
    }

    /// Whether they are all there are, the deleted ones included.
    pub fn hides_nobody(&self) -> bool {
        self.hidden == 0
    }

    /// Their documents, ascending.
    pub fn iter(&self) -> impl Iterator<Item = DocId> + '_ {
        self.bits.iter()
    }

    /// How many of them hold a term, counted as far as `enough`. Only they decide the answer: how often others hold
    /// the term cannot be told from it.
    pub fn holders(
        &self,
        index: &InvertedIndexReader,
        term: &TermInfo,
        enough: u32,
    ) -> tantivy::Result<u32> {
        if self.hidden == 0 {
            return Ok(term.doc_freq.min(enough));
        }
        // Those who hold it and are more than the hidden ones are not all hidden.
        if term.doc_freq.saturating_sub(self.hidden) >= enough {
            return Ok(enough);
        }
        let postings = index.read_postings_from_terminfo(term, IndexRecordOption::Basic)?;
        let holders = match &self.others {
            // Most blocks of postings are passed over.
            Some(others) if self.hidden < term.doc_freq / POSTINGS_BLOCK => {
                term.doc_freq as usize - others.among(postings).count()
            }
            _ => self.among(postings).take(enough as usize).count(),
        };
        Ok(u32::try_from(holders).unwrap_or(enough).min(enough))
    }

    /// Those of these postings, ascending.
    pub fn among(&self, postings: SegmentPostings) -> impl Iterator<Item = DocId> + '_ {
        self.bits.among(postings)
    }
}
