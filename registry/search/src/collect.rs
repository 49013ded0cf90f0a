//! Collector of one pass over all matches: the page, the exact total and the facets.

use std::sync::Arc;

use tantivy::collector::{Collector, SegmentCollector};
use tantivy::columnar::{Column, StrColumn};
use tantivy::query::Weight;
use tantivy::{DocAddress, DocId, Score, SegmentOrdinal, SegmentReader};
use uuid::Uuid;

use super::answer::Duplicates;
use super::best::{BestDocuments, RankedDocument};
use super::blend::Blended;
use super::facets::{Facets, SegmentMatches};
use super::folded::{FoldedGroups, FoldedMatches};
use super::groups::Groups;
use super::meaning::{NearAgents, NearDocuments};
use super::request::{SortPosition, SortValue};
use super::rescore::RescoreGain;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Score,
    Name,
    Updated,
    Created,
}

/// Collects the first `top` matches after `after`, the total, and the input of the facet counts, of a query that leaves out
/// deleted documents itself, as [`FilteredQuery`](super::filtered::FilteredQuery) does.
pub(super) struct PageCollector {
    pub order: Order,
    pub top: usize,
    pub after: Option<SortPosition>,
    pub facets: Facets,
    /// Semantic neighbours, which are all collected separately: whatever their rank, and not among the `top`.
    pub apart: Option<Arc<NearAgents>>,
    /// Groups of duplicates, of which only the first matching member is collected.
    pub groups: Option<Arc<Groups>>,
}

#[derive(Debug, Clone)]
pub(super) struct PageEntry {
    pub position: SortPosition,
    pub added: RescoreGain,
    /// How the full-text and the semantic score were combined, in a hybrid search.
    pub blended: Option<Blended>,
    /// Its duplicates among the matches, if those are folded.
    pub duplicates: Option<Duplicates>,
    pub address: DocAddress,
}

impl PageEntry {
    /// Full-text score of an entry that was collected by score, before it is combined; otherwise 0.
    pub fn full_text_score(&self) -> Score {
        match self.position.value {
            SortValue::Score(score) => score,
            _ => 0.0,
        }
    }
}

#[derive(Default)]
pub(super) struct CollectedPage {
    pub total: u64,
    /// Number of matches that are not folded into others.
    pub groups: u64,
    pub entries: Vec<PageEntry>,
    /// The separately collected matches, in any order.
    pub apart: Vec<PageEntry>,
    /// Matches of each segment, if facets are requested.
    pub matches: Vec<SegmentMatches>,
}

impl Collector for PageCollector {
    type Fruit = CollectedPage;
    type Child = SegmentPage;

    fn for_segment(
        &self,
        ordinal: SegmentOrdinal,
        reader: &SegmentReader,
    ) -> tantivy::Result<SegmentPage> {
        let fast = reader.fast_fields();
        let key = match self.order {
            Order::Score => RankKey::Score,
            Order::Name => RankKey::Name(fast.str("name_key")?),
            Order::Updated => RankKey::Time(fast.i64("updated_at")?),
            Order::Created => RankKey::Time(fast.i64("created_at")?),
        };
        let after = match &self.after {
            None => None,
            Some(position) => key.rank_of(position)?,
        };
        let columns = self.facets.columns(reader);
        Ok(SegmentPage {
            best: SegmentCandidates {
                ordinal,
                key,
                ids: columns.ids(reader)?,
                after,
                best: BestDocuments::new(self.top),
                apart: SeparateMatches {
                    near: match &self.apart {
                        Some(meant) => meant.documents(reader.segment_id()),
                        None => NearDocuments::default(),
                    },
                    ..SeparateMatches::default()
                },
            },
            folded: FoldedMatches::of(self.groups.as_deref(), ordinal),
            total: 0,
            matches: self.facets.matches(ordinal, reader, &columns)?,
        })
    }

    fn requires_scoring(&self) -> bool {
        self.order == Order::Score && self.top > 0
    }

