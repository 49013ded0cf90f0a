//! Sets of visible agents, and the terms in them: word statistics count only these agents.

use std::ops::{Bound, Range, RangeBounds as _};
use std::sync::Arc;

use tantivy::columnar::StrColumn;
use tantivy::postings::TermInfo;
use tantivy::schema::Field;
use tantivy::termdict::TermDictionary;
use tantivy::{InvertedIndexReader, Searcher, Term};

use super::doc_bit_set::{DocBitSet, VisibleDocs};
use super::error::IndexError;
use super::filter::DocumentFilter;
use super::keys::KeyKind;

/// Terms read from one segment per wanted term, to find the first terms that agents of a set contain. If other agents
/// have that many terms among them, the scan ends early, because each term costs a read of its postings.
const SCAN_FACTOR: usize = 16;
/// The same for keys with a column, which quickly provides the terms that agents of the set contain, so no term is
/// missed.
const COLUMN_SCAN_FACTOR: usize = 2;

/// Counts the agents of a set that contain a term.
pub(super) trait CountTermDocs {
    /// Number of agents that contain a term; may stop counting at `max_count`.
    fn count_term_docs(&self, term: &Term, max_count: u64) -> Result<u64, IndexError>;
}

/// The agents that the caller may see, computed on first use.
pub(super) struct LazyVisibleAgents {
    filter: DocumentFilter,
    segments: Option<Vec<VisibleDocs>>,
}

impl LazyVisibleAgents {
    /// The agents that pass a filter.
    pub fn new(filter: DocumentFilter) -> Self {
        Self {
            filter,
            segments: None,
        }
    }

    /// The visible agents in the index state of the filter.
    pub fn get_or_compute<'a>(
        &'a mut self,
        searcher: &'a Searcher,
    ) -> Result<VisibleAgentSet<'a>, IndexError> {
        let segments = match self.segments.take() {
            Some(segments) => segments,
            None => visible_docs_by_segment(&self.filter, searcher)?,
        };
        let segments = self.segments.insert(segments);
        Ok(VisibleAgentSet { searcher, segments })
    }
}

/// The agents that pass a filter, for each segment.
pub(super) fn visible_docs_by_segment(
    filter: &DocumentFilter,
    searcher: &Searcher,
) -> tantivy::Result<Vec<VisibleDocs>> {
    let readers = searcher.segment_readers().iter();
    readers
        .map(|reader| Ok(VisibleDocs::new(reader, filter.matching_docs(reader)?)))
        .collect()
}

#[derive(Clone, Copy)]
pub(super) struct VisibleAgentSet<'a> {
    searcher: &'a Searcher,
    segments: &'a [VisibleDocs],
}

/// The first terms of a dictionary that agents of a set contain.
#[derive(Default)]
pub(super) struct FirstVisibleTerms {
    pub bytes: String,
    /// Terms ordered by text, equal ones by segment.
    pub terms: Vec<SegmentTerm>,
    /// Whether more terms exist.
    pub truncated: bool,
}

pub(super) struct SegmentTerm {
    pub segment: usize,
    pub info: TermInfo,
    /// Range of the term's text in [`FirstVisibleTerms::bytes`].
    pub text: Range<usize>,
}

/// The values of one kind of keys with a prefix.
#[derive(Clone, Copy)]
pub(super) struct KeyPrefix<'a> {
    pub kind: KeyKind,
    pub prefix: &'a str,
}

/// The terms of one segment, and the agents of the set in it.
struct SegmentTerms<'a> {
    segment: usize,
    index: Arc<InvertedIndexReader>,
    visible_docs: &'a VisibleDocs,
    /// Column of the values, if they have one, with their kind and prefix.
    column: Option<(StrColumn, KeyPrefix<'a>)>,
}

impl SegmentTerms<'_> {
    fn has_visible_doc(&self, info: &TermInfo) -> std::io::Result<bool> {
        let held = self.visible_docs.count_term_docs(&self.index, info, 1);
        Ok(held.map_err(std::io::Error::other)? > 0)
    }
}

