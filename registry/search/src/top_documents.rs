//! Top documents: the best matches of one segment by rank.

use tantivy::DocId;

use super::request::TieKey;
use super::tie_reader::TieReader;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RankedDocument {
    pub rank: u64,
    pub document: DocId,
    /// Whether the match does not fit the query.
    pub weak: bool,
}

/// The best `limit` matches, in a buffer of twice that size. What breaks ties is only read for equal ranks, so most
/// matches are ordered or dropped without it.
pub(super) struct TopDocuments {
    limit: usize,
    candidates: Vec<RankedDocument>,
    worst: Option<(u64, TieKey)>,
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
        ties: &TieReader,
        after: Option<(u64, TieKey)>,
    ) {
        let RankedDocument { rank, document, .. } = ranked;
        let comes_before = |(limit, key): (u64, TieKey)| {
            rank < limit || (rank == limit && ties.get(document) < key)
        };
        let comes_after = |(limit, key): (u64, TieKey)| {
            rank > limit || (rank == limit && ties.get(document) > key)
        };
        if !self.worst.is_none_or(comes_before) || !after.is_none_or(comes_after) {
            return;
        }
        self.candidates.push(ranked);
        if self.candidates.len() == self.limit * 2 {
            self.shrink(ties);
        }
    }

    /// Keeps the best `limit` matches; the worst of them becomes the bound for further ones.
    fn shrink(&mut self, ties: &TieReader) {
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
        let mut tied: Vec<(TieKey, RankedDocument)> = Vec::new();
        self.candidates.retain(|ranked| {
            if ranked.rank == rank {
                tied.push((ties.get(ranked.document), *ranked));
            }
            ranked.rank < rank
        });
        tied.sort_unstable_by_key(|(key, _)| *key);
        tied.truncate(self.limit - self.candidates.len());
        self.worst = tied.last().map(|(key, _)| (rank, *key));
        self.candidates
            .extend(tied.into_iter().map(|(_, ranked)| ranked));
    }

    pub fn finish(mut self, ties: &TieReader) -> Vec<RankedDocument> {
        self.shrink(ties);
        self.candidates
    }
}
