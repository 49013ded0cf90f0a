//! Bit sets of a segment's documents, and counts of the documents that contain a term.

use std::sync::Arc;

use a2a_registry_simd::run_vectorized;
use tantivy::postings::{SegmentPostings, TermInfo};
use tantivy::schema::IndexRecordOption;
use tantivy::{BitSet, DocId, DocSet, InvertedIndexReader, SegmentReader, TERMINATED};

/// Documents per decoded block of postings; skipping pays only for gaps larger than that.
const POSTINGS_BLOCK: u32 = 128;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DocBitSet(Vec<u64>);

impl DocBitSet {
    pub fn empty(max_doc: DocId) -> Self {
        Self(vec![0; (max_doc as usize).div_ceil(64)])
    }

    pub fn full(max_doc: DocId) -> Self {
        let mut bits = Self(vec![u64::MAX; (max_doc as usize).div_ceil(64)]);
        let rest = max_doc % 64;
        if let Some(last) = bits.0.last_mut().filter(|_| rest != 0) {
            *last = (1 << rest) - 1;
        }
        bits
    }

    /// The undeleted documents of a segment. They are copied 64 at a time, because each commit that deletes an agent
    /// needs them again.
    pub fn alive(reader: &SegmentReader) -> Self {
        let mut bits = Self::full(reader.max_doc());
        if let Some(alive) = reader.alive_bitset() {
            let mut living = BitSet::with_max_value_and_full(reader.max_doc());
            living.intersect_update(alive.bitset());
            for (bucket, word) in (0..).zip(&mut bits.0) {
                *word = u64::from_le_bytes(living.tinyset(bucket).into_bytes());
            }
        }
        bits
    }

    /// Ignores a document outside the set's bounds.
    pub fn insert(&mut self, document: DocId) {
        if let Some(word) = self.0.get_mut(document as usize / 64) {
            *word |= 1 << (document % 64);
        }
    }

    /// Adds the documents of these postings, from the current one on.
    pub fn insert_postings(&mut self, mut postings: SegmentPostings) {
        while postings.doc() != TERMINATED {
            self.insert(postings.doc());
            postings.advance();
        }
    }

    pub fn remove(&mut self, document: DocId) {
        if let Some(word) = self.0.get_mut(document as usize / 64) {
            *word &= !(1 << (document % 64));
        }
    }

    #[inline]
    pub fn contains(&self, document: DocId) -> bool {
        self.0
            .get(document as usize / 64)
            .is_some_and(|word| word >> (document % 64) & 1 == 1)
    }

    pub fn intersect_with(&mut self, other: &Self) {
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word &= other;
        }
    }

    pub fn subtract(&mut self, other: &Self) {
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word &= !other;
        }
    }

    pub fn union_with(&mut self, other: &Self) {
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word |= other;
        }
    }

    fn next_at_or_after(&self, document: DocId) -> Option<DocId> {
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

    /// The documents of these postings that are in the set, ascending. Blocks of postings without any are skipped.
    pub fn intersect_postings(
        &self,
        mut postings: SegmentPostings,
    ) -> impl Iterator<Item = DocId> + '_ {
        std::iter::from_fn(move || {
            loop {
                let document = postings.doc();
                if document == TERMINATED {
                    return None;
                }
                let next = self.next_at_or_after(document)?;
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

    pub fn intersection_len(&self, other: &Self) -> u32 {
        run_vectorized(
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

    pub fn len(&self) -> u32 {
        run_vectorized(
            #[inline(always)]
            || {
                let mut len = 0;
                for word in &self.0 {
                    len += word.count_ones();
                }
                len
            },
        )
    }

    pub fn byte_size(&self) -> usize {
        self.0.len() * size_of::<u64>()
    }

    pub fn iter(&self) -> impl Iterator<Item = DocId> + '_ {
        self.0.iter().enumerate().flat_map(|(index, word)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros())?;
                rest &= rest - 1;
                // A segment's document ids have 31 bits, so the index of a word fits.
                DocId::try_from(index * 64).ok().map(|base| base + bit)
            })
        })
    }
}

/// The visible documents of a segment.
pub(super) struct VisibleDocs {
    bits: Arc<DocBitSet>,
    visible_count: u32,
    hidden_count: u32,
    /// The other documents, if there are so few that intersecting with them is cheaper.
    hidden_docs: Option<DocBitSet>,
}

impl VisibleDocs {
    pub fn new(reader: &SegmentReader, bits: Arc<DocBitSet>) -> Self {
        let visible_count = bits.len();
        let hidden_count = reader.max_doc().saturating_sub(visible_count);
        let hidden_docs = (hidden_count < reader.max_doc() / POSTINGS_BLOCK).then(|| {
            let mut others = DocBitSet::full(reader.max_doc());
            others.subtract(&bits);
            others
        });
        Self {
            bits,
            visible_count,
            hidden_count,
            hidden_docs,
        }
    }

    pub fn len(&self) -> u32 {
        self.visible_count
    }

    /// Whether the set contains all documents of the segment, deleted ones included.
    pub fn covers_segment(&self) -> bool {
        self.hidden_count == 0
    }

    pub fn iter(&self) -> impl Iterator<Item = DocId> + '_ {
        self.bits.iter()
    }

    /// Number of documents in the set that contain a term, counted up to `max_count`. The number depends on these
    /// documents only, so it does not reveal how many others contain the term.
    pub fn count_term_docs(
        &self,
        index: &InvertedIndexReader,
        term: &TermInfo,
        max_count: u32,
    ) -> tantivy::Result<u32> {
        if self.hidden_count == 0 {
            return Ok(term.doc_freq.min(max_count));
        }
        // At most `hidden_count` documents with the term are outside the set, so the others are in it.
        if term.doc_freq.saturating_sub(self.hidden_count) >= max_count {
            return Ok(max_count);
        }
        let postings = index.read_postings_from_terminfo(term, IndexRecordOption::Basic)?;
        let count = match &self.hidden_docs {
            // Most blocks of postings are skipped.
            Some(others) if self.hidden_count < term.doc_freq / POSTINGS_BLOCK => {
                term.doc_freq as usize - others.intersect_postings(postings).count()
            }
            _ => self
                .intersect_postings(postings)
                .take(max_count as usize)
                .count(),
        };
        Ok(u32::try_from(count).unwrap_or(max_count).min(max_count))
    }

    pub fn intersect_postings(
        &self,
        postings: SegmentPostings,
    ) -> impl Iterator<Item = DocId> + '_ {
        self.bits.intersect_postings(postings)
    }
}
