//! Merge policy: chooses the segments of a live index to merge, so that few remain, and a large one is rewritten only
//! after others of its size have accumulated or many of its agents were deleted.
//!
//! tantivy's own policy treats all segments below 10,000 agents as equally large: every eighth commit of a single
//! agent would rewrite them all.

use std::collections::BTreeMap;

use tantivy::index::SegmentMeta;
use tantivy::merge_policy::{MergeCandidate, MergePolicy};

/// Agents from which a segment's level depends on its size; all smaller segments have the lowest level and are cheap
/// to merge.
const MIN_LEVEL_DOCS: u32 = 256;

/// Segments of the lowest level per merge: more than elsewhere, because each commit adds one and a merge has a fixed
/// cost.
const MAX_LOWEST_SEGMENTS: usize = 8;

/// Size factor between two levels, and the number of segments of a level that are merged into one of the next. With a
/// larger factor an agent is rewritten less often, and searches read more segments.
const LEVEL_FACTOR: u32 = 4;

/// If more than one in this many agents of a segment are deleted, it is rewritten alone.
const MAX_DELETED_FRACTION: u32 = 4;

#[derive(Debug)]
pub(super) struct LevelMergePolicy;

#[derive(Debug, Clone, Copy)]
pub(super) struct SegmentSize {
    pub alive: u32,
    pub deleted: u32,
}

impl SegmentSize {
    /// The level of the segment; the lowest is 0.
    pub fn level(self) -> u32 {
        match self.alive / MIN_LEVEL_DOCS {
            0 => 0,
            times => 1 + times.ilog(LEVEL_FACTOR),
        }
    }

    fn has_many_deleted(self) -> bool {
        let all = self.alive + self.deleted;
        all >= MIN_LEVEL_DOCS && self.deleted > all / MAX_DELETED_FRACTION
    }
}

/// The lists of segments to merge, by position.
pub(super) fn plan_merges(segments: &[SegmentSize]) -> Vec<Vec<usize>> {
    let mut levels: BTreeMap<u32, usize> = BTreeMap::new();
    for segment in segments {
        *levels.entry(segment.level()).or_default() += 1;
    }
    let is_full = |(level, count): (&u32, &usize)| match level {
        0 => *count >= MAX_LOWEST_SEGMENTS,
        _ => *count >= LEVEL_FACTOR as usize,
    };
    let full = levels.iter().rev().find(|level| is_full(*level));
    // Smaller segments are included: next to the others they cost little, and they rise several levels at once.
    let is_joined = |segment: &SegmentSize| full.is_some_and(|(full, _)| segment.level() <= *full);
    let places = |chosen: &dyn Fn(&SegmentSize) -> bool| -> Vec<usize> {
        let all = segments.iter().enumerate();
        let chosen = all.filter(|(_, segment)| chosen(segment));
        chosen.map(|(place, _)| place).collect()
    };
    let joined = places(&is_joined);
    let alone = places(&|segment: &SegmentSize| !is_joined(segment) && segment.has_many_deleted());
    let alone = alone.into_iter().map(|place| vec![place]);
    let joined = (!joined.is_empty()).then_some(joined);
    joined.into_iter().chain(alone).collect()
}

impl MergePolicy for LevelMergePolicy {
    fn compute_merge_candidates(&self, segments: &[SegmentMeta]) -> Vec<MergeCandidate> {
        let sizes: Vec<SegmentSize> = segments
            .iter()
            .map(|segment| SegmentSize {
                alive: segment.num_docs(),
                deleted: segment.num_deleted_docs(),
            })
            .collect();
        let merges = plan_merges(&sizes).into_iter();
        merges
            .map(|places| places.into_iter().map(|place| segments[place].id()))
            .map(|ids| MergeCandidate(ids.collect()))
            .collect()
    }
}
