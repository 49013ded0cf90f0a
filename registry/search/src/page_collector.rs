//! Page collector: collects the page, the exact totals and the facets in one pass over all matches.

use std::sync::Arc;

use tantivy::collector::{Collector, SegmentCollector};
use tantivy::columnar::{Column, StrColumn};
use tantivy::query::Weight;
use tantivy::{DocAddress, DocId, Score, SegmentOrdinal, SegmentReader};

use super::duplicate_groups::DuplicateGroups;
use super::facets::{RequestedFacets, SegmentMatches};
use super::fitting::FitModel;
use super::match_groups::{MatchGroups, SegmentMatchGroups};
use super::page_entry::{PageEntry, compare_sort_positions};
use super::request::{SortOrder, SortPosition, SortValue, TieKey};
use super::rescore_bonus::RescoreBonus;
use super::semantic_neighbors::{SegmentNeighbors, SemanticNeighbors};
use super::tie_reader::{LAST_TIE_KEY, TieReader};
use super::top_documents::{RankedDocument, TopDocuments};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SortKey {
    Score,
    Name,
    Updated,
    Created,
}

/// Collects the first `limit` matches after `after`, the totals, and the input of the facet counts. The query must
/// exclude deleted documents itself, as [`FilteredQuery`](super::filtered_query::FilteredQuery) does.
#[derive(Clone)]
pub(super) struct PageCollector {
    pub sort_key: SortKey,
    pub limit: usize,
    pub after: Option<SortPosition>,
    pub facets: RequestedFacets,
    /// Semantic neighbors of the query.
    pub neighbors: Option<Arc<SemanticNeighbors>>,
    /// Whether all neighbors are collected separately: regardless of their rank, and not among the first `limit`.
    pub separates_neighbors: bool,
    /// Duplicate groups, of which only the first matching member is collected.
    pub groups: Option<Arc<DuplicateGroups>>,
    /// Decides which matches fit; `None` if all do.
    pub fit: Option<FitModel>,
    /// Whether matches that do not fit only count in the total.
    pub only_fitting: bool,
}

impl PageCollector {
    /// Creates a collector of the first `limit` of all matches.
    pub fn new(sort_key: SortKey, limit: usize) -> Self {
        Self {
            sort_key,
            limit,
            after: None,
            facets: RequestedFacets::default(),
            neighbors: None,
            separates_neighbors: false,
            groups: None,
            fit: None,
            only_fitting: false,
        }
    }
}

#[derive(Default)]
pub(super) struct CollectedPage {
    pub total: u64,
    /// Number of matches that fit.
    pub total_fitting: u64,
    /// Number of collected matches, counting each group of duplicates once.
    pub group_count: u64,
    pub entries: Vec<PageEntry>,
    /// The separately collected neighbors, in any order.
    pub neighbors: Vec<PageEntry>,
    /// Matches of each segment, if facets are requested.
    pub matches: Vec<SegmentMatches>,
}

impl Collector for PageCollector {
    type Fruit = CollectedPage;
    type Child = SegmentPageCollector;

    fn for_segment(
        &self,
        ordinal: SegmentOrdinal,
        reader: &SegmentReader,
    ) -> tantivy::Result<SegmentPageCollector> {
        let fast = reader.fast_fields();
        let segment_key = match self.sort_key {
            SortKey::Score => SegmentSortKey::Score,
            SortKey::Name => SegmentSortKey::Name(fast.str("name_key")?),
            SortKey::Updated => SegmentSortKey::Time(fast.i64("updated_at")?),
            SortKey::Created => SegmentSortKey::Time(fast.i64("created_at")?),
        };
        let after = match &self.after {
            None => None,
            Some(position) => segment_key.position_rank(position)?,
        };
        let columns = self.facets.segment_columns(reader);
        Ok(SegmentPageCollector {
            candidates: SegmentCandidates {
                ordinal,
                key: segment_key,
                ties: Arc::new(TieReader::open(
                    reader,
                    columns.agent_ids(reader)?,
                    self.sort_key == SortKey::Score,
                )?),
                after,
                top: TopDocuments::new(self.limit),
                separated: Vec::new(),
            },
            neighbors: NeighborCursor {
                neighbors: match &self.neighbors {
                    Some(neighbors) => neighbors.in_segment(reader.segment_id()),
                    None => SegmentNeighbors::default(),
                },
                next: 0,
            },
            separates_neighbors: self.separates_neighbors,
            fit: self.fit,
            only_fitting: self.only_fitting,
            grouped: SegmentMatchGroups::new(self.groups.as_deref(), ordinal),
            total: 0,
            total_fitting: 0,
            matches: self.facets.new_segment_matches(ordinal, reader, &columns)?,
        })
    }

