//! Facet counts over all matches of a search. Few matches are counted one by one, from the columns (fast fields) of the
//! index; many matches are counted as bit sets, starting with the most frequent values. Small segments, of which a living
//! index has several, are always counted one by one, and added to either.

mod column;
mod columns;
mod frequent;
mod numbered;
mod per_agent;
mod sets;
mod shown;

use std::collections::BTreeMap;
use std::sync::Arc;

use a2a_registry_domain::facet::Facet;
use column::{ColumnBuffers, SegmentFacet};
use columns::SegmentColumns;
use numbered::LargeCounts;
use sets::LargeMatches;
use tantivy::{DocId, Searcher, SegmentOrdinal, SegmentReader};

use super::answer::FacetCounts;
use super::bits::Bits;
use super::schema::Fields;

pub use frequent::FacetLimits;
pub(super) use frequent::FrequentValues;

/// Matches per block; the columns are read block by block.
const BLOCK: usize = 512;

#[derive(Clone, Default)]
pub(super) struct Facets {
    names: Vec<Facet>,
    frequent: Arc<FrequentValues>,
}

impl Facets {
    /// Creates the set of requested facets, without duplicates, with the frequent values of the searched index state.
    pub fn new(mut names: Vec<Facet>, frequent: Arc<FrequentValues>) -> Self {
        names.sort_unstable();
        names.dedup();
        Self { names, frequent }
    }

    pub fn columns(&self, reader: &SegmentReader) -> Arc<SegmentColumns> {
        self.frequent.columns(reader)
    }

    /// Counter for the matches of a segment with these columns; `None` if no facet is requested.
    pub fn matches(
        &self,
        ordinal: SegmentOrdinal,
        reader: &SegmentReader,
        columns: &Arc<SegmentColumns>,
    ) -> tantivy::Result<Option<SegmentMatches>> {
        if self.names.is_empty() {
            return Ok(None);
        }
        Ok(Some(match self.frequent.place_of(reader) {
            Some(segment) => SegmentMatches::Large(LargeSegment {
                ordinal,
                segment,
                agents: Bits::none(reader.max_doc()),
                columns: Arc::clone(columns),
            }),
            None => SegmentMatches::Counted(SegmentCounter::new(columns, reader, &self.names)?),
        }))
    }

    pub fn counts(
        &self,
        searcher: &Searcher,
        fields: &Fields,
        segments: Vec<SegmentMatches>,
    ) -> tantivy::Result<BTreeMap<Facet, FacetCounts>> {
        let mut large = Vec::with_capacity(self.frequent.segments());
        let mut counted: Vec<Vec<SegmentFacet>> = self.names.iter().map(|_| Vec::new()).collect();
        for segment in segments {
            match segment {
                SegmentMatches::Large(matches) => large.push(matches),
                SegmentMatches::Counted(segment) => {
                    for (all, one) in counted.iter_mut().zip(segment.finish()) {
                        all.push(one);
                    }
                }
            }
        }
        let mut counts = BTreeMap::new();
        let mut buffers = ColumnBuffers::default();
        for (name, small) in self.names.iter().zip(counted) {
            let found = match self.by_sets(searcher, fields, *name, &large, &small)? {
                Some(found) => found,
                None => self.by_columns(searcher, *name, &large, small, &mut buffers)?,
            };
            counts.insert(*name, found);
        }
        Ok(counts)
    }

    /// The counts of one facet by set operations; `None` without large segments, or where those are not the faster way.
    fn by_sets(
        &self,
        searcher: &Searcher,
        fields: &Fields,
        name: Facet,
        large: &[LargeSegment],
        small: &[SegmentFacet],
    ) -> tantivy::Result<Option<FacetCounts>> {
        let Some(values) = self.frequent.values(name) else {
            return Ok(None);
        };
        let large = large.iter().map(|one| {
            let reader = searcher.segment_reader(one.ordinal);
            Ok(LargeMatches {
                segment: one.segment,
                agents: &one.agents,
                index: fields.keys.index(reader)?,
            })
        });
        let large = large.collect::<tantivy::Result<Vec<_>>>()?;
        sets::counts(values, &large, small, self.frequent.nanos())
    }

    fn by_columns(
        &self,
        searcher: &Searcher,
        name: Facet,
        large: &[LargeSegment],
        mut small: Vec<SegmentFacet>,
        buffers: &mut ColumnBuffers,
    ) -> tantivy::Result<FacetCounts> {
        let large = large.iter().map(|one| {
            let reader = searcher.segment_reader(one.ordinal);
            Ok(LargeCounts {
                segment: one.segment,
                facet: one.counted(reader, name, buffers)?,
            })
        });
        let large = large.collect::<tantivy::Result<Vec<_>>>()?;
        if let Some(values) = self.frequent.values(name)
            && let Some(found) = numbered::counts(values, &large, &small)?
        {
            return Ok(found);
        }
        small.extend(large.into_iter().map(|one| one.facet));
        Ok(column::merge(&small)?)
    }
}

/// The matches of one segment, collected for its facets.
pub(super) enum SegmentMatches {
    /// Matches of a small segment, counted while they are collected.
    Counted(SegmentCounter),
    /// Matches of a large segment, kept as a set until all are collected.
    Large(LargeSegment),
}

impl SegmentMatches {
    /// Adds the next match; document ids must ascend.
    pub fn insert(&mut self, document: DocId) {
        match self {
            Self::Counted(counted) => counted.insert(document),
            Self::Large(large) => large.agents.insert(document),
        }
    }
}

pub(super) struct LargeSegment {
    ordinal: SegmentOrdinal,
    /// Position of this segment among the large segments.
    segment: usize,
    agents: Bits,
    columns: Arc<SegmentColumns>,
}

impl LargeSegment {
    /// Counts one facet of these matches, match by match.
    fn counted(
        &self,
        reader: &SegmentReader,
        name: Facet,
        buffers: &mut ColumnBuffers,
    ) -> tantivy::Result<SegmentFacet> {
        let mut counted = SegmentFacet::new(self.columns.facet(reader, name)?);
        let mut block = Vec::with_capacity(BLOCK);
        let mut documents = self.agents.iter();
        loop {
            block.clear();
            block.extend(documents.by_ref().take(BLOCK));
            if block.is_empty() {
                return Ok(counted);
            }
            counted.count(&block, buffers);
        }
    }
}

/// Facet counts of a small segment, updated while its matches are collected.
pub(super) struct SegmentCounter {
    block: Vec<DocId>,
    facets: Vec<SegmentFacet>,
    buffers: ColumnBuffers,
}

impl SegmentCounter {
    fn new(
        columns: &SegmentColumns,
        reader: &SegmentReader,
        names: &[Facet],
    ) -> tantivy::Result<Self> {
        let facets = names
            .iter()
            .map(|name| Ok(SegmentFacet::new(columns.facet(reader, *name)?)))
            .collect::<tantivy::Result<_>>()?;
        Ok(Self {
            block: Vec::with_capacity(BLOCK),
            facets,
            buffers: ColumnBuffers::default(),
        })
    }

    fn insert(&mut self, document: DocId) {
        self.block.push(document);
        if self.block.len() == BLOCK {
            self.count();
        }
    }

    fn count(&mut self) {
        for facet in &mut self.facets {
            facet.count(&self.block, &mut self.buffers);
        }
        self.block.clear();
    }

    fn finish(mut self) -> Vec<SegmentFacet> {
        self.count();
        self.facets
    }
}
