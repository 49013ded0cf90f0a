//! Facet counts over all matches of a search. Few matches are counted one by one, from the columns (fast fields) of
//! the index; many matches are counted as bit sets, starting with the most frequent values. Small segments, of which a
//! live index has several, are always counted one by one, and added to either.

mod column_counting;
mod number_counting;
mod precomputed;
mod segment_columns;
mod set_counting;
mod top_values;
mod values_per_agent;

use std::collections::BTreeMap;
use std::sync::Arc;

use a2a_registry_domain::facet::Facet;
use column_counting::{ColumnBuffers, FacetCounter};
use number_counting::LargeSegmentCounts;
use segment_columns::SegmentColumns;
use set_counting::LargeSegmentMatchSet;
use tantivy::{DocId, Searcher, SegmentOrdinal, SegmentReader};

use super::doc_bit_set::DocBitSet;
use super::response::FacetCounts;
use super::schema::IndexFields;

pub use precomputed::FacetPrecomputationLimits;
pub(super) use precomputed::PrecomputedFacets;

/// Matches per block in which the columns are read.
const BLOCK_DOCS: usize = 512;

#[derive(Clone, Default)]
pub(super) struct RequestedFacets {
    facets: Vec<Facet>,
    precomputed: Arc<PrecomputedFacets>,
}

impl RequestedFacets {
    /// Creates the set of requested facets, without duplicates, with the precomputed values of the searched index
    /// state.
    pub fn new(mut facets: Vec<Facet>, precomputed: Arc<PrecomputedFacets>) -> Self {
        facets.sort_unstable();
        facets.dedup();
        Self {
            facets,
            precomputed,
        }
    }

    pub fn segment_columns(&self, reader: &SegmentReader) -> Arc<SegmentColumns> {
        self.precomputed.segment_columns(reader)
    }

    /// Counter for the matches of a segment with these columns; `None` if no facet is requested.
    pub fn new_segment_matches(
        &self,
        ordinal: SegmentOrdinal,
        reader: &SegmentReader,
        columns: &Arc<SegmentColumns>,
    ) -> tantivy::Result<Option<SegmentMatches>> {
        if self.facets.is_empty() {
            return Ok(None);
        }
        Ok(Some(match self.precomputed.large_segment_index(reader) {
            Some(segment) => SegmentMatches::Large(LargeSegmentMatches {
                ordinal,
                large_index: segment,
                agents: DocBitSet::empty(reader.max_doc()),
                columns: Arc::clone(columns),
            }),
            None => SegmentMatches::Small(SmallSegmentCounter::new(columns, reader, &self.facets)?),
        }))
    }

    pub fn count_facet_values(
        &self,
        searcher: &Searcher,
        fields: &IndexFields,
        segments: Vec<SegmentMatches>,
    ) -> tantivy::Result<BTreeMap<Facet, FacetCounts>> {
        let mut large = Vec::with_capacity(self.precomputed.large_segment_count());
        let mut small_counters: Vec<Vec<FacetCounter>> =
            self.facets.iter().map(|_| Vec::new()).collect();
        for segment in segments {
            match segment {
                SegmentMatches::Large(matches) => large.push(matches),
                SegmentMatches::Small(segment) => {
                    for (all, one) in small_counters.iter_mut().zip(segment.finish()) {
                        all.push(one);
                    }
                }
            }
        }
        let mut counts = BTreeMap::new();
        let mut buffers = ColumnBuffers::default();
        for (facet, small) in self.facets.iter().zip(small_counters) {
            let facet_counts = match self.count_by_sets(searcher, fields, *facet, &large, &small)? {
                Some(found) => found,
                None => self.count_by_columns(searcher, *facet, &large, small, &mut buffers)?,
            };
            counts.insert(*facet, facet_counts);
        }
        Ok(counts)
    }

