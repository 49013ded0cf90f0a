//! Facet counts match by match, from the column (fast field) of the values.

use std::collections::BTreeSet;
use std::io;

use tantivy::columnar::StrColumn;
use tantivy::{DocId, SegmentReader};

use super::super::answer::{FACET_VALUES, FacetCounts};
use super::shown::TopValues;

/// Number of most frequent values per segment that are merged first; all values are merged only if these do not
/// suffice.
const FIRST_LOOK: usize = 256;

/// The counts of one facet in one segment, indexed by the value's term ordinal.
pub(super) struct SegmentFacet {
    column: Option<StrColumn>,
    counts: Vec<u32>,
    documents: Vec<DocId>,
    rows: Vec<u32>,
    ordinals: Vec<u64>,
}

impl SegmentFacet {
    /// Creates zero counts for a field of a segment.
    pub fn new(reader: &SegmentReader, field: &str) -> tantivy::Result<Self> {
        let column = reader.fast_fields().str(field)?;
        let values = column
            .as_ref()
            .map_or(0, |column| column.dictionary().num_terms());
        Ok(Self {
            column,
            counts: vec![0; values],
            documents: Vec::new(),
            rows: Vec::new(),
            ordinals: Vec::new(),
        })
    }

    /// Counts the values of these documents, whose ids ascend.
    pub fn count(&mut self, documents: &[DocId]) {
        let Some(column) = &self.column else {
            return;
        };
        self.documents.clear();
        self.rows.clear();
        let ordinals = column.ords();
        ordinals.row_ids_for_docs(documents, &mut self.documents, &mut self.rows);
        self.ordinals.resize(self.rows.len(), 0);
        ordinals.values.get_vals(&self.rows, &mut self.ordinals);
        for ordinal in &self.ordinals {
            // The ordinals come from the same dictionary that the counters were sized for.
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
    pub fn count_of(&self, value: &[u8]) -> io::Result<u64> {
        let Some(column) = &self.column else {
            return Ok(0);
        };
        let ordinal = column.dictionary().term_ord(value)?;
        let at = ordinal.and_then(|ordinal| usize::try_from(ordinal).ok());
        let count = at.and_then(|at| self.counts.get(at));
        Ok(count.map_or(0, |count| u64::from(*count)))
    }

    /// Calls `found` with each of the `limit` most frequent values; returns the largest count left out.
    pub fn most_frequent(&self, limit: usize, mut found: impl FnMut(&[u8])) -> io::Result<u64> {
        let (counted, left) = self.top(limit);
        let mut texts = self.texts(counted)?;
        while let Some((text, _)) = texts.peek() {
            found(text);
            texts.next += 1;
        }
        Ok(u64::from(left))
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
        if let Some(column) = &self.column {
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

/// The counted values of one segment in ascending order; all texts share one buffer.
#[derive(Default)]
struct ColumnValues {
    counted: Vec<(u64, u32)>,
    bytes: Vec<u8>,
    ends: Vec<usize>,
    next: usize,
}

impl ColumnValues {
    fn peek(&self) -> Option<(&[u8], u32)> {
        let end = *self.ends.get(self.next)?;
        let start = self
            .next
            .checked_sub(1)
            .map_or(0, |before| self.ends[before]);
        Some((&self.bytes[start..end], self.counted[self.next].1))
    }
}

/// The counts over all segments. With more than `few` counted values it first tries to merge only the most frequent
/// values of each segment.
pub(super) fn merge(segments: &[SegmentFacet], few: usize) -> io::Result<FacetCounts> {
    let sum: u64 = segments.iter().map(SegmentFacet::sum).sum();
    let values = match segments {
        [one] => summed(std::slice::from_ref(one), FACET_VALUES)?,
        _ => {
            let counted = segments.iter().flat_map(|segment| &segment.counts);
            let many = counted.filter(|count| **count > 0).nth(few).is_some();
            let sure = if many { likely(segments)? } else { None };
            match sure {
                Some(values) => values,
                None => summed(segments, usize::MAX)?,
            }
        }
    };
    let shown: u64 = values.iter().map(|(_, count)| count).sum();
    Ok(FacetCounts {
        values,
        other_count: sum - shown,
    })
}

/// The shown values, computed from the most frequent values of each segment; `None` unless they are certain to be
/// right.
fn likely(segments: &[SegmentFacet]) -> io::Result<Option<Vec<(String, u64)>>> {
    let mut bound = 0;
    let mut candidates: BTreeSet<Vec<u8>> = BTreeSet::new();
    for segment in segments {
        bound += segment.most_frequent(FIRST_LOOK, |text| {
            candidates.insert(text.to_owned());
        })?;
    }
    if candidates.len() < FACET_VALUES || bound == 0 {
        return Ok(None);
    }
    // A value that one segment left out can be a candidate of another, so all segments are asked for its count.
    let mut shown = TopValues::default();
    for value in candidates {
        let counts = segments.iter().map(|segment| segment.count_of(&value));
        shown.offer(&value, counts.sum::<io::Result<u64>>()?);
    }
    let certain = shown.least().is_some_and(|least| least > bound);
    Ok(certain.then(|| shown.finish()))
}

/// The shown values, merged from the `limit` most frequent values of each segment.
fn summed(segments: &[SegmentFacet], limit: usize) -> io::Result<Vec<(String, u64)>> {
    let lists = segments.iter();
    let lists = lists.map(|segment| segment.texts(segment.top(limit).0));
    let mut lists = lists.collect::<io::Result<Vec<_>>>()?;
    let mut shown = TopValues::default();
    let mut value = Vec::new();
    loop {
        let smallest = lists
            .iter()
            .filter_map(ColumnValues::peek)
            .map(|(text, _)| text)
            .min();
        let Some(smallest) = smallest else {
            break;
        };
        value.clear();
        value.extend_from_slice(smallest);
        let mut count = 0;
        for list in &mut lists {
            if let Some((text, here)) = list.peek()
                && text == value
            {
                count += u64::from(here);
                list.next += 1;
            }
        }
        shown.offer(&value, count);
    }
    Ok(shown.finish())
}
