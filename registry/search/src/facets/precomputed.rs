//! Precomputed facet values: for each large segment, the agents with the most frequent values.
//!
//! A search that matches a large part of all agents need not visit each match: its matches are one bit set, the agents
//! with a value are another, and their intersection is counted 64 agents at a time. Starting with the most frequent
//! value, the shown values are certain long before the last value is counted.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::{Arc, Mutex};

use a2a_registry_domain::facet::{Facet, FacetMap};
use tantivy::index::SegmentId;
use tantivy::postings::TermInfo;
use tantivy::schema::IndexRecordOption;
use tantivy::termdict::TermMerger;
use tantivy::{DocSet, InvertedIndexReader, Searcher, SegmentReader, TERMINATED};

use super::super::doc_bit_set::DocBitSet;
use super::super::keys::{KeyField, KeyKind, strip_key_kind};
use super::super::lock_ignoring_poison;
use super::super::schema::IndexFields;
use super::segment_columns::SegmentColumns;
use super::values_per_agent::ValuesPerAgent;

/// Fraction of all agents (one in this many) from which a segment is large; so this is also the highest number of
/// large segments.
const LARGE_SEGMENT_FRACTION: u32 = 256;

/// Fraction of all agents (one in this many) that may be in other segments before the values are recomputed: agents of
/// small segments are counted one by one, and recomputing reads all agents.
const MAX_SMALL_FRACTION: u32 = 8;

/// Fraction of agents (one in this many) from which the agents with a value are kept as a bit set; the postings of a
/// rarer value are read faster than such a set.
const MIN_BITSET_FRACTION: u32 = 64;

#[derive(Debug, Clone, Copy)]
pub struct FacetPrecomputationLimits {
    /// Segments with fewer agents than this have no precomputed values.
    pub min_agents: u32,
    /// Maximum number of values precomputed for each facet, starting with the most frequent.
    pub max_values: usize,
    /// Limit of values times large segments: each value has an entry of 48 bytes per large segment. With more segments
    /// fewer values are precomputed.
    pub max_postings: usize,
    /// Maximum memory for bit sets, in bytes. Beyond it, postings are read.
    pub max_bitset_bytes: usize,
    /// Approximate nanoseconds to count one value of one match. Set operations stop once they have taken as long as
    /// counting all values of all matches one by one.
    pub nanos_per_value: u64,
}

impl Default for FacetPrecomputationLimits {
    fn default() -> Self {
        Self {
            min_agents: 256,
            max_values: 4_096,
            max_postings: 65_536,
            max_bitset_bytes: 64 * 1024 * 1024,
            nanos_per_value: 5,
        }
    }
}

/// Precomputed facet values of the large segments, for all states of the index with the same large segments.
#[derive(Default)]
pub(crate) struct PrecomputedFacets {
    large_segments: Vec<SegmentId>,
    limits: FacetPrecomputationLimits,
    /// Values of each facet; empty without a large segment.
    facets: FacetMap<PrecomputedValues>,
    /// Columns of the segments of the newest state, opened by the first search that needs them.
    columns: Mutex<HashMap<SegmentId, Arc<SegmentColumns>>>,
}

/// The values of one facet over all large segments.
#[derive(Default)]
pub(crate) struct PrecomputedValues {
    /// The values, the most frequent first, equally frequent ones by value.
    pub ranked: Vec<FrequentValue>,
    /// The ranks of the values, in the order of their texts.
    ranks_by_text: Vec<u32>,
    /// The most frequent omitted value, and an upper bound of its agents.
    pub best_omitted: Option<(Vec<u8>, u64)>,
    /// Number of values per agent, for each segment.
    pub values_per_agent: Vec<Arc<ValuesPerAgent>>,
    /// Number of each value of each segment, precomputed or not, in the order of the segment's values. All values of
    /// the large segments are numbered in the order of their texts.
    numbers: Vec<Box<[u32]>>,
    /// Number of distinct values.
    distinct_count: u32,
}

/// A facet value and the agents that have it.
pub(crate) struct FrequentValue {
    pub text: Vec<u8>,
    /// Its number among all values.
    pub number: u32,
    /// Number of agents with the value, including deleted ones.
    pub agent_count: u64,
    postings: Vec<ValuePostings>,
}

enum ValuePostings {
    Empty,
    Bits(DocBitSet),
    Postings(TermInfo),
}

