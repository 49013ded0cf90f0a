//! Facet counts match by match, from the column (fast field) of the values.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::io;
use std::sync::{Arc, OnceLock};

use tantivy::columnar::StrColumn;
use tantivy::{DocId, SegmentReader};

use super::super::answer::{FACET_VALUES, FacetCounts};
use super::frequent::FacetValues;
use super::shown::TopValues;

/// Number of most frequent values per segment that are merged first; all values are merged only if these do not
/// suffice.
const FIRST_LOOK: usize = 256;

/// Rank of a value that is not precomputed.
const UNRANKED: u32 = u32::MAX;

/// The values of one facet in one segment. Opening a column costs as much as counting hundreds of matches, and the values
/// of a segment never change, so this is kept for all searches.
pub(crate) struct FacetColumn {
    column: Option<StrColumn>,
    /// Rank of each value among the precomputed ones, in the order of the segment's values.
    ranks: OnceLock<Box<[u32]>>,
}

impl FacetColumn {
    /// Opens the column of a field.
    pub fn open(reader: &SegmentReader, field: &str) -> tantivy::Result<Self> {
        Ok(Self {
            column: reader.fast_fields().str(field)?,
            ranks: OnceLock::new(),
        })
    }

    fn values(&self) -> usize {
        let column = self.column.as_ref();
        column.map_or(0, |column| column.dictionary().num_terms())
    }

    /// The ranks of all values among `frequent`, which must always be the same.
    fn ranks(&self, frequent: &FacetValues) -> io::Result<&[u32]> {
        if let Some(ranks) = self.ranks.get() {
            return Ok(ranks);
        }
        let mut ranks = Vec::with_capacity(self.values());
        if let Some(column) = &self.column {
            let ordinals: Vec<u64> = (0..self.values() as u64).collect();
            let dictionary = column.dictionary();
            dictionary.sorted_ords_to_term_cb(&ordinals, |text| {
                ranks.push(frequent.rank_of(text).unwrap_or(UNRANKED));
            })?;
        }
        Ok(self.ranks.get_or_init(|| ranks.into()))
    }
}

/// The counts of one facet in one segment.
pub(super) struct SegmentFacet {
    column: Arc<FacetColumn>,
    /// The counts by the value's term ordinal; empty before the first match.
    counts: Vec<u32>,
    documents: Vec<DocId>,
    rows: Vec<u32>,
    ordinals: Vec<u64>,
}

impl SegmentFacet {
    /// Creates zero counts of the values of a column.
    pub fn new(column: Arc<FacetColumn>) -> Self {
        Self {
            column,
            counts: Vec::new(),
            documents: Vec::new(),
            rows: Vec::new(),
            ordinals: Vec::new(),
        }
    }

    /// Counts the values of these documents, whose ids ascend.
    pub fn count(&mut self, documents: &[DocId]) {
        let Some(column) = self
            .column
            .column
            .as_ref()
            .filter(|_| !documents.is_empty())
        else {
            return;
        };
        // The ordinals come from the same dictionary that the counters are sized for.
        self.counts.resize(self.column.values(), 0);
        self.documents.clear();
        self.rows.clear();
        let ordinals = column.ords();
        ordinals.row_ids_for_docs(documents, &mut self.documents, &mut self.rows);
        self.ordinals.resize(self.rows.len(), 0);
        ordinals.values.get_vals(&self.rows, &mut self.ordinals);
        for ordinal in &self.ordinals {
            if let Some(count) = usize::try_from(*ordinal)
                .ok()
                .and_then(|at| self.counts.get_mut(at))
            {
                *count += 1;
            }
        }
    }

    /// The total of all counts.
    pub fn sum(&self) -> u64 {
        self.counts.iter().map(|count| u64::from(*count)).sum()
    }

    /// The count of one value.
    fn count_of(&self, value: &[u8]) -> io::Result<u64> {
        let column = self.column.column.as_ref();
        let Some(column) = column.filter(|_| !self.counts.is_empty()) else {
            return Ok(0);
        };
        let ordinal = column.dictionary().term_ord(value)?;
        let at = ordinal.and_then(|ordinal| usize::try_from(ordinal).ok());
        let count = at.and_then(|at| self.counts.get(at));
        Ok(count.map_or(0, |count| u64::from(*count)))
    }

    /// Adds the counts of precomputed values to `sums`, by rank; returns the highest count of another value.
    pub fn add_ranked(&self, frequent: &FacetValues, sums: &mut [u64]) -> io::Result<u64> {
        if self.counts.is_empty() {
            return Ok(0);
        }
        let mut most = 0;
        for (rank, count) in self.column.ranks(frequent)?.iter().zip(&self.counts) {
            if *count > 0 {
                match sums.get_mut(*rank as usize) {
                    Some(sum) => *sum += u64::from(*count),
                    None => most = most.max(*count),
                }
            }
        }
        Ok(most.into())
    }

    /// The counted values that are not precomputed.
    pub fn unranked(&self, frequent: &FacetValues) -> io::Result<ColumnValues> {
        if self.counts.is_empty() {
            return Ok(ColumnValues::default());
        }
        let ranks = self.column.ranks(frequent)?.iter();
        let counted = (0..).zip(ranks.zip(&self.counts));
        let counted = counted.filter(|(_, (rank, count))| **rank == UNRANKED && **count > 0);
        self.texts(
            counted
                .map(|(ordinal, (_, count))| (ordinal, *count))
                .collect(),
        )
    }