    fn requires_scoring(&self) -> bool {
        (self.sort_key == SortKey::Score && self.limit > 0) || self.fit.is_some()
    }

    /// Collects a segment without tantivy's check for deleted documents.
    fn collect_segment(
        &self,
        weight: &dyn Weight,
        ordinal: SegmentOrdinal,
        reader: &SegmentReader,
    ) -> tantivy::Result<tantivy::Result<SegmentPageFruit>> {
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
        segments: Vec<tantivy::Result<SegmentPageFruit>>,
    ) -> tantivy::Result<CollectedPage> {
        let mut collected = CollectedPage::default();
        let mut candidates = Vec::with_capacity(segments.len());
        let mut match_groups = MatchGroups::default();
        for (number, segment) in segments.into_iter().enumerate() {
            let segment = segment?;
            collected.total += segment.total;
            collected.total_fitting += segment.total_fitting;
            collected.matches.extend(segment.matches);
            match_groups.add_segment_matches(number, segment.grouped);
            candidates.push(segment.candidates);
        }
        let collected_count = match self.only_fitting {
            true => collected.total_fitting,
            false => collected.total,
        };
        collected.group_count = collected_count - match_groups.duplicate_count();
        for head in match_groups.heads() {
            if let Some(segment) = candidates.get_mut(head.segment) {
                segment.offer(head.ranked, head.is_neighbor);
            }
        }
        let mut top_matches = Vec::with_capacity(candidates.len());
        for segment in candidates {
            let (segment, apart) = segment.finish();
            collected.neighbors.extend(segment.page_entries(apart)?);
            top_matches.push(segment);
        }
        // Ranks by name are ordinals in the dictionary of one segment and cannot be compared with those of another.
        if self.sort_key != SortKey::Name {
            retain_global_top(&mut top_matches, self.limit);
        }
        for mut segment in top_matches {
            let kept = std::mem::take(&mut segment.ranked);
            collected.entries.extend(segment.page_entries(kept)?);
        }
        collected.entries.sort_unstable_by(|left, right| {
            compare_sort_positions(&left.position, &right.position)
        });
        collected.entries.truncate(self.limit);
        if let Some(groups) = &self.groups {
            let entries = collected.entries.iter_mut().chain(&mut collected.neighbors);
            entries.for_each(|entry| {
                entry.duplicates = match_groups.duplicates(groups, entry.address)
            });
        }
        Ok(collected)
    }
}

/// Drops candidates outside the global top `limit`, before their ids and sort values are read.
fn retain_global_top(segments: &mut [SegmentTopMatches], limit: usize) {
    let mut ranks: Vec<u64> = segments
        .iter()
        .flat_map(|segment| segment.ranked.iter().map(|ranked| ranked.rank))
        .collect();
    let Some(last) = limit.checked_sub(1).filter(|last| *last < ranks.len()) else {
        return;
    };
    let (_, worst, _) = ranks.select_nth_unstable(last);
    for segment in segments {
        segment.ranked.retain(|ranked| ranked.rank <= *worst);
    }
}

/// Sort key within one segment, mapped to ranks; a smaller rank comes first.
enum SegmentSortKey {
    Score,
    Name(Option<StrColumn>),
    Time(Column<i64>),
}

