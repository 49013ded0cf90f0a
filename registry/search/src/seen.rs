//! Sets of visible agents, and the terms they hold: word statistics count these agents and no others.

use std::ops::{Bound, Range, RangeBounds as _};
use std::sync::Arc;

use tantivy::columnar::StrColumn;
use tantivy::postings::TermInfo;
use tantivy::schema::Field;
use tantivy::termdict::TermDictionary;
use tantivy::{InvertedIndexReader, Searcher, Term};

use super::bits::{Bits, SeenBits};
use super::error::IndexError;
use super::filter::Filter;
use super::keys::KeyKind;

/// Terms of one segment read per wanted term, to find the first ones that agents of a set hold. If agents outside the
/// set hold that many terms among them the walk ends early, because each term costs a read of its postings.
const LOOKED_AT: usize = 16;
/// The same for keys with a column, which is a fast source of the terms that agents of the set hold; so nothing is
/// missed then.
const LOOKED_AT_BESIDE_COLUMN: usize = 2;

/// Counts of the agents of a set that hold a term.
pub(super) trait CountHolders {
    /// Number of holders of a term; may stop counting at `enough`.
    fn holders(&self, term: &Term, enough: u64) -> Result<u64, IndexError>;
}

/// Agents that the caller may see, computed at the first use.
pub(super) struct VisibleAgents {
    filter: Filter,
    segments: Option<Vec<SeenBits>>,
}

impl VisibleAgents {
    /// The agents that pass a filter.
    pub fn new(filter: Filter) -> Self {
        Self {
            filter,
            segments: None,
        }
    }

    /// Visible agents of the index state that the filter was made for.
    pub fn agents<'a>(&'a mut self, searcher: &'a Searcher) -> Result<SeenAgents<'a>, IndexError> {
        let segments = match self.segments.take() {
            Some(segments) => segments,
            None => segments_of(&self.filter, searcher)?,
        };
        let segments = self.segments.insert(segments);
        Ok(SeenAgents { searcher, segments })
    }
}

/// Agents that pass a filter, for each segment.
pub(super) fn segments_of(filter: &Filter, searcher: &Searcher) -> tantivy::Result<Vec<SeenBits>> {
    let readers = searcher.segment_readers().iter();
    readers
        .map(|reader| Ok(SeenBits::new(reader, filter.bits(reader)?)))
        .collect()
}

#[derive(Clone, Copy)]
pub(super) struct SeenAgents<'a> {
    searcher: &'a Searcher,
    segments: &'a [SeenBits],
}

/// The first terms of a dictionary that agents of a set hold.
#[derive(Default)]
pub(super) struct FirstTerms {
    pub bytes: String,
    /// Terms ordered by text, equal ones by segment.
    pub terms: Vec<SegmentTerm>,
    /// Whether more terms exist.
    pub cut: bool,
}

pub(super) struct SegmentTerm {
    pub segment: usize,
    pub info: TermInfo,
    /// Range of the term's text in [`FirstTerms::bytes`].
    pub text: Range<usize>,
}

/// The values of a kind of keys that begin with a text.
#[derive(Clone, Copy)]
pub(super) struct BegunValues<'a> {
    pub kind: KeyKind,
    pub begun: &'a str,
}

/// The terms of one segment, and the agents of the set in it.
struct SegmentTerms<'a> {
    segment: usize,
    index: Arc<InvertedIndexReader>,
    seen: &'a SeenBits,
    /// Column of the values, if they have one, and what is known of them.
    column: Option<(StrColumn, BegunValues<'a>)>,
}

impl SegmentTerms<'_> {
    fn is_held(&self, info: &TermInfo) -> std::io::Result<bool> {
        let held = self.seen.holders(&self.index, info, 1);
        Ok(held.map_err(std::io::Error::other)? > 0)
    }
}