    /// Collects without tantivy's test of each match for being deleted.
    fn collect_segment(
        &self,
        weight: &dyn Weight,
        ordinal: SegmentOrdinal,
        reader: &SegmentReader,
    ) -> tantivy::Result<tantivy::Result<SegmentFruit>> {
        let mut page = self.for_segment(ordinal, reader)?;
        if self.requires_scoring() {
            weight.for_each(reader, &mut |document, score| page.collect(document, score))?;
        } else {
            weight.for_each_no_score(reader, &mut |found| page.collect_block(found))?;
        }
        Ok(page.harvest())
    }

    fn merge_fruits(
        &self,
        segments: Vec<tantivy::Result<SegmentFruit>>,
    ) -> tantivy::Result<CollectedPage> {
        let mut collected = CollectedPage::default();
        let mut candidates = Vec::with_capacity(segments.len());
        let mut folded = FoldedGroups::default();
        for (number, segment) in segments.into_iter().enumerate() {
            let segment = segment?;
            collected.total += segment.total;
            collected.matches.extend(segment.matches);
            folded.add(number, segment.folded);
            candidates.push(segment.best);
        }
        collected.groups = collected.total - folded.folded();
        for head in folded.heads() {
            if let Some(segment) = candidates.get_mut(head.segment) {
                segment.offer(head.rank, head.document, head.is_near);
            }
        }
        let mut best = Vec::with_capacity(candidates.len());
        for segment in candidates {
            let (segment, apart) = segment.finish();
            collected.apart.extend(segment.entries(apart)?);
            best.push(segment);
        }
        // Ranks by name are ordinals in the dictionary of one segment and cannot be compared with those of another.
        if self.order != Order::Name {
            keep_global_best(&mut best, self.top);
        }
        for mut segment in best {
            let kept = std::mem::take(&mut segment.kept);
            collected.entries.extend(segment.entries(kept)?);
        }
        collected
            .entries
            .sort_unstable_by(|left, right| compare(&left.position, &right.position));
        collected.entries.truncate(self.top);
        if let Some(groups) = &self.groups {
            let entries = collected.entries.iter_mut().chain(&mut collected.apart);
            entries.for_each(|entry| entry.duplicates = folded.duplicates(groups, entry.address));
        }
        Ok(collected)
    }
}

/// Drops candidates outside the global top N, before their ids and sort values are read.
fn keep_global_best(segments: &mut [SegmentBest], top: usize) {
    let mut ranks: Vec<u64> = segments
        .iter()
        .flat_map(|segment| segment.kept.iter().map(|ranked| ranked.rank))
        .collect();
    let Some(last) = top.checked_sub(1).filter(|last| *last < ranks.len()) else {
        return;
    };
    let (_, worst, _) = ranks.select_nth_unstable(last);
    for segment in segments {
        segment.kept.retain(|ranked| ranked.rank <= *worst);
    }
}

/// Compares two positions of the same sort key: weak hits come last; better scores, later times and smaller names come
/// first; ties are ordered by id.
pub(super) fn compare(left: &SortPosition, right: &SortPosition) -> std::cmp::Ordering {
    let by_value = match (&left.value, &right.value) {
        (SortValue::Score(left), SortValue::Score(right)) => right.total_cmp(left),
        (SortValue::Name(left), SortValue::Name(right)) => left.cmp(right),
        (SortValue::Time(left), SortValue::Time(right)) => right.cmp(left),
        _ => std::cmp::Ordering::Equal,
    };
    left.weak
        .cmp(&right.weak)
        .then(by_value)
        .then_with(|| left.id.cmp(&right.id))
}

/// Reader of the agent ids of a segment's documents.
pub(super) struct AgentIds {
    high: Column<u64>,
    low: Column<u64>,
}