impl SegmentSortKey {
    fn rank(&self, document: DocId, score: Score) -> u64 {
        match self {
            Self::Score => rank_from_score(score),
            Self::Name(column) => column
                .as_ref()
                .and_then(|column| column.ords().first(document))
                // An empty name has no value in the column and comes first.
                .map_or(0, |ordinal| ordinal + 1),
            Self::Time(column) => rank_from_time(column.first(document).unwrap_or(i64::MIN)),
        }
    }

    /// The rank and tie key after which the page continues; `None` if the position has another sort key, so the
    /// segment is read from its beginning.
    fn position_rank(&self, position: &SortPosition) -> tantivy::Result<Option<(u64, TieKey)>> {
        let key = position.tie_key();
        Ok(match (self, &position.value) {
            (Self::Score, SortValue::Score(score)) => Some((rank_from_score(*score), key)),
            (Self::Time(_), SortValue::Time(time)) => Some((rank_from_time(*time), key)),
            (Self::Name(_), SortValue::Name(name)) if name.is_empty() => Some((0, key)),
            (Self::Name(None), SortValue::Name(_)) => Some((0, LAST_TIE_KEY)),
            (Self::Name(Some(column)), SortValue::Name(name)) => {
                use tantivy::columnar::Dictionary;
                let dictionary: &Dictionary = column.dictionary();
                match dictionary.term_ord(name)? {
                    Some(ordinal) => Some((ordinal + 1, key)),
                    None => Some((count_smaller_terms(dictionary, name)?, LAST_TIE_KEY)),
                }
            }
            _ => None,
        })
    }

