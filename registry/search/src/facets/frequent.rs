//! Precomputed holders of frequent facet values: for each large segment, the agents that carry the most frequent
//! values.
//!
//! A search that matches a large part of all agents need not visit each match. Its matches are a bit set, the holders
//! of a value are another, and their intersection is counted 64 agents at a time. Starting with the most frequent
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

use super::super::bits::Bits;
use super::super::keys::{KeyKind, Keys, value_of};
use super::super::lock;
use super::super::schema::Fields;
use super::columns::SegmentColumns;
use super::per_agent::ValuesPerAgent;

/// Smallest fraction of all agents (one in this many) that makes a segment large; so this is also the highest number of
/// large segments.
const LEAST_PART: u32 = 256;

/// Part of all agents, one in this many, that may be in other segments before the values are computed anew: agents of small
/// segments are counted one by one, and computing the values reads all of them.
const APART: u32 = 8;

/// Holder fraction (one in this many) from which the holders of a value are kept as a bit set; the postings of a rarer
/// value are read faster than such a set.
const RARE: u32 = 64;

#[derive(Debug, Clone, Copy)]
pub struct FacetLimits {
    /// Segments with fewer agents than this have no precomputed values.
    pub least_agents: u32,
    /// Number of values precomputed for each facet, the most frequent ones.
    pub values: usize,
    /// Limit of values times large segments: each value has an entry of 48 bytes per large segment. With more segments
    /// fewer values are precomputed.
    pub holders: usize,
    /// The most memory in bytes for the bit sets of holders. Beyond it, postings are read.
    pub memory: usize,
    /// About the nanoseconds that counting a value of a match takes. Set operations are given up once they have taken as
    /// long as counting all values of all matches, one by one.
    pub nanos: u64,
}

impl Default for FacetLimits {
    fn default() -> Self {
        Self {
            least_agents: 256,
            values: 4_096,
            holders: 65_536,
            memory: 64 * 1024 * 1024,
            nanos: 5,
        }
    }
}

/// Frequent facet values of the large segments, for all states of the index with the same large segments.
#[derive(Default)]
pub(crate) struct FrequentValues {
    segments: Vec<SegmentId>,
    limits: FacetLimits,
    /// Values of each facet; empty without a large segment.
    facets: FacetMap<FacetValues>,
    /// Columns of the segments of the newest state, opened by the first search that needs them.
    columns: Mutex<HashMap<SegmentId, Arc<SegmentColumns>>>,
}

/// The values of one facet over all large segments.
#[derive(Default)]
pub(crate) struct FacetValues {
    /// The most frequent first, equally frequent ones by value.
    pub ranked: Vec<FrequentValue>,
    /// Their ranks, in the order of the values.
    by_text: Vec<u32>,
    /// The most frequent value that was left out, and an upper bound of its agents.
    pub left_out: Option<(Vec<u8>, u64)>,
    /// Values per agent, for each segment.
    pub carried: Vec<Arc<ValuesPerAgent>>,
    /// Number of each value of each segment, precomputed or not, in the order of the segment's values. All values of the
    /// large segments are numbered in the order of their texts.
    numbers: Vec<Box<[u32]>>,
    /// Number of all values.
    distinct: u32,
}

/// A facet value and the agents that carry it, its holders.
pub(crate) struct FrequentValue {
    pub text: Vec<u8>,
    /// Its number among all values.
    pub number: u32,
    /// Number of holders, deleted agents included.
    pub agents: u64,
    holders: Vec<ValueHolders>,
}

enum ValueHolders {
    Nobody,
    Bits(Bits),
    Postings(TermInfo),
}

impl FrequentValues {
    /// Frequent values of an index state. The values of `before` are reused while the large segments are the same, or hold
    /// nearly all agents.
    pub fn of(
        searcher: &Searcher,
        fields: &Fields,
        limits: FacetLimits,
        before: Option<Arc<Self>>,
    ) -> tantivy::Result<Arc<Self>> {
        let readers = searcher.segment_readers();
        let all: u32 = readers.iter().map(SegmentReader::max_doc).sum();
        let least = limits.least_agents.max(all / LEAST_PART);
        let large: Vec<&SegmentReader> = readers
            .iter()
            .filter(|reader| reader.max_doc() >= least)
            .collect();
        let segments: Vec<SegmentId> = large.iter().map(|reader| reader.segment_id()).collect();
        let still_serves =
            |before: &&Arc<Self>| before.segments == segments || before.cover_nearly_all(readers);
        if let Some(before) = before.as_ref().filter(still_serves) {
            let is_searched = |id: &SegmentId| readers.iter().any(|one| one.segment_id() == *id);
            lock(&before.columns).retain(|id, _| is_searched(id));
            return Ok(Arc::clone(before));
        }
        let mut facets = FacetMap::<FacetValues>::default();
        // Without large segments nothing is precomputed.
        if let Some(most) = limits.holders.checked_div(segments.len()) {
            let most = most.min(limits.values);
            for (facet, values) in facets.entries_mut() {
                *values = FacetValues::of(&large, fields.keys, facet, most)?;
            }
        }
        let mut frequent = Self {
            segments,
            limits,
            facets,
            columns: Mutex::default(),
        };
        frequent.count_per_agent(&large, before.as_deref())?;
        frequent.keep_sets(&large, fields, limits.memory)?;
        Ok(Arc::new(frequent))
    }

