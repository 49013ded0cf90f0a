//! Match groups: while matches are collected, only the first matching member of each duplicate group is kept.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use tantivy::{DocAddress, DocId, SegmentOrdinal};

use super::duplicate_groups::{DuplicateDocument, DuplicateGroups, GroupMember};
use super::response::{DuplicateAgents, MAX_DUPLICATES};
use super::top_documents::RankedDocument;

/// Positions kept per group: the first one, and those listed as duplicates.
const MAX_GROUP_POSITIONS: usize = MAX_DUPLICATES + 1;

/// The matches of a segment that have duplicates.
#[derive(Default)]
pub(super) struct SegmentMatchGroups {
    /// Documents with duplicates, ascending.
    duplicates: Arc<[DuplicateDocument]>,
    /// Index of the next duplicate that has not been reached.
    next: usize,
    groups: HashMap<u32, MatchGroup>,
}

#[derive(Debug, Clone)]
pub(super) struct MatchGroup {
    pub head: GroupHead,
    head_position: u32,
    count: u64,
    /// The first [`MAX_GROUP_POSITIONS`] positions, in any order.
    positions: Vec<u32>,
}

/// The member that represents a group.
#[derive(Debug, Clone, Copy)]
pub(super) struct GroupHead {
    /// Index of its segment among the searched ones.
    pub segment: usize,
    pub ranked: RankedDocument,
    pub is_neighbor: bool,
}

impl SegmentMatchGroups {
    pub fn new(groups: Option<&DuplicateGroups>, segment: SegmentOrdinal) -> Self {
        Self {
            duplicates: match groups {
                Some(groups) => groups.segment_duplicates(segment),
                None => Arc::default(),
            },
            ..Self::default()
        }
    }

    /// The group of this match, if it has one. Documents must ascend between calls.
    pub fn advance_to_duplicate(&mut self, document: DocId) -> Option<DuplicateDocument> {
        while let Some(duplicate) = self.duplicates.get(self.next) {
            if duplicate.document > document {
                break;
            }
            self.next += 1;
            if duplicate.document == document {
                return Some(*duplicate);
            }
        }
        None
    }

    pub fn add(&mut self, duplicate: DuplicateDocument, ranked: RankedDocument, is_neighbor: bool) {
        let group = MatchGroup {
            head: GroupHead {
                segment: 0,
                ranked,
                is_neighbor,
            },
            head_position: duplicate.position,
            count: 1,
            positions: vec![duplicate.position],
        };
        merge_match_group(&mut self.groups, duplicate.group, group);
    }
}

fn merge_match_group(groups: &mut HashMap<u32, MatchGroup>, number: u32, members: MatchGroup) {
    match groups.entry(number) {
        Entry::Vacant(entry) => {
            entry.insert(members);
        }
        Entry::Occupied(mut entry) => entry.get_mut().merge(members),
    }
}

impl MatchGroup {
    fn merge(&mut self, other: Self) {
        self.count += other.count;
        if other.head_position < self.head_position {
            (self.head_position, self.head) = (other.head_position, other.head);
        }
        other
            .positions
            .into_iter()
            .for_each(|place| self.insert_position(place));
    }

    fn insert_position(&mut self, position: u32) {
        if self.positions.len() < MAX_GROUP_POSITIONS {
            self.positions.push(position);
        } else if let Some(last) = self.positions.iter_mut().max()
            && position < *last
        {
            *last = position;
        }
    }

    /// The members without the head; `None` if there are no others.
    fn duplicates(&self, members: &[GroupMember]) -> Option<DuplicateAgents> {
        let count = self.count - 1;
        let mut places = self.positions.clone();
        places.retain(|place| *place != self.head_position);
        places.sort_unstable();
        let ids = places
            .iter()
            .filter_map(|place| members.get(*place as usize));
        (count > 0).then(|| DuplicateAgents {
            count,
            agents: ids.map(|member| member.id).collect(),
        })
    }
}

#[derive(Debug, Default)]
pub(super) struct MatchGroups(HashMap<u32, MatchGroup>);

impl MatchGroups {
    pub fn add_segment_matches(&mut self, segment: usize, matches: SegmentMatchGroups) {
        for (number, mut group) in matches.groups {
            group.head.segment = segment;
            merge_match_group(&mut self.0, number, group);
        }
    }

    pub fn heads(&self) -> impl Iterator<Item = GroupHead> {
        self.0.values().map(|group| group.head)
    }

    pub fn duplicate_count(&self) -> u64 {
        self.0.values().map(|group| group.count - 1).sum()
    }

    pub fn duplicates(
        &self,
        groups: &DuplicateGroups,
        head: DocAddress,
    ) -> Option<DuplicateAgents> {
        let number = groups.find_duplicate(head)?.group;
        self.0.get(&number)?.duplicates(groups.members(number))
    }
}