    /// The sort values of these matches, which must be sorted by rank.
    fn read_sort_values(&self, best: &[RankedDocument]) -> tantivy::Result<Vec<SortValue>> {
        let best = best.iter().map(|ranked| ranked.rank);
        Ok(match self {
            Self::Score => best
                .map(|rank| SortValue::Score(score_from_rank(rank)))
                .collect(),
            Self::Time(_) => best
                .map(|rank| SortValue::Time(time_from_rank(rank)))
                .collect(),
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
pub(super) fn count_smaller_terms(
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

/// The rank of a score. Scores are never negative, so their bits have the same order.
fn rank_from_score(score: Score) -> u64 {
    u64::from(u32::MAX - score.max(0.0).to_bits())
}

fn score_from_rank(rank: u64) -> Score {
    Score::from_bits(u32::MAX - u32::try_from(rank).unwrap_or(u32::MAX))
}

fn rank_from_time(time: i64) -> u64 {
    !tantivy::i64_to_u64(time)
}

fn time_from_rank(rank: u64) -> i64 {
    tantivy::u64_to_i64(!rank)
}

/// The semantic neighbors of one segment, read along with its matches.
struct NeighborCursor {
    /// Ascending by document.
    neighbors: SegmentNeighbors,
    /// Index of the next neighbor that has not been reached.
    next: usize,
}

impl NeighborCursor {
    /// The similarity of this match if it is a neighbor. Documents must ascend between calls.
    fn advance_to_similarity(&mut self, document: DocId) -> Option<f32> {
        while let Some((near, similarity)) = self.neighbors.get(self.next) {
            if *near > document {
                break;
            }
            self.next += 1;
            if *near == document {
                return Some(similarity.combined_cosine());
            }
        }
        None
    }
}

pub(super) struct SegmentPageCollector {
    candidates: SegmentCandidates,
    neighbors: NeighborCursor,
    separates_neighbors: bool,
    fit: Option<FitModel>,
    only_fitting: bool,
    grouped: SegmentMatchGroups,
    total: u64,
    total_fitting: u64,
    matches: Option<SegmentMatches>,
}

/// The best matches of one segment so far.
struct SegmentCandidates {
    ordinal: SegmentOrdinal,
    key: SegmentSortKey,
    ties: Arc<TieReader>,
    after: Option<(u64, TieKey)>,
    top: TopDocuments,
    /// The separately collected neighbors.
    separated: Vec<RankedDocument>,
}

impl SegmentCandidates {
    fn offer(&mut self, ranked: RankedDocument, is_separated: bool) {
        match is_separated {
            true => self.separated.push(ranked),
            false => self.top.offer(ranked, &self.ties, self.after),
        }
    }

    /// The best matches, and the separately collected ones.
    fn finish(self) -> (SegmentTopMatches, Vec<RankedDocument>) {
        let best = SegmentTopMatches {
            ranked: self.top.finish(&self.ties),
            ordinal: self.ordinal,
            key: self.key,
            ties: self.ties,
        };
        (best, self.separated)
    }
}

pub(super) struct SegmentPageFruit {
    total: u64,
    total_fitting: u64,
    candidates: SegmentCandidates,
    grouped: SegmentMatchGroups,
    matches: Option<SegmentMatches>,
}

/// The best matches of one segment, with only their ranks read.
struct SegmentTopMatches {
    ordinal: SegmentOrdinal,
    key: SegmentSortKey,
    ties: Arc<TieReader>,
    ranked: Vec<RankedDocument>,
}

impl SegmentTopMatches {
    /// The page entries of these matches of the segment, in the order of their ranks.
    fn page_entries(
        &self,
        mut matches: Vec<RankedDocument>,
    ) -> tantivy::Result<impl Iterator<Item = PageEntry>> {
        matches.sort_unstable_by_key(|ranked| ranked.rank);
        let values = self.key.read_sort_values(&matches)?;
        let by_relevance = matches!(self.key, SegmentSortKey::Score);
        let entries = matches.into_iter().zip(values);
        Ok(entries.map(move |(ranked, value)| {
            let (tie_rank, id) = self.ties.get(ranked.document);
            PageEntry {
                position: SortPosition {
                    weak: by_relevance && ranked.weak,
                    value,
                    tie_rank,
                    id,
                },
                weak: ranked.weak,
                rescore_bonus: RescoreBonus::default(),
                hybrid_score: None,
                duplicates: None,
                address: DocAddress::new(self.ordinal, ranked.document),
            }
        }))
    }
}

impl SegmentCollector for SegmentPageCollector {
    type Fruit = tantivy::Result<SegmentPageFruit>;

    fn collect(&mut self, document: DocId, score: Score) {
        self.total += 1;
        let similarity = self.neighbors.advance_to_similarity(document);
        let fits = self.fit.is_none_or(|fit| fit.fits(score, similarity));
        self.total_fitting += u64::from(fits);
        if self.only_fitting && !fits {
            return;
        }
        let candidates = &mut self.candidates;
        if candidates.top.limit() > 0 {
            let ranked = RankedDocument {
                rank: candidates.key.rank(document, score),
                document,
                weak: !fits,
            };
            let is_separated = self.separates_neighbors && similarity.is_some();
            match self.grouped.advance_to_duplicate(document) {
                Some(duplicate) => self.grouped.add(duplicate, ranked, is_separated),
                None => candidates.offer(ranked, is_separated),
            }
        }
        if let Some(matches) = &mut self.matches {
            matches.insert(document);
        }
    }

    fn harvest(self) -> Self::Fruit {
        Ok(SegmentPageFruit {
            total: self.total,
            total_fitting: self.total_fitting,
            candidates: self.candidates,
            grouped: self.grouped,
            matches: self.matches,
        })
    }
}

/// What the results of an order are sorted by.
pub(super) fn sort_key(sort: SortOrder, text: bool) -> SortKey {
    match sort {
        SortOrder::Relevance if text => SortKey::Score,
        SortOrder::Relevance | SortOrder::Updated => SortKey::Updated,
        SortOrder::Name => SortKey::Name,
        SortOrder::Newest => SortKey::Created,
    }
}

/// Whether a position in a list belongs to an order by this key.
pub(super) fn position_matches_sort_key(sort_key: SortKey, position: &SortPosition) -> bool {
    matches!(
        (sort_key, &position.value),
        (SortKey::Score, SortValue::Score(_))
            | (SortKey::Name, SortValue::Name(_))
            | (SortKey::Updated | SortKey::Created, SortValue::Time(_))
    )
}
