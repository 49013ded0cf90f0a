//! Facet counts match by match, from the column (fast field) of the facet's values.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::io;
use std::sync::{Arc, OnceLock};

use tantivy::columnar::StrColumn;
use tantivy::{DocId, SegmentReader};

use super::super::response::{FacetCounts, MAX_FACET_VALUES};
use super::precomputed::PrecomputedValues;
use super::top_values::TopValues;

/// Mark of a value that is not in the large segments, or is not precomputed.
const UNMARKED: u32 = u32::MAX;

/// The column of one facet in one segment, kept for all searches: opening it costs as much as counting hundreds of
/// matches, and the values of a segment never change.
pub(crate) struct FacetColumn {
    column: Option<StrColumn>,
    /// Rank of each value among the precomputed ones, in the order of the segment's values.
    ranks: OnceLock<Box<[u32]>>,
    /// Number of each value in the large segments, in the same order.
    numbers: OnceLock<Box<[u32]>>,
}

impl FacetColumn {
    pub fn open(reader: &SegmentReader, field: &str) -> tantivy::Result<Self> {
        Ok(Self {
            column: reader.fast_fields().str(field)?,
            ranks: OnceLock::new(),
            numbers: OnceLock::new(),
        })
    }

    pub fn len(&self) -> usize {
        let column = self.column.as_ref();
        column.map_or(0, |column| column.dictionary().num_terms())
    }

    pub fn ordinal_of(&self, value: &[u8]) -> io::Result<Option<usize>> {
        let Some(column) = &self.column else {
            return Ok(None);
        };
        let ordinal = column.dictionary().term_ord(value)?;
        Ok(ordinal.and_then(|ordinal| usize::try_from(ordinal).ok()))
    }

    pub fn value_at(&self, ordinal: usize) -> io::Result<Vec<u8>> {
        let mut value = Vec::new();
        if let Some(column) = &self.column {
            let dictionary = column.dictionary();
            dictionary.ord_to_term(ordinal as u64, &mut value)?;
        }
        Ok(value)
    }

    /// The marks of all values, computed once.
    fn cached_value_indices<'a>(
        &self,
        cache: &'a OnceLock<Box<[u32]>>,
        mut mark: impl FnMut(&[u8]) -> io::Result<Option<u32>>,
    ) -> io::Result<&'a [u32]> {
        if let Some(marks) = cache.get() {
            return Ok(marks);
        }
        let mut marks = Vec::with_capacity(self.len());
        let mut failed = None;
        if let Some(column) = &self.column {
            let ordinals: Vec<u64> = (0..self.len() as u64).collect();
            let dictionary = column.dictionary();
            dictionary.sorted_ords_to_term_cb(&ordinals, |text| match mark(text) {
                Ok(mark) => marks.push(mark.unwrap_or(UNMARKED)),
                Err(error) => failed = Some(error),
            })?;
        }
        match failed {
            Some(error) => Err(error),
            None => Ok(cache.get_or_init(|| marks.into())),
        }
    }
}

/// Buffers for reading columns, shared by all facets and segments of a search.
#[derive(Default)]
pub(super) struct ColumnBuffers {
    documents: Vec<DocId>,
    rows: Vec<u32>,
    ordinals: Vec<u64>,
}

pub(super) struct FacetCounter {
    column: Arc<FacetColumn>,
    /// The counts by the value's term ordinal; empty before the first match.
    counts: Vec<u32>,
}

impl FacetCounter {
    pub fn new(column: Arc<FacetColumn>) -> Self {
        Self {
            column,
            counts: Vec::new(),
        }
    }

    /// Counts the values of these documents, whose ids ascend.
    pub fn count_documents(&mut self, documents: &[DocId], buffers: &mut ColumnBuffers) {
        let Some(column) = self
            .column
            .column
            .as_ref()
            .filter(|_| !documents.is_empty())
        else {
            return;
        };
        // The ordinals come from the dictionary that the counters are sized for.
        self.counts.resize(self.column.len(), 0);
        buffers.documents.clear();
        buffers.rows.clear();
        let ordinals = column.ords();
        ordinals.row_ids_for_docs(documents, &mut buffers.documents, &mut buffers.rows);
        buffers.ordinals.resize(buffers.rows.len(), 0);
        ordinals
            .values
            .get_vals(&buffers.rows, &mut buffers.ordinals);
        for ordinal in &buffers.ordinals {
            if let Some(count) = usize::try_from(*ordinal)
                .ok()
                .and_then(|at| self.counts.get_mut(at))
            {
                *count += 1;
            }
        }
    }

    pub fn total(&self) -> u64 {
        self.counts.iter().map(|count| u64::from(*count)).sum()
    }

    pub fn column(&self) -> &FacetColumn {
        &self.column
    }

    /// Adds each count to `sums` at its value's mark; returns the highest count of a value without a mark.
    pub fn add_counts_by_index(&self, marks: &[u32], sums: &mut [u32]) -> u32 {
        let mut max_unmarked = 0;
        for (mark, count) in marks.iter().zip(&self.counts) {
            if *count > 0 {
                match sums.get_mut(*mark as usize) {
                    Some(sum) => *sum += count,
                    None => max_unmarked = max_unmarked.max(*count),
                }
            }
        }
        max_unmarked
    }