    /// Whether the large segments are all searched, and few agents are in others.
    fn cover_nearly_all(&self, readers: &[SegmentReader]) -> bool {
        let (mut found, mut apart, mut all) = (0, 0, 0);
        for reader in readers {
            all += reader.max_doc();
            match self.place_of(reader) {
                Some(_) => found += 1,
                None => apart += reader.max_doc(),
            }
        }
        found == self.segments.len() && apart <= all / APART
    }

    /// Counts the values of each agent in the large segments. What is known of a segment stays.
    fn count_per_agent(
        &mut self,
        large: &[&SegmentReader],
        before: Option<&Self>,
    ) -> tantivy::Result<()> {
        for (facet, values) in self.facets.entries_mut() {
            for reader in large {
                let known = before.and_then(|before| before.per_agent(facet, reader));
                values.carried.push(match known {
                    Some(known) => known,
                    None => Arc::new(ValuesPerAgent::of(reader, facet.as_str())?),
                });
            }
        }
        Ok(())
    }

    fn per_agent(&self, facet: Facet, reader: &SegmentReader) -> Option<Arc<ValuesPerAgent>> {
        let place = self.place_of(reader)?;
        self.values(facet)?.carried.get(place).cloned()
    }

    /// Converts the largest posting lists to bit sets, over all facets, until the memory limit is reached.
    fn keep_sets(
        &mut self,
        large: &[&SegmentReader],
        fields: &Fields,
        memory: usize,
    ) -> tantivy::Result<()> {
        let mut common = Vec::new();
        for (_, values) in self.facets.entries_mut() {
            for value in &mut values.ranked {
                for (reader, holders) in large.iter().zip(&mut value.holders) {
                    if let ValueHolders::Postings(info) = holders
                        && info.doc_freq >= reader.max_doc() / RARE
                    {
                        common.push((info.doc_freq, *reader, holders));
                    }
                }
            }
        }
        common.sort_by_key(|(agents, ..)| Reverse(*agents));
        let mut left = memory;
        for (_, reader, holders) in common {
            let mut bits = Bits::none(reader.max_doc());
            let Some(rest) = left.checked_sub(bits.size()) else {
                break;
            };
            left = rest;
            let index = fields.keys.index(reader)?;
            if let ValueHolders::Postings(info) = holders {
                bits.insert_all(index.read_postings_from_terminfo(info, IndexRecordOption::Basic)?);
                *holders = ValueHolders::Bits(bits);
            }
        }
        Ok(())
    }

    /// Position of this segment among the large segments; `None` for a small one.
    pub fn place_of(&self, reader: &SegmentReader) -> Option<usize> {
        let id = reader.segment_id();
        self.segments.iter().position(|segment| *segment == id)
    }

    /// Number of large segments.
    pub fn segments(&self) -> usize {
        self.segments.len()
    }

    /// About the nanoseconds that counting a value of a match takes.
    pub fn nanos(&self) -> u64 {
        self.limits.nanos
    }

    /// The columns of a segment, kept for as long as the segment is searched.
    pub fn columns(&self, reader: &SegmentReader) -> Arc<SegmentColumns> {
        let mut columns = lock(&self.columns);
        Arc::clone(columns.entry(reader.segment_id()).or_default())
    }

    /// The precomputed values of a facet; `None` without a large segment.
    pub fn values(&self, facet: Facet) -> Option<&FacetValues> {
        (!self.segments.is_empty()).then(|| &self.facets[facet])
    }
}