    /// Counts one facet by set operations; `None` without large segments, or if this is not the faster way.
    fn count_by_sets(
        &self,
        searcher: &Searcher,
        fields: &IndexFields,
        facet: Facet,
        large: &[LargeSegmentMatches],
        small: &[FacetCounter],
    ) -> tantivy::Result<Option<FacetCounts>> {
        let Some(values) = self.precomputed.facet_values(facet) else {
            return Ok(None);
        };
        let large = large.iter().map(|one| {
            let reader = searcher.segment_reader(one.ordinal);
            Ok(LargeSegmentMatchSet {
                large_index: one.large_index,
                agents: &one.agents,
                index: fields.keys.inverted_index(reader)?,
            })
        });
        let large = large.collect::<tantivy::Result<Vec<_>>>()?;
        set_counting::count_facet_by_sets(values, &large, small, self.precomputed.nanos_per_value())
    }

    fn count_by_columns(
        &self,
        searcher: &Searcher,
        facet: Facet,
        large: &[LargeSegmentMatches],
        mut small: Vec<FacetCounter>,
        buffers: &mut ColumnBuffers,
    ) -> tantivy::Result<FacetCounts> {
        let large = large.iter().map(|one| {
            let reader = searcher.segment_reader(one.ordinal);
            Ok(LargeSegmentCounts {
                large_index: one.large_index,
                counter: one.count_facet(reader, facet, buffers)?,
            })
        });
        let large = large.collect::<tantivy::Result<Vec<_>>>()?;
        if let Some(values) = self.precomputed.facet_values(facet)
            && let Some(found) = number_counting::count_facet_by_numbers(values, &large, &small)?
        {
            return Ok(found);
        }
        small.extend(large.into_iter().map(|one| one.counter));
        Ok(column_counting::merge_facet_counts(&small)?)
    }
}

/// The matches of one segment, collected for its facets.
pub(super) enum SegmentMatches {
    /// Matches of a small segment, counted while they are collected.
    Small(SmallSegmentCounter),
    /// Matches of a large segment, kept as a set until all are collected.
    Large(LargeSegmentMatches),
}

impl SegmentMatches {
    /// Adds the next match; document ids must ascend.
    pub fn insert(&mut self, document: DocId) {
        match self {
            Self::Small(counted) => counted.insert(document),
            Self::Large(large) => large.agents.insert(document),
        }
    }
}

pub(super) struct LargeSegmentMatches {
    ordinal: SegmentOrdinal,
    /// Position of this segment among the large segments.
    large_index: usize,
    agents: DocBitSet,
    columns: Arc<SegmentColumns>,
}

impl LargeSegmentMatches {
    /// Counts one facet of these matches, match by match.
    fn count_facet(
        &self,
        reader: &SegmentReader,
        facet: Facet,
        buffers: &mut ColumnBuffers,
    ) -> tantivy::Result<FacetCounter> {
        let mut counter = FacetCounter::new(self.columns.facet_column(reader, facet)?);
        let mut block = Vec::with_capacity(BLOCK_DOCS);
        let mut documents = self.agents.iter();
        loop {
            block.clear();
            block.extend(documents.by_ref().take(BLOCK_DOCS));
            if block.is_empty() {
                return Ok(counter);
            }
            counter.count_documents(&block, buffers);
        }
    }
}

/// Facet counts of a small segment, updated while its matches are collected.
pub(super) struct SmallSegmentCounter {
    block: Vec<DocId>,
    facets: Vec<FacetCounter>,
    buffers: ColumnBuffers,
}

impl SmallSegmentCounter {
    fn new(
        columns: &SegmentColumns,
        reader: &SegmentReader,
        facets: &[Facet],
    ) -> tantivy::Result<Self> {
        let facets = facets
            .iter()
            .map(|name| Ok(FacetCounter::new(columns.facet_column(reader, *name)?)))
            .collect::<tantivy::Result<_>>()?;
        Ok(Self {
            block: Vec::with_capacity(BLOCK_DOCS),
            facets,
            buffers: ColumnBuffers::default(),
        })
    }

    fn insert(&mut self, document: DocId) {
        self.block.push(document);
        if self.block.len() == BLOCK_DOCS {
            self.count_block();
        }
    }

    fn count_block(&mut self) {
        for facet in &mut self.facets {
            facet.count_documents(&self.block, &mut self.buffers);
        }
        self.block.clear();
    }

    fn finish(mut self) -> Vec<FacetCounter> {
        self.count_block();
        self.facets
    }
}