impl AgentIds {
    pub fn open(reader: &SegmentReader) -> tantivy::Result<Self> {
        let fast = reader.fast_fields();
        Ok(Self {
            high: fast.u64("id_high")?,
            low: fast.u64("id_low")?,
        })
    }

    pub fn get(&self, document: DocId) -> Uuid {
        let half = |column: &Column<u64>| column.first(document).unwrap_or(0);
        Uuid::from_u64_pair(half(&self.high), half(&self.low))
    }
}

/// Sort key within one segment, mapped to ranks; a smaller rank comes first.
enum RankKey {
    Score,
    Name(Option<StrColumn>),
    Time(Column<i64>),
}

impl RankKey {
    fn rank(&self, document: DocId, score: Score) -> u64 {
        match self {
            Self::Score => score_rank(score),
            Self::Name(column) => column
                .as_ref()
                .and_then(|column| column.ords().first(document))
                // An empty name has no value in the column and comes first.
                .map_or(0, |ordinal| ordinal + 1),
            Self::Time(column) => time_rank(column.first(document).unwrap_or(i64::MIN)),
        }
    }

    /// The rank and id after which the page continues; `None` if the position has another sort key, so that the segment
    /// is read from its beginning.
    fn rank_of(&self, position: &SortPosition) -> tantivy::Result<Option<(u64, Uuid)>> {
        Ok(match (self, &position.value) {
            (Self::Score, SortValue::Score(score)) => Some((score_rank(*score), position.id)),
            (Self::Time(_), SortValue::Time(time)) => Some((time_rank(*time), position.id)),
            (Self::Name(_), SortValue::Name(name)) if name.is_empty() => Some((0, position.id)),
            (Self::Name(None), SortValue::Name(_)) => Some((0, Uuid::max())),
            (Self::Name(Some(column)), SortValue::Name(name)) => {
                use tantivy::columnar::Dictionary;
                let dictionary: &Dictionary = column.dictionary();
                match dictionary.term_ord(name)? {
                    Some(ordinal) => Some((ordinal + 1, position.id)),
                    None => Some((smaller(dictionary, name)?, Uuid::max())),
                }
            }
            _ => None,
        })
    }

    /// The sort values of these matches, which must be sorted by rank.
    fn values(&self, best: &[RankedDocument]) -> tantivy::Result<Vec<SortValue>> {
        let best = best.iter().map(|ranked| ranked.rank);
        Ok(match self {
            Self::Score => best
                .map(|rank| SortValue::Score(rank_score(rank)))
                .collect(),
            Self::Time(_) => best.map(|rank| SortValue::Time(rank_time(rank))).collect(),
            Self::Name(column) => {
                let unnamed = best.clone().take_while(|rank| *rank == 0).count();
                let mut values = vec![SortValue::Name(String::new()); unnamed];
                let ordinals: Vec<u64> = best.skip(unnamed).map(|rank| rank - 1).collect();
                if let Some(column) = column {
                    column
                        .dictionary()
                        .sorted_ords_to_term_cb(&ordinals, |name| {
                            values
                                .push(SortValue::Name(String::from_utf8_lossy(name).into_owned()));
                        })?;
                }
                values
            }
        })
    }
}

