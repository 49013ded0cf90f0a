//! The overlay: agents that changed since the searcher's state.
//!
//! An act is answered only when this process can no longer show what it forbids. So whoever writes tells the
//! overlay first, and every search leaves out of hits, totals, facets and suggestions what the caller may not see any
//! more. What is still allowed is shown as it was until the index has caught up.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

use tantivy::index::SegmentId;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, DocSet, Searcher, SegmentReader, TERMINATED};
use uuid::Uuid;

use super::filter::LISTED;
use super::request::FacetName;
use super::schema::Fields;

/// How many times [`overlay_limit`](super::IndexConfig::overlay_limit) the overlay holds before it gives up.
const HARD_FACTOR: usize = 16;

/// The documents of agents that changed, by segment, and the labels of which a caller must hold one to see each of them
/// still.
pub(super) type Excluded = HashMap<SegmentId, Vec<(DocId, Arc<[String]>)>>;

/// An agent that changed, and who may see it since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedAgent {
    /// Which one.
    pub id: Uuid,
    /// The labels of which a caller must hold one.
    pub visible_to: Vec<String>,
    /// Whether searches without a filter find it.
    pub listed: bool,
}

impl ChangedAgent {
    /// An agent that is no longer visible to anybody.
    pub fn forbidden(id: Uuid) -> Self {
        Self {
            id,
            visible_to: Vec::new(),
            listed: false,
        }
    }
}

/// Visibility of an agent that changed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct AgentChange {
    seq: i64,
    visible_to: Arc<[String]>,
    listed: bool,
}

/// The changed agents, and where they stand in the current searcher.
#[derive(Debug)]
pub(super) struct Overlay {
    changed: HashMap<Uuid, AgentChange>,
    /// Changed agents whose documents are not looked up yet.
    unresolved: Vec<Uuid>,
    excluded: Arc<Excluded>,
    /// Digest of all that is excluded.
    digest: u64,
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
            digest: 0,
            version: 0,
            limit: limit.max(1),
            keep: false,
            lost: None,
        }
    }

    /// Notes that these agents changed with event `seq`; `applied` is what the searcher has.
    pub fn note(&mut self, agents: &[ChangedAgent], seq: i64, applied: i64) {
        if agents.is_empty() || (seq <= applied && !self.keep) {
            return;
        }
        self.version += 1;
        let mut resolve_again = false;
        for agent in agents {
            let change = AgentChange {
                seq,
                visible_to: agent.visible_to.as_slice().into(),
                listed: agent.listed,
            };
            if let Some(known) = self.changed.get_mut(&agent.id) {
                // Acts may be told of in another order than they were written in.
                if seq < known.seq {
                    continue;
                }
                if known.seq <= applied && seq > applied {
                    self.unresolved.push(agent.id);
                } else if (&known.visible_to, known.listed) != (&change.visible_to, change.listed) {
                    resolve_again = true;
                }
                *known = change;
            } else if self.changed.len() >= self.limit.saturating_mul(HARD_FACTOR) {
                self.lost = self.lost.max(Some(seq));
            } else {
                self.changed.insert(agent.id, change);
                if seq > applied {
                    self.unresolved.push(agent.id);
                }
            }
        }
        if resolve_again {
            self.begin_again(applied);
        }
    }

    /// Follows a new searcher that has applied everything up to `applied`.
    pub fn follow(&mut self, applied: i64) {
        if !self.keep {
            self.changed.retain(|_, change| change.seq > applied);
            if self.lost.is_some_and(|lost| lost <= applied) {
                self.lost = None;
            }
        }
        self.begin_again(applied);
        self.version += 1;
    }

    /// Has every agent that the searcher lacks looked up again.
    fn begin_again(&mut self, applied: i64) {
        self.excluded = Arc::default();
        self.digest = 0;
        let waiting = self.changed.iter();
        self.unresolved = waiting
            .filter(|(_, change)| change.seq > applied)
            .map(|(id, _)| *id)
            .collect();
    }

    /// Keeps or forgets what is applied already.
    pub fn keep(&mut self, keep: bool) {
        self.keep = keep;
    }

    /// How often the overlay changed.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// A number that stands for the agents left out and for who still sees each, the same in every process that leaves
    /// out the same ones; as [`excluded`](Self::excluded) has last worked them out.
    pub fn digest(&self) -> u64 {
        self.digest
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

    /// The documents of this searcher that may have to be left out. Only agents noted since the last call are looked
    /// up.
    pub fn excluded(
        &mut self,
        searcher: &Searcher,
        fields: &Fields,
    ) -> tantivy::Result<Arc<Excluded>> {
        if self.unresolved.is_empty() {
            return Ok(Arc::clone(&self.excluded));
        }
        let mut excluded = (*self.excluded).clone();
        let mut digest = self.digest;
        for reader in searcher.segment_readers() {
            let terms = reader.inverted_index(fields.id)?;
            for id in &self.unresolved {
                let Some(mut postings) =
                    terms.read_postings(&fields.id_term(*id), IndexRecordOption::Basic)?
                else {
                    continue;
                };
                let Some(change) = self.changed.get(id) else {
                    continue;
                };
                let documents = excluded.entry(reader.segment_id()).or_default();
                while postings.doc() != TERMINATED {
                    // Whoever could see it beside the listed ones sees it no longer as one of them.
                    let hidden = !change.listed && is_listed(reader, postings.doc())?;
                    let still_seen_by = match hidden {
                        true => Arc::default(),
                        false => Arc::clone(&change.visible_to),
                    };
                    // What was deleted is found by nobody, and how long it stays depends on the process.
                    if reader
                        .alive_bitset()
                        .is_none_or(|alive| alive.is_alive(postings.doc()))
                    {
                        let one = BuildHasherDefault::<DefaultHasher>::default();
                        digest ^= one.hash_one((id, &still_seen_by));
                    }
                    documents.push((postings.doc(), still_seen_by));
                    postings.advance();
                }
            }
        }
        self.unresolved.clear();
        self.excluded = Arc::new(excluded);
        self.digest = digest;
        Ok(Arc::clone(&self.excluded))
    }
}

/// Whether a document is of an agent that was listed.
fn is_listed(reader: &SegmentReader, document: DocId) -> tantivy::Result<bool> {
    let column = reader.fast_fields().str(FacetName::Lifecycle.as_str())?;
    let Some(column) = column else {
        return Ok(false);
    };
    let mut lifecycle = String::new();
    Ok(match column.ords().first(document) {
        Some(ordinal) => {
            column.ord_to_str(ordinal, &mut lifecycle)? && LISTED.contains(&lifecycle.as_str())
        }
        None => false,
    })
}
