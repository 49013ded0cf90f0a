//! Folding of duplicates while matches are collected: only the first matching member of each group is kept.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use tantivy::{DocAddress, DocId, SegmentOrdinal};

use super::answer::{Duplicates, MAX_DUPLICATES};
use super::groups::{Duplicate, GroupMember, Groups};

/// Places kept per group: the first one, and those to list behind it.
const KEPT_PLACES: usize = MAX_DUPLICATES + 1;

/// The matches of a segment that have duplicates.
#[derive(Default)]
pub(super) struct FoldedMatches {
    /// In ascending order of documents.
    duplicates: Arc<[Duplicate]>,
    /// Index of the first one that was not reached yet.
    next: usize,
    groups: HashMap<u32, FoldedGroup>,
}

#[derive(Debug, Clone)]
pub(super) struct FoldedGroup {
    pub head: GroupHead,
    place: u32,
    count: u64,
    /// The first [`KEPT_PLACES`], in any order.
    places: Vec<u32>,
}

/// The member that stands for a group.
#[derive(Debug, Clone, Copy)]
pub(super) struct GroupHead {
    /// Position of its segment among the searched ones.
    pub segment: usize,
    pub document: DocId,
    pub rank: u64,
    pub is_near: bool,
}

impl FoldedMatches {
    pub fn of(groups: Option<&Groups>, segment: SegmentOrdinal) -> Self {
        Self {
            duplicates: match groups {
                Some(groups) => groups.documents(segment),
                None => Arc::default(),
            },
            ..Self::default()
        }
    }

    /// The group of this match, if it has one. Documents must ascend between calls.
    pub fn next(&mut self, document: DocId) -> Option<Duplicate> {
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

    pub fn add(&mut self, duplicate: Duplicate, rank: u64, is_near: bool) {
        let one = FoldedGroup {
            head: GroupHead {
                segment: 0,
                document: duplicate.document,
                rank,
                is_near,
            },
            place: duplicate.place,
            count: 1,
            places: vec![duplicate.place],
        };
        join(&mut self.groups, duplicate.group, one);
    }
}

fn join(groups: &mut HashMap<u32, FoldedGroup>, number: u32, members: FoldedGroup) {
    match groups.entry(number) {
        Entry::Vacant(entry) => {
            entry.insert(members);
        }
        Entry::Occupied(mut entry) => entry.get_mut().join(members),
    }
}

impl FoldedGroup {
    fn join(&mut self, other: Self) {
        self.count += other.count;
        if other.place < self.place {
            (self.place, self.head) = (other.place, other.head);
        }
        other.places.into_iter().for_each(|place| self.keep(place));
    }

    fn keep(&mut self, place: u32) {
        if self.places.len() < KEPT_PLACES {
            self.places.push(place);
        } else if let Some(last) = self.places.iter_mut().max()
            && place < *last
        {
            *last = place;
        }
    }

    /// The members without the head; `None` if there are no others.
    fn duplicates(&self, members: &[GroupMember]) -> Option<Duplicates> {
        let count = self.count - 1;
        let mut places = self.places.clone();
        places.retain(|place| *place != self.place);
        places.sort_unstable();
        let ids = places
            .iter()
            .filter_map(|place| members.get(*place as usize));
        (count > 0).then(|| Duplicates {
            count,
            agents: ids.map(|member| member.id).collect(),
        })
    }
}

#[derive(Debug, Default)]
pub(super) struct FoldedGroups(HashMap<u32, FoldedGroup>);

impl FoldedGroups {
    pub fn add(&mut self, segment: usize, matches: FoldedMatches) {
        for (number, mut group) in matches.groups {
            group.head.segment = segment;
            join(&mut self.0, number, group);
        }
    }

    pub fn heads(&self) -> impl Iterator<Item = GroupHead> {
        self.0.values().map(|group| group.head)
    }

    pub fn folded(&self) -> u64 {
        self.0.values().map(|group| group.count - 1).sum()
    }

    pub fn duplicates(&self, groups: &Groups, head: DocAddress) -> Option<Duplicates> {
        let number = groups.find(head)?.group;
        self.0.get(&number)?.duplicates(groups.members(number))
    }
}