impl FacetValues {
    /// The values of a facet, without their number per agent.
    fn of(
        large: &[&SegmentReader],
        keys: Keys,
        facet: Facet,
        limit: usize,
    ) -> tantivy::Result<Self> {
        let indexes = large
            .iter()
            .map(|reader| keys.index(reader))
            .collect::<tantivy::Result<Vec<_>>>()?;
        let kind = KeyKind::Facet(facet);
        let streams = indexes.iter().map(|index| kind.keys(index.terms()));
        let mut terms = TermMerger::new(streams.collect::<std::io::Result<Vec<_>>>()?);
        let mut best = MostFrequent::new(limit);
        let mut numbers: Vec<Vec<u32>> = indexes.iter().map(|_| Vec::new()).collect();
        let mut distinct = 0;
        while terms.advance() {
            let holders = || terms.current_segment_ords_and_term_infos();
            let mut agents = 0;
            for (segment, info) in holders() {
                agents += u64::from(info.doc_freq);
                numbers[segment].push(distinct);
            }
            best.offer(value_of(terms.key()), distinct, agents, || {
                let mut all: Vec<ValueHolders> =
                    indexes.iter().map(|_| ValueHolders::Nobody).collect();
                for (segment, info) in holders() {
                    all[segment] = ValueHolders::Postings(info);
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
            by_text,
            left_out,
            carried: Vec::with_capacity(large.len()),
            numbers: numbers.into_iter().map(Vec::into_boxed_slice).collect(),
            distinct,
        })
    }

    pub fn distinct(&self) -> usize {
        self.distinct as usize
    }

    /// The numbers of the values of a large segment, in the order of these values.
    pub fn numbers(&self, segment: usize) -> &[u32] {
        let numbers = self.numbers.get(segment);
        numbers.map(|numbers| &numbers[..]).unwrap_or_default()
    }

    pub fn find(&self, text: &[u8]) -> Option<&FrequentValue> {
        let rank = self.rank_of(text)?;
        self.ranked.get(rank as usize)
    }

    pub fn find_number(&self, number: u32) -> Option<&FrequentValue> {
        let number_of = |rank: &u32| self.ranked[*rank as usize].number;
        let place = self.by_text.binary_search_by_key(&number, number_of).ok()?;
        self.ranked.get(self.by_text[place] as usize)
    }

    pub fn rank_of(&self, text: &[u8]) -> Option<u32> {
        let text_of = |rank: &u32| self.ranked[*rank as usize].text.as_slice();
        let place = self
            .by_text
            .binary_search_by(|rank| text_of(rank).cmp(text));
        place.ok().map(|place| self.by_text[place])
    }
}

impl FrequentValue {
    /// About the nanoseconds that [`among`](Self::among) takes over all segments: a third of one for each word of a set, and
    /// 150 for opening postings and half more than one for each agent in them.
    pub fn nanos(&self) -> u64 {
        let holders = self.holders.iter();
        holders
            .map(|holders| match holders {
                ValueHolders::Nobody => 0,
                ValueHolders::Bits(bits) => bits.size() as u64 / 24,
                ValueHolders::Postings(info) => 150 + u64::from(info.doc_freq) * 3 / 2,
            })
            .sum()
    }

    /// Number of these agents of a segment that carry the value.
    pub fn among(
        &self,
        segment: usize,
        agents: &Bits,
        index: &InvertedIndexReader,
    ) -> tantivy::Result<u64> {
        Ok(match self.holders.get(segment) {
            None | Some(ValueHolders::Nobody) => 0,
            Some(ValueHolders::Bits(bits)) => u64::from(bits.common(agents)),
            Some(ValueHolders::Postings(info)) => among(info, agents, index)?,
        })
    }
}

/// Number of these agents of a segment that are in the posting list of the term.
fn among(info: &TermInfo, agents: &Bits, index: &InvertedIndexReader) -> tantivy::Result<u64> {
    let mut postings = index.read_postings_from_terminfo(info, IndexRecordOption::Basic)?;
    let mut count = 0;
    // No seek: with many agents in the set few blocks of postings could be skipped.
    while postings.doc() != TERMINATED {
        count += u64::from(agents.contains(postings.doc()));
        postings.advance();
    }
    Ok(count)
}

/// The most frequent values of a stream in ascending order.
struct MostFrequent {
    limit: usize,
    /// A min-heap: the lowest-ranked value is on top.
    kept: BinaryHeap<Reverse<RankedValue>>,
    left_out: Option<(Vec<u8>, u64)>,
}

/// A value ordered by rank; the greater one is shown first.
struct RankedValue(FrequentValue);

impl RankedValue {
    fn key(&self) -> (u64, Reverse<&[u8]>) {
        (self.0.agents, Reverse(&self.0.text))
    }
}

impl PartialEq for RankedValue {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
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
        self.key().cmp(&other.key())
    }
}

impl MostFrequent {
    fn new(limit: usize) -> Self {
        Self {
            limit,
            kept: BinaryHeap::new(),
            left_out: None,
        }
    }

    fn offer(
        &mut self,
        text: &[u8],
        number: u32,
        agents: u64,
        holders: impl FnOnce() -> Vec<ValueHolders>,
    ) {
        if self.kept.len() >= self.limit {
            // Values are offered in ascending order, so of equally frequent ones the later ranks lower.
            let last = self.kept.peek().map_or(u64::MAX, |last| last.0.0.agents);
            if agents <= last {
                self.leave_out(text, agents);
                return;
            }
            if let Some(Reverse(RankedValue(last))) = self.kept.pop() {
                self.leave_out(&last.text, last.agents);
            }
        }
        self.kept.push(Reverse(RankedValue(FrequentValue {
            text: text.to_owned(),
            number,
            agents,
            holders: holders(),
        })));
    }

    fn leave_out(&mut self, text: &[u8], agents: u64) {
        let comes_first = self.left_out.as_ref().is_none_or(|(before, most)| {
            agents > *most || agents == *most && text < before.as_slice()
        });
        if comes_first {
            self.left_out = Some((text.to_owned(), agents));
        }
    }

    fn finish(self) -> (Vec<FrequentValue>, Option<(Vec<u8>, u64)>) {
        let kept = self.kept.into_sorted_vec().into_iter();
        let ranked = kept.map(|Reverse(RankedValue(value))| value).collect();
        (ranked, self.left_out)
    }
}
