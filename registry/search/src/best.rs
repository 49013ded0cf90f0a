//! The best matches of one segment, by their ranks.

use tantivy::DocId;
use uuid::Uuid;

use super::collect::AgentIds;

/// A match with its rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RankedDocument {
    pub rank: u64,
    pub document: DocId,
}

/// The best `top` matches, in a buffer of twice as many. Ids are only read where ranks are equal: most matches are
/// ordered, or dropped, without.
pub(super) struct BestDocuments {
    top: usize,
    kept: Vec<RankedDocument>,
    worst: Option<(u64, Uuid)>,
}

impl BestDocuments {
    /// Keeps this many matches.
    pub fn new(top: usize) -> Self {
        Self {
            top,
            kept: Vec::with_capacity(top * 2),
            worst: None,
        }
    }

    /// The number of matches to keep.
    pub fn top(&self) -> usize {
        self.top
    }

    /// Adds a match, unless it comes after the best, or not after `after`.
    pub fn offer(
        &mut self,
        rank: u64,
        document: DocId,
        ids: &AgentIds,
        after: Option<(u64, Uuid)>,
    ) {
        let comes_before =
            |(limit, id): (u64, Uuid)| rank < limit || (rank == limit && ids.get(document) < id);
        let comes_after =
            |(limit, id): (u64, Uuid)| rank > limit || (rank == limit && ids.get(document) > id);
        if !self.worst.is_none_or(comes_before) || !after.is_none_or(comes_after) {
            return;
        }
        self.kept.push(RankedDocument { rank, document });
        if self.kept.len() == self.top * 2 {
            self.shrink(ids);
        }
    }

    /// Keeps the best `top` matches, and stores the worst of them as the bound for the next.
    fn shrink(&mut self, ids: &AgentIds) {
        let Some(last) = self
            .top
            .checked_sub(1)
            .filter(|last| *last < self.kept.len())
        else {
            return;
        };
        let (_, worst, _) = self
            .kept
            .select_nth_unstable_by_key(last, |ranked| ranked.rank);
        let rank = worst.rank;
        let mut equal: Vec<(Uuid, DocId)> = Vec::new();
        self.kept.retain(|ranked| {
            if ranked.rank == rank {
                equal.push((ids.get(ranked.document), ranked.document));
            }
            ranked.rank < rank
        });
        equal.sort_unstable();
        equal.truncate(self.top - self.kept.len());
        self.worst = equal.last().map(|(id, _)| (rank, *id));
        let equal = equal.into_iter();
        self.kept
            .extend(equal.map(|(_, document)| RankedDocument { rank, document }));
    }

    /// The best matches, in any order.
    pub fn finish(mut self, ids: &AgentIds) -> Vec<RankedDocument> {
        self.shrink(ids);
        self.kept
    }
}
