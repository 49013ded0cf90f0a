//! Duplicate groups in one state of the index: agents with the same key, in the order of preference.
//!
//! An agent's key is computed from the agent alone, so whether two agents are duplicates never depends on a third
//! agent that a caller may not see. The order within a group does not depend on the query either: a copy cannot
//! displace the original by its words.

use std::cmp::Reverse;
use std::sync::{Arc, Mutex};

use tantivy::columnar::Column;
use tantivy::{DocAddress, DocId, Searcher, SegmentOrdinal, SegmentReader};
use uuid::Uuid;

use super::agent_id_reader::AgentIdReader;
use super::error::IndexError;
use super::lock_ignoring_poison;

/// The groups, computed by the first search that needs them.
#[derive(Default)]
pub(super) struct LazyDuplicateGroups(Mutex<Option<Arc<DuplicateGroups>>>);

impl LazyDuplicateGroups {
    /// The groups of the agents of `searcher`, which must always be that of the same state.
    pub fn get_or_compute(&self, searcher: &Searcher) -> Result<Arc<DuplicateGroups>, IndexError> {
        let mut groups = lock_ignoring_poison(&self.0);
        if let Some(groups) = &*groups {
            return Ok(Arc::clone(groups));
        }
        let computed = Arc::new(DuplicateGroups::compute(searcher)?);
        *groups = Some(Arc::clone(&computed));
        Ok(computed)
    }
}

#[derive(Default)]
pub(super) struct DuplicateGroups {
    /// The documents with duplicates of each segment, ascending.
    segments: Vec<Arc<[DuplicateDocument]>>,
    /// The members of all groups, one group after the other, each in order.
    members: Vec<GroupMember>,
    /// Start of each group among the members, and the end of the last one.
    starts: Vec<usize>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct DuplicateDocument {
    pub document: DocId,
    pub group: u32,
    /// Its position in the order of the group, from 0.
    pub position: u32,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct GroupMember {
    pub address: DocAddress,
    pub id: Uuid,
}

/// Order within groups of equal keys: higher preference first, then the agent seen first.
type MemberSortKey = (u64, Reverse<u64>, i64, Uuid);

impl DuplicateGroups {
    /// Finds all groups of two or more agents. Sorting the keys takes 16 bytes per agent.
    pub fn compute(searcher: &Searcher) -> Result<Self, IndexError> {
        let readers = searcher.segment_readers();
        let columns = readers.iter().map(GroupColumns::open);
        let columns = columns.collect::<tantivy::Result<Vec<_>>>()?;
        let mut keys: Vec<(u64, DocAddress)> = Vec::new();
        for (ordinal, (reader, columns)) in (0..).zip(readers.iter().zip(&columns)) {
            for document in reader.doc_ids_alive() {
                if let Some(key) = columns.key_high(document) {
                    keys.push((key, DocAddress::new(ordinal, document)));
                }
            }
        }
        keys.sort_unstable();
        let mut groups = Self::default();
        let mut duplicates_by_segment = vec![Vec::new(); readers.len()];
        for run in keys.chunk_by(|left, right| left.0 == right.0) {
            if run.len() < 2 {
                continue;
            }
            let mut ordered: Vec<(MemberSortKey, DocAddress)> = run
                .iter()
                .map(|(_, address)| {
                    let columns = &columns[address.segment_ord as usize];
                    (columns.member_sort_key(address.doc_id), *address)
                })
                .collect();
            ordered.sort_unstable();
            let equal = ordered.chunk_by(|left, right| left.0.0 == right.0.0);
            for group in equal.filter(|group| group.len() > 1) {
                let number = u32::try_from(groups.starts.len()).unwrap_or(u32::MAX);
                groups.starts.push(groups.members.len());
                for (place, ((.., id), address)) in (0..).zip(group) {
                    duplicates_by_segment[address.segment_ord as usize].push(DuplicateDocument {
                        document: address.doc_id,
                        group: number,
                        position: place,
                    });
                    groups.members.push(GroupMember {
                        address: *address,
                        id: *id,
                    });
                }
            }
        }
        groups.starts.push(groups.members.len());
        for mut duplicates in duplicates_by_segment {
            duplicates.sort_unstable_by_key(|one: &DuplicateDocument| one.document);
            groups.segments.push(duplicates.into());
        }
        Ok(groups)
    }

    pub fn segment_duplicates(&self, segment: SegmentOrdinal) -> Arc<[DuplicateDocument]> {
        let segment = self.segments.get(segment as usize);
        segment.cloned().unwrap_or_default()
    }

    /// The entry of a document; `None` if it has no duplicates.
    pub fn find_duplicate(&self, address: DocAddress) -> Option<DuplicateDocument> {
        let duplicates = self.segments.get(address.segment_ord as usize)?;
        let place = duplicates
            .binary_search_by_key(&address.doc_id, |one| one.document)
            .ok()?;
        duplicates.get(place).copied()
    }

    pub fn members(&self, group: u32) -> &[GroupMember] {
        let group = group as usize;
        let bounds = self.starts.get(group).zip(self.starts.get(group + 1));
        bounds.map_or(&[], |(start, end)| &self.members[*start..*end])
    }
}

struct GroupColumns {
    key_high: Column<u64>,
    key_low: Column<u64>,
    preference: Column<u64>,
    created_at: Column<i64>,
    ids: AgentIdReader,
}

impl GroupColumns {
    fn open(reader: &SegmentReader) -> tantivy::Result<Self> {
        let fast = reader.fast_fields();
        Ok(Self {
            key_high: fast.u64("group_high")?,
            key_low: fast.u64("group_low")?,
            preference: fast.u64("preference")?,
            created_at: fast.i64("created_at")?,
            ids: AgentIdReader::open(reader)?,
        })
    }

    /// The first half of a document's key; `None` if it has no key.
    fn key_high(&self, document: DocId) -> Option<u64> {
        let high = self.key_high.first(document).unwrap_or(0);
        (high != 0 || self.key_low.first(document) != Some(0)).then_some(high)
    }

    /// The sort key of a document among those with the same first half of the key.
    fn member_sort_key(&self, document: DocId) -> MemberSortKey {
        (
            self.key_low.first(document).unwrap_or(0),
            Reverse(self.preference.first(document).unwrap_or(0)),
            self.created_at.first(document).unwrap_or(i64::MAX),
            self.ids.get(document),
        )
    }
}