impl PrecomputedFacets {
    /// Builds the values of an index state. The values of `previous` are reused while the large segments are the same,
    /// or contain nearly all agents.
    pub fn build(
        searcher: &Searcher,
        fields: &IndexFields,
        limits: FacetPrecomputationLimits,
        previous: Option<Arc<Self>>,
    ) -> tantivy::Result<Arc<Self>> {
        let readers = searcher.segment_readers();
        let all: u32 = readers.iter().map(SegmentReader::max_doc).sum();
        let least = limits.min_agents.max(all / LARGE_SEGMENT_FRACTION);
        let large: Vec<&SegmentReader> = readers
            .iter()
            .filter(|reader| reader.max_doc() >= least)
            .collect();
        let segments: Vec<SegmentId> = large.iter().map(|reader| reader.segment_id()).collect();
        let still_serves = |before: &&Arc<Self>| {
            before.large_segments == segments || before.cover_nearly_all_agents(readers)
        };
        if let Some(before) = previous.as_ref().filter(still_serves) {
            let is_searched = |id: &SegmentId| readers.iter().any(|one| one.segment_id() == *id);
            lock_ignoring_poison(&before.columns).retain(|id, _| is_searched(id));
            return Ok(Arc::clone(before));
        }
        let mut facets = FacetMap::<PrecomputedValues>::default();
        // Without large segments nothing is precomputed.
        if let Some(most) = limits.max_postings.checked_div(segments.len()) {
            let most = most.min(limits.max_values);
            for (facet, values) in facets.entries_mut() {
                *values = PrecomputedValues::build(&large, fields.keys, facet, most)?;
            }
        }
        let mut frequent = Self {
            large_segments: segments,
            limits,
            facets,
            columns: Mutex::default(),
        };
        frequent.count_values_per_agent(&large, previous.as_deref())?;
        frequent.build_bitsets(&large, fields, limits.max_bitset_bytes)?;
        Ok(Arc::new(frequent))
    }

    /// Whether all these large segments still exist, and few agents are in other segments.
    fn cover_nearly_all_agents(&self, readers: &[SegmentReader]) -> bool {
        let (mut found_count, mut small_docs, mut total) = (0, 0, 0);
        for reader in readers {
            total += reader.max_doc();
            match self.large_segment_index(reader) {
                Some(_) => found_count += 1,
                None => small_docs += reader.max_doc(),
            }
        }
        found_count == self.large_segments.len() && small_docs <= total / MAX_SMALL_FRACTION
    }

    /// Counts the values of each agent in the large segments, reusing known segments.
    fn count_values_per_agent(
        &mut self,
        large: &[&SegmentReader],
        previous: Option<&Self>,
    ) -> tantivy::Result<()> {
        for (facet, values) in self.facets.entries_mut() {
            for reader in large {
                let known = previous.and_then(|before| before.values_per_agent(facet, reader));
                values.values_per_agent.push(match known {
                    Some(known) => known,
                    None => Arc::new(ValuesPerAgent::build(reader, facet.as_str())?),
                });
            }
        }
        Ok(())
    }

    fn values_per_agent(
        &self,
        facet: Facet,
        reader: &SegmentReader,
    ) -> Option<Arc<ValuesPerAgent>> {
        let place = self.large_segment_index(reader)?;
        self.facet_values(facet)?
            .values_per_agent
            .get(place)
            .cloned()
    }

    /// Converts the largest posting lists to bit sets, over all facets, until the memory limit is reached.
    fn build_bitsets(
        &mut self,
        large: &[&SegmentReader],
        fields: &IndexFields,
        max_bytes: usize,
    ) -> tantivy::Result<()> {
        let mut frequent = Vec::new();
        for (_, values) in self.facets.entries_mut() {
            for value in &mut values.ranked {
                for (reader, holders) in large.iter().zip(&mut value.postings) {
                    if let ValuePostings::Postings(info) = holders
                        && info.doc_freq >= reader.max_doc() / MIN_BITSET_FRACTION
                    {
                        frequent.push((info.doc_freq, *reader, holders));
                    }
                }
            }
        }
        frequent.sort_by_key(|(agents, ..)| Reverse(*agents));
        let mut bytes_left = max_bytes;
        for (_, reader, holders) in frequent {
            let mut bits = DocBitSet::empty(reader.max_doc());
            let Some(rest) = bytes_left.checked_sub(bits.byte_size()) else {
                break;
            };
            bytes_left = rest;
            let index = fields.keys.inverted_index(reader)?;
            if let ValuePostings::Postings(info) = holders {
                bits.insert_postings(
                    index.read_postings_from_terminfo(info, IndexRecordOption::Basic)?,
                );
                *holders = ValuePostings::Bits(bits);
            }
        }
        Ok(())
    }