impl FirstVisibleTerms {
    /// Adds the first terms of a segment, one more than `limit` if there are that many.
    fn read_segment_terms(
        &mut self,
        segment_terms: &SegmentTerms<'_>,
        limit: usize,
        walk: impl Fn(
            &TermDictionary,
            &mut dyn FnMut(&[u8], &TermInfo) -> std::io::Result<bool>,
        ) -> std::io::Result<()>,
    ) -> Result<(), IndexError> {
        let first = self.terms.len();
        let mut checked_len = first;
        let mut scanned = 0;
        let mut ended_early = false;
        let scan_limit = match &segment_terms.column {
            Some(_) => limit * COLUMN_SCAN_FACTOR,
            None => limit * SCAN_FACTOR,
        };
        walk(segment_terms.index.terms(), &mut |key, info| {
            // Terms without a visible agent take no space; agents are only looked up once the space is full.
            if self.terms.len() - first > limit {
                for term in self.terms.split_off(checked_len) {
                    if segment_terms.has_visible_doc(&term.info)? {
                        self.terms.push(term);
                    }
                }
                checked_len = self.terms.len();
            }
            if self.terms.len() - first > limit {
                self.truncated = true;
                return Ok(false);
            }
            if scanned == scan_limit {
                ended_early = true;
                return Ok(false);
            }
            scanned += 1;
            if let Ok(key) = std::str::from_utf8(key) {
                self.push(segment_terms.segment, key, info.clone());
            }
            Ok(true)
        })?;
        match &segment_terms.column {
            Some((column, values)) if ended_early => {
                self.terms.truncate(first);
                for value in visible_prefixed_values(
                    column,
                    segment_terms.visible_docs,
                    values.prefix,
                    limit + 1,
                )? {
                    let key = values.kind.encode(&value);
                    if let Some(info) = segment_terms.index.terms().get(&key)? {
                        self.push(segment_terms.segment, &key, info);
                    }
                }
                self.truncated |= self.terms.len() - first > limit;
            }
            _ => self.truncated |= ended_early,
        }
        Ok(())
    }

    fn push(&mut self, segment: usize, text: &str, info: TermInfo) {
        let start = self.bytes.len();
        self.bytes.push_str(text);
        self.terms.push(SegmentTerm {
            segment,
            info,
            text: start..self.bytes.len(),
        });
    }

    fn sort_by_text(&mut self) {
        let Self { bytes, terms, .. } = self;
        terms.sort_by(|left, right| bytes[left.text.clone()].cmp(&bytes[right.text.clone()]));
    }

    /// Keeps the first `limit` texts with a visible agent, of sorted terms.
    fn retain_first_visible(
        &mut self,
        limit: usize,
        has_visible_doc: impl Fn(&SegmentTerm) -> Result<bool, IndexError>,
    ) -> Result<(), IndexError> {
        let mut kept: Vec<SegmentTerm> = Vec::with_capacity(limit);
        let mut count = 0;
        for term in std::mem::take(&mut self.terms) {
            let text = &self.bytes[term.text.clone()];
            let known = kept.last();
            let known = known.is_some_and(|last| &self.bytes[last.text.clone()] == text);
            if !known {
                if !has_visible_doc(&term)? {
                    continue;
                }
                if count == limit {
                    self.truncated = true;
                    break;
                }
                count += 1;
            }
            kept.push(term);
        }
        self.terms = kept;
        Ok(())
    }
}

impl<'a> VisibleAgentSet<'a> {
    /// Creates the set from these agents of each segment.
    pub fn new(searcher: &'a Searcher, segments: &'a [VisibleDocs]) -> Self {
        Self { searcher, segments }
    }