impl FirstTerms {
    /// Adds the first terms of a segment, `most + 1` if there are more than `most`.
    fn read(
        &mut self,
        of: &SegmentTerms<'_>,
        most: usize,
        walk: impl Fn(
            &TermDictionary,
            &mut dyn FnMut(&[u8], &TermInfo) -> std::io::Result<bool>,
        ) -> std::io::Result<()>,
    ) -> Result<(), IndexError> {
        let first = self.terms.len();
        let mut sure = first;
        let mut looked_at = 0;
        let mut ended_early = false;
        let enough = match &of.column {
            Some(_) => most * LOOKED_AT_BESIDE_COLUMN,
            None => most * LOOKED_AT,
        };
        walk(of.index.terms(), &mut |key, info| {
            // Terms without a holder take no room; holders are only looked up once no room is left.
            if self.terms.len() - first > most {
                for term in self.terms.split_off(sure) {
                    if of.is_held(&term.info)? {
                        self.terms.push(term);
                    }
                }
                sure = self.terms.len();
            }
            if self.terms.len() - first > most {
                self.cut = true;
                return Ok(false);
            }
            if looked_at == enough {
                ended_early = true;
                return Ok(false);
            }
            looked_at += 1;
            if let Ok(key) = std::str::from_utf8(key) {
                self.push(of.segment, key, info.clone());
            }
            Ok(true)
        })?;
        match &of.column {
            Some((column, values)) if ended_early => {
                self.terms.truncate(first);
                for value in held(column, of.seen, values.begun, most + 1)? {
                    let key = values.kind.key(&value);
                    if let Some(info) = of.index.terms().get(&key)? {
                        self.push(of.segment, &key, info);
                    }
                }
                self.cut |= self.terms.len() - first > most;
            }
            _ => self.cut |= ended_early,
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

    fn sort(&mut self) {
        let Self { bytes, terms, .. } = self;
        terms.sort_by(|left, right| bytes[left.text.clone()].cmp(&bytes[right.text.clone()]));
    }

    /// Keeps the first `most` texts with a holder, of sorted terms.
    fn keep(
        &mut self,
        most: usize,
        is_held: impl Fn(&SegmentTerm) -> Result<bool, IndexError>,
    ) -> Result<(), IndexError> {
        let mut kept: Vec<SegmentTerm> = Vec::with_capacity(most);
        let mut count = 0;
        for term in std::mem::take(&mut self.terms) {
            let text = &self.bytes[term.text.clone()];
            let known = kept.last();
            let known = known.is_some_and(|last| &self.bytes[last.text.clone()] == text);
            if !known {
                if !is_held(&term)? {
                    continue;
                }
                if count == most {
                    self.cut = true;
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

impl<'a> SeenAgents<'a> {
    /// The set of these agents of each segment.
    pub fn new(searcher: &'a Searcher, segments: &'a [SeenBits]) -> Self {
        Self { searcher, segments }
    }

    /// Finds the first `most` terms that agents of the set hold, among the terms that `walk` reads from the dictionary
    /// of each segment, in ascending order, until its callback returns `false`. The result depends on the agents alone,
    /// not on their segments; terms without a holder are in it only if there are no more than `most` terms at all. If
    /// the walk is over keys whose values have a column, `begun` says which they are.
    pub fn first_terms(
        &self,
        field: Field,
        begun: Option<BegunValues<'_>>,
        most: usize,
        walk: impl Fn(
            &TermDictionary,
            &mut dyn FnMut(&[u8], &TermInfo) -> std::io::Result<bool>,
        ) -> std::io::Result<()>,
    ) -> Result<FirstTerms, IndexError> {
        let mut first = FirstTerms::default();
        for (segment, (reader, seen)) in self.readers().enumerate() {
            let column = match begun.and_then(|values| Some((values.kind.column()?, values))) {
                Some((column, values)) => {
                    let column = reader.fast_fields().str(column)?;
                    column.map(|column| (column, values))
                }
                None => None,
            };
            let terms = SegmentTerms {
                segment,
                index: reader.inverted_index(field)?,
                seen,
                column,
            };
            first.read(&terms, most, &walk)?;
        }
        first.sort();
        if first.terms.len() > most {
            let readers: Vec<_> = self.readers().collect();
            first.keep(most, |term| {
                let (reader, seen) = readers[term.segment];
                Ok(seen.holders(&*reader.inverted_index(field)?, &term.info, 1)? > 0)
            })?;
        }
        Ok(first)
    }

    /// Each segment with the agents of the set in it.
    pub fn readers(&self) -> impl Iterator<Item = (&'a tantivy::SegmentReader, &'a SeenBits)> + '_ {
        self.searcher.segment_readers().iter().zip(self.segments)
    }
}

/// The first values with `prefix` in a column that these documents hold. The cost depends on the documents alone,
/// however many values exist that none of them holds.
fn held(
    column: &StrColumn,
    seen: &SeenBits,
    prefix: &str,
    most: usize,
) -> Result<Vec<String>, IndexError> {
    // No byte of UTF-8 text is 255, so this bound is after all values with the prefix and before all others.
    let mut behind = prefix.as_bytes().to_vec();
    if let Some(last) = behind.last_mut() {
        *last += 1;
    }
    let dictionary = column.dictionary();
    let begun = (
        Bound::Included(prefix.as_bytes()),
        Bound::Excluded(behind.as_slice()),
    );
    let begun = dictionary
        .term_bounds_to_ord(begun.0, begun.1)
        .map_err(tantivy::TantivyError::from)?;
    let mut ordinals = Bits::none(u32::try_from(dictionary.num_terms()).unwrap_or(u32::MAX));
    for document in seen.iter() {
        for ordinal in column.ords().values_for_doc(document) {
            if begun.contains(&ordinal) {
                ordinals.insert(u32::try_from(ordinal).unwrap_or(u32::MAX));
            }
        }
    }
    let mut texts = Vec::new();
    for ordinal in ordinals.iter().take(most) {
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

impl CountHolders for SeenAgents<'_> {
    fn holders(&self, term: &Term, enough: u64) -> Result<u64, IndexError> {
        let mut holders = 0;
        for (reader, segment) in self.readers() {
            if holders >= enough {
                break;
            }
            let index = reader.inverted_index(term.field())?;
            if let Some(info) = index.get_term_info(term)? {
                let missing = u32::try_from(enough - holders).unwrap_or(u32::MAX);
                holders += u64::from(segment.holders(&index, &info, missing)?);
            }
        }
        Ok(holders)
    }
}