    /// Position of this segment among the large segments; `None` for a small one.
    pub fn large_segment_index(&self, reader: &SegmentReader) -> Option<usize> {
        let id = reader.segment_id();
        self.large_segments
            .iter()
            .position(|segment| *segment == id)
    }

    /// Number of large segments.
    pub fn large_segment_count(&self) -> usize {
        self.large_segments.len()
    }

    /// About the nanoseconds that counting a value of a match takes.
    pub fn nanos_per_value(&self) -> u64 {
        self.limits.nanos_per_value
    }

    /// The columns of a segment, kept while the segment is searched.
    pub fn segment_columns(&self, reader: &SegmentReader) -> Arc<SegmentColumns> {
        let mut columns = lock_ignoring_poison(&self.columns);
        Arc::clone(columns.entry(reader.segment_id()).or_default())
    }

    /// The precomputed values of a facet; `None` without a large segment.
    pub fn facet_values(&self, facet: Facet) -> Option<&PrecomputedValues> {
        (!self.large_segments.is_empty()).then(|| &self.facets[facet])
    }
}

impl PrecomputedValues {
    /// Builds the values of a facet, without the number per agent.
    fn build(
        large: &[&SegmentReader],
        keys: KeyField,
        facet: Facet,
        limit: usize,
    ) -> tantivy::Result<Self> {
        let indexes = large
            .iter()
            .map(|reader| keys.inverted_index(reader))
            .collect::<tantivy::Result<Vec<_>>>()?;
        let kind = KeyKind::Facet(facet);
        let streams = indexes.iter().map(|index| kind.stream_keys(index.terms()));
        let mut terms = TermMerger::new(streams.collect::<std::io::Result<Vec<_>>>()?);
        let mut best = TopFrequentValues::new(limit);
        let mut numbers: Vec<Vec<u32>> = indexes.iter().map(|_| Vec::new()).collect();
        let mut distinct = 0;
        while terms.advance() {
            let holders = || terms.current_segment_ords_and_term_infos();
            let mut agents = 0;
            for (segment, info) in holders() {
                agents += u64::from(info.doc_freq);
                numbers[segment].push(distinct);
            }
            best.offer(strip_key_kind(terms.key()), distinct, agents, || {
                let mut all: Vec<ValuePostings> =
                    indexes.iter().map(|_| ValuePostings::Empty).collect();
                for (segment, info) in holders() {
                    all[segment] = ValuePostings::Postings(info);
                }
                all
            });
            distinct += 1;
        }
        let (ranked, left_out) = best.finish();
        let mut by_text: Vec<u32> = (0..).take(ranked.len()).collect();
        let text_of = |rank: u32| &ranked[rank as usize].text;
        by_text.sort_unstable_by(|one, other| text_of(*one).cmp(text_of(*other)));
        Ok(Self {
            ranked,
            ranks_by_text: by_text,
            best_omitted: left_out,
            values_per_agent: Vec::with_capacity(large.len()),
            numbers: numbers.into_iter().map(Vec::into_boxed_slice).collect(),
            distinct_count: distinct,
        })
    }

    pub fn distinct_count(&self) -> usize {
        self.distinct_count as usize
    }

    /// The numbers of the values of a large segment, in the order of these values.
    pub fn segment_value_numbers(&self, segment: usize) -> &[u32] {
        let numbers = self.numbers.get(segment);
        numbers.map(|numbers| &numbers[..]).unwrap_or_default()
    }

    pub fn find_by_text(&self, text: &[u8]) -> Option<&FrequentValue> {
        let rank = self.rank_of_text(text)?;
        self.ranked.get(rank as usize)
    }

    pub fn find_by_number(&self, number: u32) -> Option<&FrequentValue> {
        let number_of = |rank: &u32| self.ranked[*rank as usize].number;
        let place = self
            .ranks_by_text
            .binary_search_by_key(&number, number_of)
            .ok()?;
        self.ranked.get(self.ranks_by_text[place] as usize)
    }