    /// Finds the first `limit` terms that agents of the set contain, among the terms that `walk` reads from the
    /// dictionary of each segment, in ascending order, until its callback returns `false`. The result depends only on
    /// the agents, not on their segments; it includes terms of no agent only if there are at most `limit` terms in
    /// total. If `walk` reads keys whose values have a column, `prefixed_keys` describes them.
    pub fn first_terms(
        &self,
        field: Field,
        prefixed_keys: Option<KeyPrefix<'_>>,
        limit: usize,
        walk: impl Fn(
            &TermDictionary,
            &mut dyn FnMut(&[u8], &TermInfo) -> std::io::Result<bool>,
        ) -> std::io::Result<()>,
    ) -> Result<FirstVisibleTerms, IndexError> {
        let mut leading = FirstVisibleTerms::default();
        for (segment, (reader, visible_docs)) in self.segments_with_docs().enumerate() {
            let column =
                match prefixed_keys.and_then(|values| Some((values.kind.column_name()?, values))) {
                    Some((column, values)) => {
                        let column = reader.fast_fields().str(column)?;
                        column.map(|column| (column, values))
                    }
                    None => None,
                };
            let terms = SegmentTerms {
                segment,
                index: reader.inverted_index(field)?,
                visible_docs,
                column,
            };
            leading.read_segment_terms(&terms, limit, &walk)?;
        }
        leading.sort_by_text();
        if leading.terms.len() > limit {
            let readers: Vec<_> = self.segments_with_docs().collect();
            leading.retain_first_visible(limit, |term| {
                let (reader, visible_docs) = readers[term.segment];
                Ok(
                    visible_docs.count_term_docs(&*reader.inverted_index(field)?, &term.info, 1)?
                        > 0,
                )
            })?;
        }
        Ok(leading)
    }

    /// Each segment with the agents of the set in it.
    pub fn segments_with_docs(
        &self,
    ) -> impl Iterator<Item = (&'a tantivy::SegmentReader, &'a VisibleDocs)> + '_ {
        self.searcher.segment_readers().iter().zip(self.segments)
    }
}

/// The first values with `prefix` in a column that these documents contain. The cost depends on these documents only,
/// not on the values of others.
fn visible_prefixed_values(
    column: &StrColumn,
    visible_docs: &VisibleDocs,
    prefix: &str,
    limit: usize,
) -> Result<Vec<String>, IndexError> {
    // UTF-8 text contains no byte 255, so this bound is after all values with the prefix and before all others.
    let mut upper_bound = prefix.as_bytes().to_vec();
    if let Some(last) = upper_bound.last_mut() {
        *last += 1;
    }
    let dictionary = column.dictionary();
    let bounds = (
        Bound::Included(prefix.as_bytes()),
        Bound::Excluded(upper_bound.as_slice()),
    );
    let ordinal_range = dictionary
        .term_bounds_to_ord(bounds.0, bounds.1)
        .map_err(tantivy::TantivyError::from)?;
    let mut ordinals = DocBitSet::empty(u32::try_from(dictionary.num_terms()).unwrap_or(u32::MAX));
    for document in visible_docs.iter() {
        for ordinal in column.ords().values_for_doc(document) {
            if ordinal_range.contains(&ordinal) {
                ordinals.insert(u32::try_from(ordinal).unwrap_or(u32::MAX));
            }
        }
    }
    let mut texts = Vec::new();
    for ordinal in ordinals.iter().take(limit) {
        let mut text = String::new();
        if column
            .ord_to_str(u64::from(ordinal), &mut text)
            .map_err(tantivy::TantivyError::from)?
        {
            texts.push(text);
        }
    }
    Ok(texts)
}

impl CountTermDocs for VisibleAgentSet<'_> {
    fn count_term_docs(&self, term: &Term, max_count: u64) -> Result<u64, IndexError> {
        let mut count = 0;
        for (reader, segment) in self.segments_with_docs() {
            if count >= max_count {
                break;
            }
            let index = reader.inverted_index(term.field())?;
            if let Some(info) = index.get_term_info(term)? {
                let missing = u32::try_from(max_count - count).unwrap_or(u32::MAX);
                count += u64::from(segment.count_term_docs(&index, &info, missing)?);
            }
        }
        Ok(count)
    }
}