/// Number of values of a dictionary that are smaller than `name`, which it does not contain.
pub(super) fn smaller(
    dictionary: &tantivy::columnar::Dictionary,
    name: &str,
) -> std::io::Result<u64> {
    let total = dictionary.num_terms() as u64;
    let (mut low, mut high) = (0, total);
    let mut text = Vec::new();
    while low < high {
        let middle = low + (high - low) / 2;
        text.clear();
        dictionary.ord_to_term(middle, &mut text)?;
        if text.as_slice() < name.as_bytes() {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

/// Rank of a score. Scores are never negative, so their bits have the same order.
fn score_rank(score: Score) -> u64 {
    u64::from(u32::MAX - score.max(0.0).to_bits())
}

fn rank_score(rank: u64) -> Score {
    Score::from_bits(u32::MAX - u32::try_from(rank).unwrap_or(u32::MAX))
}

fn time_rank(time: i64) -> u64 {
    !tantivy::i64_to_u64(time)
}

fn rank_time(rank: u64) -> i64 {
    tantivy::u64_to_i64(!rank)
}

/// Semantic neighbours of one segment, collected separately.
#[derive(Default)]
struct SeparateMatches {
    /// The documents to collect, ascending.
    near: NearDocuments,
    /// Position of the first one that has not been reached.
    next: usize,
    kept: Vec<RankedDocument>,
}

impl SeparateMatches {
    /// Whether this match is one of them. Must be called with ascending documents.
    fn is_next(&mut self, document: DocId) -> bool {
        while let Some((near, _)) = self.near.get(self.next) {
            if *near > document {
                break;
            }
            self.next += 1;
            if *near == document {
                return true;
            }
        }
        false
    }
}

pub(super) struct SegmentPage {
    best: SegmentCandidates,
    folded: FoldedMatches,
    total: u64,
    matches: Option<SegmentMatches>,
}

/// The best matches of one segment so far.
struct SegmentCandidates {
    ordinal: SegmentOrdinal,
    key: RankKey,
    ids: Arc<AgentIds>,
    after: Option<(u64, Uuid)>,
    best: BestDocuments,
    apart: SeparateMatches,
}

impl SegmentCandidates {
    fn offer(&mut self, rank: u64, document: DocId, is_near: bool) {
        match is_near {
            true => self.apart.kept.push(RankedDocument { rank, document }),
            false => self.best.offer(rank, document, &self.ids, self.after),
        }
    }

    /// The best matches, and those that were collected separately.
    fn finish(self) -> (SegmentBest, Vec<RankedDocument>) {
        let best = SegmentBest {
            kept: self.best.finish(&self.ids),
            ordinal: self.ordinal,
            key: self.key,
            ids: self.ids,
        };
        (best, self.apart.kept)
    }
}

pub(super) struct SegmentFruit {
    total: u64,
    best: SegmentCandidates,
    folded: FoldedMatches,
    matches: Option<SegmentMatches>,
}

/// The best matches of one segment, of which only the ranks have been read.
struct SegmentBest {
    ordinal: SegmentOrdinal,
    key: RankKey,
    ids: Arc<AgentIds>,
    kept: Vec<RankedDocument>,
}

impl SegmentBest {
    /// The page entries of these matches of the segment, in the order of their ranks.
    fn entries(
        &self,
        mut matches: Vec<RankedDocument>,
    ) -> tantivy::Result<impl Iterator<Item = PageEntry>> {
        matches.sort_unstable_by_key(|ranked| ranked.rank);
        let values = self.key.values(&matches)?;
        let entries = matches.into_iter().zip(values);
        Ok(entries.map(|(ranked, value)| {
            let id = self.ids.get(ranked.document);
            PageEntry {
                position: SortPosition {
                    weak: false,
                    value,
                    id,
                },
                added: RescoreGain::default(),
                blended: None,
                duplicates: None,
                address: DocAddress::new(self.ordinal, ranked.document),
            }
        }))
    }
}

impl SegmentCollector for SegmentPage {
    type Fruit = tantivy::Result<SegmentFruit>;

    fn collect(&mut self, document: DocId, score: Score) {
        self.total += 1;
        let page = &mut self.best;
        if page.best.top() > 0 {
            let rank = page.key.rank(document, score);
            let is_near = page.apart.is_next(document);
            match self.folded.next(document) {
                Some(duplicate) => self.folded.add(duplicate, rank, is_near),
                None => page.offer(rank, document, is_near),
            }
        }
        if let Some(matches) = &mut self.matches {
            matches.insert(document);
        }
    }

    fn harvest(self) -> Self::Fruit {
        Ok(SegmentFruit {
            total: self.total,
            best: self.best,
            folded: self.folded,
            matches: self.matches,
        })
    }
}