    /// The ranks of this segment's values among the precomputed ones; empty before the first match.
    pub fn precomputed_ranks(&self, frequent: &PrecomputedValues) -> io::Result<&[u32]> {
        if self.counts.is_empty() {
            return Ok(&[]);
        }
        let column = &self.column;
        column.cached_value_indices(&column.ranks, |value| Ok(frequent.rank_of_text(value)))
    }

    /// The numbers of this segment's values, by `number_of`; empty before the first match.
    pub fn value_numbers(
        &self,
        number_of: impl FnMut(&[u8]) -> io::Result<Option<u32>>,
    ) -> io::Result<&[u32]> {
        if self.counts.is_empty() {
            return Ok(&[]);
        }
        self.column
            .cached_value_indices(&self.column.numbers, number_of)
    }

    /// The counted values without a mark.
    pub fn values_without_index(&self, marks: &[u32]) -> io::Result<CountedValues> {
        let counted = (0..).zip(marks.iter().zip(&self.counts));
        let counted = counted.filter(|(_, (mark, count))| **mark == UNMARKED && **count > 0);
        let counted = counted.map(|(ordinal, (_, count))| (ordinal, *count));
        self.read_texts(counted.collect())
    }

    /// The most frequent values as (ordinal, count), selected by count and then value, sorted by ordinal.
    fn top_counts(&self, limit: usize) -> Vec<(u64, u32)> {
        let mut counted: Vec<(u64, u32)> = (0..)
            .zip(self.counts.iter().copied())
            .filter(|(_, count)| *count > 0)
            .collect();
        if counted.len() > limit {
            let order = |value: &(u64, u32)| (u32::MAX - value.1, value.0);
            counted.select_nth_unstable_by_key(limit, order);
            counted.truncate(limit);
        }
        counted.sort_unstable();
        counted
    }

    /// Reads the texts of these values, which must be in dictionary order and are returned in it.
    fn read_texts(&self, counted: Vec<(u64, u32)>) -> io::Result<CountedValues> {
        let mut texts = CountedValues {
            counted,
            ..CountedValues::default()
        };
        if let Some(column) = &self.column.column {
            let ordinals: Vec<u64> = texts.counted.iter().map(|(ordinal, _)| *ordinal).collect();
            column
                .dictionary()
                .sorted_ords_to_term_cb(&ordinals, |text| {
                    texts.bytes.extend_from_slice(text);
                    texts.ends.push(texts.bytes.len());
                })?;
        }
        Ok(texts)
    }
}

/// Counted values of one segment in ascending order; all texts share one buffer.
#[derive(Default)]
pub(super) struct CountedValues {
    counted: Vec<(u64, u32)>,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl CountedValues {
    fn iter(&self) -> impl Iterator<Item = (&[u8], u32)> {
        let bytes = &self.bytes;
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let counts = self.counted.iter().map(|(_, count)| *count);
        let texts = starts.zip(&self.ends);
        let texts = texts.map(move |(start, end)| &bytes[start..*end]);
        texts.zip(counts)
    }
}

/// Calls `emit` with each value of these lists and the sum of its counts, in ascending order.
pub(super) fn merge_counted_values<'a>(
    lists: &'a [CountedValues],
    mut emit: impl FnMut(&'a [u8], u64),
) {
    let mut rests: Vec<_> = lists.iter().map(CountedValues::iter).collect();
    let mut heads: BinaryHeap<Reverse<(&'a [u8], usize, u32)>> = BinaryHeap::new();
    for (list, rest) in rests.iter_mut().enumerate() {
        heads.extend(
            rest.next()
                .map(|(text, count)| Reverse((text, list, count))),
        );
    }
    let mut summed: Option<(&'a [u8], u64)> = None;
    while let Some(mut head) = heads.peek_mut() {
        let Reverse((text, list, count)) = *head;
        match rests[list].next() {
            Some((next, count)) => *head = Reverse((next, list, count)),
            None => {
                PeekMut::pop(head);
            }
        }
        let before = match summed {
            Some((known, sum)) if known == text => sum,
            Some((known, sum)) => {
                emit(known, sum);
                0
            }
            None => 0,
        };
        summed = Some((text, before + u64::from(count)));
    }
    if let Some((text, sum)) = summed {
        emit(text, sum);
    }
}

/// Merges the counts of all segments by the texts of the values.
pub(super) fn merge_facet_counts(segments: &[FacetCounter]) -> io::Result<FacetCounts> {
    let sum: u64 = segments.iter().map(FacetCounter::total).sum();
    let matched = segments.iter().filter(|segment| !segment.counts.is_empty());
    let matched: Vec<&FacetCounter> = matched.collect();
    // A value that is rare in one segment can be frequent in the others.
    let limit = match matched.len() {
        1 => MAX_FACET_VALUES,
        _ => usize::MAX,
    };
    let lists = matched.iter();
    let lists = lists.map(|segment| segment.read_texts(segment.top_counts(limit)));
    let lists = lists.collect::<io::Result<Vec<_>>>()?;
    let mut shown = TopValues::default();
    merge_counted_values(&lists, |text, count| shown.offer(text, count));
    Ok(shown.into_counts(sum))
}
