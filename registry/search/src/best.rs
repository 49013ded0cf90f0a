//! The best matches of one segment, by their ranks.

use tantivy::DocId;
use uuid::Uuid;

use super::collect::AgentIds;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RankedDocument {
    pub rank: u64,
    pub document: DocId,
}

/// The best `top` matches, in a buffer of twice that size. Ids are read only where ranks are equal, so most matches are
/// ordered or dropped without reading them.
pub(super) struct BestDocuments {
    top: usize,
    kept: Vec<RankedDocument>,
    worst: Option<(u64, Uuid)>,
}

impl BestDocuments {
    pub fn new(top: usize) -> Self {
        Self {
            top,
            kept: Vec::with_capacity(top * 2),
            worst: None,
        }
    }

    pub fn top(&self) -> usize {
        self.top
    }

    /// Adds a match unless it ranks behind the best ones, or does not come after `after`.
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

    /// Keeps the best `top` matches, the worst of which becomes the bound for further ones.
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

    pub fn finish(mut self, ids: &AgentIds) -> Vec<RankedDocument> {
        self.shrink(ids);
        self.kept
    }
}