    pub fn rank_of_text(&self, text: &[u8]) -> Option<u32> {
        let text_of = |rank: &u32| self.ranked[*rank as usize].text.as_slice();
        let place = self
            .ranks_by_text
            .binary_search_by(|rank| text_of(rank).cmp(text));
        place.ok().map(|place| self.ranks_by_text[place])
    }
}

impl FrequentValue {
    /// Approximate nanoseconds of [`count_in`](Self::count_in) over all segments: one third for each word of a set, or
    /// 150 to open postings and 1.5 for each agent in them.
    pub fn counting_nanos(&self) -> u64 {
        let holders = self.postings.iter();
        holders
            .map(|holders| match holders {
                ValuePostings::Empty => 0,
                ValuePostings::Bits(bits) => bits.byte_size() as u64 / 24,
                ValuePostings::Postings(info) => 150 + u64::from(info.doc_freq) * 3 / 2,
            })
            .sum()
    }

    /// Number of these agents of a segment that have the value.
    pub fn count_in(
        &self,
        segment: usize,
        agents: &DocBitSet,
        index: &InvertedIndexReader,
    ) -> tantivy::Result<u64> {
        Ok(match self.postings.get(segment) {
            None | Some(ValuePostings::Empty) => 0,
            Some(ValuePostings::Bits(bits)) => u64::from(bits.intersection_len(agents)),
            Some(ValuePostings::Postings(info)) => count_term_docs_in(info, agents, index)?,
        })
    }
}

/// Number of these agents of a segment that are in the posting list of the term.
fn count_term_docs_in(
    info: &TermInfo,
    agents: &DocBitSet,
    index: &InvertedIndexReader,
) -> tantivy::Result<u64> {
    let mut postings = index.read_postings_from_terminfo(info, IndexRecordOption::Basic)?;
    let mut count = 0;
    // No seeking: with many agents in the set, few blocks of postings could be skipped.
    while postings.doc() != TERMINATED {
        count += u64::from(agents.contains(postings.doc()));
        postings.advance();
    }
    Ok(count)
}

/// The most frequent values of a stream in ascending order.
struct TopFrequentValues {
    limit: usize,
    /// A min-heap: the lowest-ranked value is on top.
    heap: BinaryHeap<Reverse<RankedValue>>,
    best_omitted: Option<(Vec<u8>, u64)>,
}

/// A value ordered by rank; greater ones are shown first.
struct RankedValue(FrequentValue);

impl RankedValue {
    fn ranking_key(&self) -> (u64, Reverse<&[u8]>) {
        (self.0.agent_count, Reverse(&self.0.text))
    }
}

impl PartialEq for RankedValue {
    fn eq(&self, other: &Self) -> bool {
        self.ranking_key() == other.ranking_key()
    }
}

impl Eq for RankedValue {}

impl PartialOrd for RankedValue {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for RankedValue {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.ranking_key().cmp(&other.ranking_key())
    }
}

impl TopFrequentValues {
    fn new(limit: usize) -> Self {
        Self {
            limit,
            heap: BinaryHeap::new(),
            best_omitted: None,
        }
    }

    fn offer(
        &mut self,
        text: &[u8],
        number: u32,
        agent_count: u64,
        build_postings: impl FnOnce() -> Vec<ValuePostings>,
    ) {
        if self.heap.len() >= self.limit {
            // Values are offered in ascending order, so of equally frequent ones the later ranks lower.
            let last = self
                .heap
                .peek()
                .map_or(u64::MAX, |last| last.0.0.agent_count);
            if agent_count <= last {
                self.record_omitted(text, agent_count);
                return;
            }
            if let Some(Reverse(RankedValue(last))) = self.heap.pop() {
                self.record_omitted(&last.text, last.agent_count);
            }
        }
        self.heap.push(Reverse(RankedValue(FrequentValue {
            text: text.to_owned(),
            number,
            agent_count,
            postings: build_postings(),
        })));
    }

    fn record_omitted(&mut self, text: &[u8], agent_count: u64) {
        let comes_first = self.best_omitted.as_ref().is_none_or(|(before, most)| {
            agent_count > *most || agent_count == *most && text < before.as_slice()
        });
        if comes_first {
            self.best_omitted = Some((text.to_owned(), agent_count));
        }
    }

    fn finish(self) -> (Vec<FrequentValue>, Option<(Vec<u8>, u64)>) {
        let kept = self.heap.into_sorted_vec().into_iter();
        let ranked = kept.map(|Reverse(RankedValue(value))| value).collect();
        (ranked, self.best_omitted)
    }
}
