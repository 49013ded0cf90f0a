//! Who a caller may see: what is said about words counts these agents and no others.

use tantivy::{Searcher, Term};

use super::bits::SeenBits;
use super::error::IndexError;
use super::filter::Filter;

/// Who the caller may see, worked out when it is first asked for.
pub(super) struct Seen {
    filter: Filter,
    segments: Option<Vec<SeenBits>>,
}

impl Seen {
    /// Those that a filter lets through.
    pub fn new(filter: Filter) -> Self {
        Self {
            filter,
            segments: None,
        }
    }

    /// The agents of the state that the filter was made for.
    ///
    /// # Errors
    /// Where the index cannot be read.
    pub fn agents<'a>(&'a mut self, searcher: &'a Searcher) -> Result<SeenAgents<'a>, IndexError> {
        let segments = match self.segments.take() {
            Some(segments) => segments,
            None => {
                let readers = searcher.segment_readers().iter();
                let segments =
                    readers.map(|reader| Ok(SeenBits::new(reader, self.filter.bits(reader)?)));
                segments.collect::<tantivy::Result<_>>()?
            }
        };
        let segments = self.segments.insert(segments);
        Ok(SeenAgents { searcher, segments })
    }
}

/// The agents that a caller may see.
pub(super) struct SeenAgents<'a> {
    searcher: &'a Searcher,
    /// Those of each segment.
    segments: &'a [SeenBits],
}

impl SeenAgents<'_> {
    /// How many there are.
    pub fn count(&self) -> u64 {
        let segments = self.segments.iter();
        segments.map(|segment| u64::from(segment.len())).sum()
    }

    /// How many of them hold a term, counted as far as `enough`.
    ///
    /// # Errors
    /// Where the index cannot be read.
    pub fn holders(&self, term: &Term, enough: u64) -> Result<u64, IndexError> {
        let mut holders = 0;
        for (reader, segment) in self.searcher.segment_readers().iter().zip(self.segments) {
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
