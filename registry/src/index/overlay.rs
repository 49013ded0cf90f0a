//! The overlay: agents that changed since the searcher's state, hidden until the index has caught up.
//!
//! An act is answered only when this process can no longer show what it forbids. So whoever writes tells the
//! overlay first, and every search leaves these agents out of hits, totals, facets and suggestions.

use std::collections::HashMap;
use std::sync::Arc;

use tantivy::index::SegmentId;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, DocSet, Searcher, TERMINATED};
use uuid::Uuid;

use super::schema::Fields;

/// How many times [`overlay_limit`](super::IndexConfig::overlay_limit) the overlay holds before it gives up.
const HARD_FACTOR: usize = 16;

/// The documents to leave out, by segment.
pub(super) type Excluded = HashMap<SegmentId, Vec<DocId>>;

/// The changed agents, and where they stand in the current searcher.
#[derive(Debug)]
pub(super) struct Overlay {
    changed: HashMap<Uuid, i64>,
    /// Changed agents whose documents are not looked up yet.
    unresolved: Vec<Uuid>,
    excluded: Arc<Excluded>,
    version: u64,
    limit: usize,
    /// While a rebuild runs nothing is forgotten: what it finishes with may be older than what serves now.
    keep: bool,
    /// The newest change that had no room.
    lost: Option<i64>,
}

impl Overlay {
    /// An empty overlay that signals beyond `limit` agents.
    pub fn new(limit: usize) -> Self {
        Self {
            changed: HashMap::new(),
            unresolved: Vec::new(),
            excluded: Arc::default(),
            version: 0,
            limit: limit.max(1),
            keep: false,
            lost: None,
        }
    }

    /// Notes that these agents changed with event `seq`; `applied` is what the searcher has.
    pub fn note(&mut self, ids: &[Uuid], seq: i64, applied: i64) {
        if ids.is_empty() || (seq <= applied && !self.keep) {
            return;
        }
        self.version += 1;
        for id in ids {
            if let Some(known) = self.changed.get_mut(id) {
                if *known <= applied && seq > applied {
                    self.unresolved.push(*id);
                }
                *known = seq.max(*known);
            } else if self.changed.len() >= self.limit.saturating_mul(HARD_FACTOR) {
                self.lost = self.lost.max(Some(seq));
            } else {
                self.changed.insert(*id, seq);
                if seq > applied {
                    self.unresolved.push(*id);
                }
            }
        }
    }

    /// Follows a new searcher that has applied everything up to `applied`.
    pub fn follow(&mut self, applied: i64) {
        if !self.keep {
            self.changed.retain(|_, seq| *seq > applied);
            if self.lost.is_some_and(|lost| lost <= applied) {
                self.lost = None;
            }
        }
        self.excluded = Arc::default();
        self.unresolved = self
            .changed
            .iter()
            .filter(|(_, seq)| **seq > applied)
            .map(|(id, _)| *id)
            .collect();
        self.version += 1;
    }

    /// Keeps or forgets what is applied already.
    pub fn keep(&mut self, keep: bool) {
        self.keep = keep;
    }

    /// How often the overlay changed.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// How many agents it holds.
    pub fn len(&self) -> usize {
        self.changed.len()
    }

    /// Whether a commit is due because of its size.
    pub fn is_full(&self) -> bool {
        self.changed.len() >= self.limit
    }

    /// Whether changes newer than `applied` were lost for want of room.
    pub fn is_blind(&self, applied: i64) -> bool {
        self.lost.is_some_and(|lost| lost > applied)
    }

    /// The documents to leave out of this searcher. Only agents noted since the last call are looked up.
    pub fn excluded(
        &mut self,
        searcher: &Searcher,
        fields: &Fields,
    ) -> tantivy::Result<Arc<Excluded>> {
        if self.unresolved.is_empty() {
            return Ok(Arc::clone(&self.excluded));
        }
        let excluded = Arc::make_mut(&mut self.excluded);
        for reader in searcher.segment_readers() {
            let terms = reader.inverted_index(fields.id)?;
            for id in &self.unresolved {
                let Some(mut postings) =
                    terms.read_postings(&fields.id_term(*id), IndexRecordOption::Basic)?
                else {
                    continue;
                };
                let documents = excluded.entry(reader.segment_id()).or_default();
                while postings.doc() != TERMINATED {
                    documents.push(postings.doc());
                    postings.advance();
                }
            }
        }
        self.unresolved.clear();
        Ok(Arc::clone(&self.excluded))
    }
}
