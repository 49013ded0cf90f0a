//! Merges of a live index: the number of remaining segments, and the rewriting caused by each change.

use super::*;
use crate::merge_policy::{SegmentSize, plan_merges};

/// A model of an index for its merge policy, with instant merges.
struct Segments {
    sizes: Vec<SegmentSize>,
    /// Agents rewritten by merges.
    rewritten: u64,
    /// Merges that rewrote a segment of at least this many agents.
    large: u32,
    large_merges: u32,
}

impl Segments {
    fn of(living: u32) -> Self {
        let mut segments = Self {
            sizes: Vec::new(),
            rewritten: 0,
            large: living / 2,
            large_merges: 0,
        };
        segments.commit(living);
        segments.rewritten = 0;
        segments
    }

    fn living(&self) -> u32 {
        self.sizes.iter().map(|size| size.alive).sum()
    }

    /// Deletes one agent, each with the same probability.
    fn delete(&mut self, dice: &mut Dice) {
        let mut place = dice.below(self.living().into());
        for size in &mut self.sizes {
            match place.checked_sub(size.alive.into()) {
                Some(rest) => place = rest,
                None => {
                    size.alive -= 1;
                    size.deleted += 1;
                    return;
                }
            }
        }
    }

    /// Adds a segment and merges until the policy finds nothing to merge.
    fn commit(&mut self, added: u32) {
        self.sizes.push(SegmentSize {
            alive: added,
            deleted: 0,
        });
        // tantivy drops segments when all their agents are deleted.
        self.sizes.retain(|size| size.alive > 0);
        loop {
            let merges = plan_merges(&self.sizes);
            if merges.is_empty() {
                return;
            }
            let mut merged: Vec<usize> = merges.concat();
            merged.sort_unstable();
            assert!(merged.is_sorted_by(|one, next| one < next), "{merges:?}");
            let mut after: Vec<SegmentSize> = Vec::new();
            for places in &merges {
                let living: u32 = places.iter().map(|place| self.sizes[*place].alive).sum();
                let is_large = |place: &usize| self.sizes[*place].alive >= self.large;
                self.large_merges += u32::from(places.iter().any(is_large));
                self.rewritten += u64::from(living);
                after.push(SegmentSize {
                    alive: living,
                    deleted: 0,
                });
            }
            let rest = self.sizes.iter().enumerate();
            let rest = rest.filter(|(place, _)| !merged.contains(place));
            after.extend(rest.map(|(_, size)| *size));
            self.sizes = after;
        }
    }

    /// Checks that few segments remain, with few deleted agents in them.
    fn check(&self) {
        let at = |level: u32| {
            let sizes = self.sizes.iter();
            sizes.filter(|size| size.level() == level).count()
        };
        assert!(at(0) < 8, "{:?}", self.sizes);
        for level in 1..20 {
            assert!(at(level) < 4, "{:?}", self.sizes);
        }
        for size in &self.sizes {
            let all = size.alive + size.deleted;
            assert!(all < 256 || size.deleted <= all / 4, "{size:?}");
        }
    }
}

#[test]
fn a_change_rewrites_few_agents_however_large_the_index_is() {
    for living in [10_000, 100_000, 1_000_000] {
        let mut dice = Dice(u64::from(living));
        let mut segments = Segments::of(living);
        let changes = 4_000;
        for _ in 0..changes {
            segments.delete(&mut dice);
            segments.commit(1);
            segments.check();
        }
        assert_eq!(segments.living(), living);
        let each = segments.rewritten / changes;
        assert!(each < 40, "{each} agents are rewritten for a change");
        // Once, a quarter of the smallest index is deleted.
        assert!(segments.large_merges <= 2, "{}", segments.large_merges);
        assert!(segments.sizes.len() < 20, "{:?}", segments.sizes);
    }
}

#[test]
fn a_crawl_rewrites_each_agent_a_few_times() {
    let mut dice = Dice(11);
    let mut segments = Segments::of(1);
    while segments.living() < 100_000 {
        let added = 1 + dice.below(300);
        segments.commit(u32::try_from(added).unwrap());
        segments.check();
    }
    assert!(segments.rewritten < 5 * 100_000, "{}", segments.rewritten);
}

#[test]
fn agents_that_are_all_changed_leave_few_deleted_ones() {
    let mut dice = Dice(12);
    let mut segments = Segments::of(20_000);
    for _ in 0..400 {
        (0..200).for_each(|_| segments.delete(&mut dice));
        segments.commit(200);
        segments.check();
    }
    assert_eq!(segments.living(), 20_000);
    let each = segments.rewritten / (400 * 200);
    assert!(each < 8, "{each} agents are rewritten for a change");
}

/// With tantivy's own policy, the eighth commit of a single agent would rewrite all segments of so few agents.
#[test]
fn a_large_segment_outlives_commits_of_single_agents() {
    let dir = tempfile::tempdir().unwrap();
    let agents = (0..600).map(|number| agent(number, "Agent")).collect();
    let mut config = config();
    config.rebuild_threads = 1;
    let (index, _) = Index::open(dir.path(), config).unwrap();
    let mut rebuild = index.begin_rebuild().unwrap();
    rebuild.add_agents(agents).unwrap();
    rebuild.finish(1).unwrap();
    let large = |index: &Index| {
        let searcher = index.0.current_view().unwrap().searcher;
        let readers = searcher.segment_readers().iter();
        let large = readers.max_by_key(|reader| reader.max_doc());
        large.map(|reader| (reader.segment_id(), reader.num_docs()))
    };
    let first = large(&index).unwrap();
    assert_eq!(first.1, 600);
    for seq in 2..42 {
        let number = 1_000 + u64::try_from(seq).unwrap();
        index
            .apply_changes(vec![agent(number, "Agent")], &[id(7)], seq)
            .unwrap();
    }
    assert_eq!(large(&index), Some((first.0, 599)));
    assert_eq!(index.search(&all()).unwrap().total, 639);
    // Changes after a restart are merged in the same way.
    drop(index);
    let (index, _) = Index::open(dir.path(), IndexConfig::default()).unwrap();
    for seq in 42..62 {
        index
            .apply_changes(vec![agent(7, "Agent")], &[], seq)
            .unwrap();
    }
    assert_eq!(large(&index), Some((first.0, 599)));
    assert_eq!(index.search(&all()).unwrap().total, 640);
}
