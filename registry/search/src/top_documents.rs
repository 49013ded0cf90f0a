//! Top documents: the best matches of one segment by rank.

use tantivy::DocId;
use uuid::Uuid;

use super::agent_id_reader::AgentIdReader;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RankedDocument {
    pub rank: u64,
    pub document: DocId,
    /// Whether the match does not fit the query.
    pub weak: bool,
}

/// The best `limit` matches, in a buffer of twice that size. Ids are only read for equal ranks, so most matches are
/// ordered or dropped without them.
pub(super) struct TopDocuments {
    limit: usize,
    candidates: Vec<RankedDocument>,
    worst: Option<(u64, Uuid)>,
}

impl TopDocuments {
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            candidates: Vec::with_capacity(limit * 2),
            worst: None,
        }
    }

    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Adds a match, unless it ranks behind the best ones or does not come after `after`.
    pub fn offer(
        &mut self,
        ranked: RankedDocument,
        ids: &AgentIdReader,
        after: Option<(u64, Uuid)>,
    ) {
        let RankedDocument { rank, document, .. } = ranked;
        let comes_before =
            |(limit, id): (u64, Uuid)| rank < limit || (rank == limit && ids.get(document) < id);
        let comes_after =
            |(limit, id): (u64, Uuid)| rank > limit || (rank == limit && ids.get(document) > id);
        if !self.worst.is_none_or(comes_before) || !after.is_none_or(comes_after) {
            return;
        }
        self.candidates.push(ranked);
        if self.candidates.len() == self.limit * 2 {
            self.shrink(ids);
        }
    }

    /// Keeps the best `limit` matches; the worst of them becomes the bound for further ones.
    fn shrink(&mut self, ids: &AgentIdReader) {
        let Some(last) = self
            .limit
            .checked_sub(1)
            .filter(|last| *last < self.candidates.len())
        else {
            return;
        };
        let (_, worst, _) = self
            .candidates
            .select_nth_unstable_by_key(last, |ranked| ranked.rank);
        let rank = worst.rank;
        let mut ties: Vec<(Uuid, RankedDocument)> = Vec::new();
        self.candidates.retain(|ranked| {
            if ranked.rank == rank {
                ties.push((ids.get(ranked.document), *ranked));
            }
            ranked.rank < rank
        });
        ties.sort_unstable_by_key(|(id, _)| *id);
        ties.truncate(self.limit - self.candidates.len());
        self.worst = ties.last().map(|(id, _)| (rank, *id));
        self.candidates
            .extend(ties.into_iter().map(|(_, ranked)| ranked));
    }

    pub fn finish(mut self, ids: &AgentIdReader) -> Vec<RankedDocument> {
        self.shrink(ids);
        self.candidates
    }
}