    /// The most frequent values as (ordinal, count), selected by count and then value, sorted by ordinal; and the
    /// largest count left out.
    fn top(&self, limit: usize) -> (Vec<(u64, u32)>, u32) {
        let mut counted: Vec<(u64, u32)> = (0..)
            .zip(self.counts.iter().copied())
            .filter(|(_, count)| *count > 0)
            .collect();
        let mut left = 0;
        if counted.len() > limit {
            let order = |value: &(u64, u32)| (u32::MAX - value.1, value.0);
            let (_, first_out, _) = counted.select_nth_unstable_by_key(limit, order);
            left = first_out.1;
            counted.truncate(limit);
        }
        counted.sort_unstable();
        (counted, left)
    }

    /// The texts of these values, which must be in dictionary order and are returned in it.
    fn texts(&self, counted: Vec<(u64, u32)>) -> io::Result<ColumnValues> {
        let mut texts = ColumnValues {
            counted,
            ..ColumnValues::default()
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
pub(super) struct ColumnValues {
    counted: Vec<(u64, u32)>,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl ColumnValues {
    fn iter(&self) -> impl Iterator<Item = (&[u8], u32)> {
        let bytes = &self.bytes;
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let counts = self.counted.iter().map(|(_, count)| *count);
        let texts = starts.zip(&self.ends);
        let texts = texts.map(move |(start, end)| &bytes[start..*end]);
        texts.zip(counts)
    }
}

/// Calls `found` with each value of these lists and the sum of its counts, in ascending order.
pub(super) fn add_up<'a>(lists: &'a [ColumnValues], mut found: impl FnMut(&'a [u8], u64)) {
    let mut rests: Vec<_> = lists.iter().map(ColumnValues::iter).collect();
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
            None => drop(PeekMut::pop(head)),
        }
        let before = match summed {
            Some((known, sum)) if known == text => sum,
            Some((known, sum)) => {
                found(known, sum);
                0
            }
            None => 0,
        };
        summed = Some((text, before + u64::from(count)));
    }
    if let Some((text, sum)) = summed {
        found(text, sum);
    }
}

/// The counts over all segments. With more than `few` counted values it first tries to merge only the most frequent
/// values of each segment.
pub(super) fn merge(segments: &[SegmentFacet], few: usize) -> io::Result<FacetCounts> {
    let sum: u64 = segments.iter().map(SegmentFacet::sum).sum();
    let matched = segments.iter().filter(|segment| !segment.counts.is_empty());
    let matched: Vec<&SegmentFacet> = matched.collect();
    let values = match matched.as_slice() {
        [_] => merged(&matched, FACET_VALUES)?,
        _ => {
            let counted = matched.iter().flat_map(|segment| &segment.counts);
            let many = counted.filter(|count| **count > 0).nth(few).is_some();
            let sure = if many { likely(&matched)? } else { None };
            match sure {
                Some(values) => values,
                None => merged(&matched, usize::MAX)?,
            }
        }
    };
    let shown: u64 = values.iter().map(|(_, count)| count).sum();
    Ok(FacetCounts {
        values,
        other_count: sum - shown,
    })
}

/// The shown values, computed from the most frequent values of each segment; `None` where it is not certain that they
/// would be right.
fn likely(segments: &[&SegmentFacet]) -> io::Result<Option<Vec<(String, u64)>>> {
    let mut missing = 0;
    let mut lists = Vec::with_capacity(segments.len());
    for segment in segments {
        let (counted, left) = segment.top(FIRST_LOOK);
        missing += u64::from(left);
        lists.push(segment.texts(counted)?);
    }
    let mut candidates: Vec<(Reverse<u64>, &[u8])> = Vec::new();
    add_up(&lists, |text, count| {
        candidates.push((Reverse(count), text))
    });
    candidates.sort_unstable();
    // No value that every segment left out occurs more often than `missing`, so the candidates have to.
    let last_shown = candidates.get(FACET_VALUES - 1);
    if last_shown.is_none_or(|(Reverse(count), _)| *count <= missing) {
        return Ok(None);
    }
    // A value that one segment left out can be a candidate of another, so all segments are asked for its count.
    let mut shown = TopValues::default();
    for (Reverse(count), text) in candidates {
        if !shown.certain(count + missing, text) {
            let counts = segments.iter().map(|segment| segment.count_of(text));
            shown.offer(text, counts.sum::<io::Result<u64>>()?);
        }
    }
    Ok(Some(shown.finish()))
}

/// The shown values, merged from the `limit` most frequent values of each segment.
fn merged(segments: &[&SegmentFacet], limit: usize) -> io::Result<Vec<(String, u64)>> {
    let lists = segments.iter();
    let lists = lists.map(|segment| segment.texts(segment.top(limit).0));
    let lists = lists.collect::<io::Result<Vec<_>>>()?;
    let mut shown = TopValues::default();
    add_up(&lists, |text, count| shown.offer(text, count));
    Ok(shown.finish())
}
