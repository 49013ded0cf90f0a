//! The overlay: agents that changed after the state of the searcher.
//!
//! A change that hides an agent is acknowledged only when this process no longer shows the agent. So each writer notes
//! its changes in the overlay first, and every search leaves out of hits, totals, facets and suggestions the agents
//! that the caller may no longer see. Agents that are still visible are shown as they were until the index has caught
//! up.

use std::collections::HashMap;
use std::sync::Arc;

use a2a_registry_domain::facet::Facet;
use tantivy::index::SegmentId;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, DocSet, Searcher, SegmentReader, TERMINATED};
use uuid::Uuid;

use super::filter::LISTED_LIFECYCLES;
use super::schema::IndexFields;

/// Documents of changed agents by segment, each with the labels of which a caller must hold one to still see it.
pub(super) type OverlayExclusions = HashMap<SegmentId, Vec<(DocId, Arc<[String]>)>>;

/// A changed agent, with its new visibility.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedAgent {
    pub id: Uuid,
    /// Labels of which a caller must hold one.
    pub visible_to: Vec<String>,
    /// Whether searches without a filter find the agent.
    pub listed: bool,
}

impl ChangedAgent {
    /// An agent that is no longer visible to anybody.
    pub fn hidden(id: Uuid) -> Self {
        Self {
            id,
            visible_to: Vec::new(),
            listed: false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct PendingVisibility {
    seq: i64,
    visible_to: Arc<[String]>,
    listed: bool,
}

/// Changed agents, and their documents in the current searcher.
#[derive(Debug)]
pub(super) struct PendingChangesOverlay {
    changed: HashMap<Uuid, PendingVisibility>,
    /// Changed agents whose documents have not been looked up.
    unresolved: Vec<Uuid>,
    excluded: Arc<OverlayExclusions>,
    version: u64,
    /// Number of changed agents at which the overlay stops recording changes.
    limit: usize,
    /// Whether applied changes are kept too, as during a rebuild: the state it ends with may be older than the serving
    /// one.
    keep_applied: bool,
    /// Event of the newest change that was not recorded for want of room.
    newest_lost_seq: Option<i64>,
}

impl PendingChangesOverlay {
    pub fn new(limit: usize) -> Self {
        Self {
            changed: HashMap::new(),
            unresolved: Vec::new(),
            excluded: Arc::default(),
            version: 0,
            limit: limit.max(1),
            keep_applied: false,
            newest_lost_seq: None,
        }
    }

    /// Records that these agents changed with event `seq`; `applied` is the last event in the searcher.
    pub fn record(&mut self, agents: &[ChangedAgent], seq: i64, applied_seq: i64) {
        if agents.is_empty() || (seq <= applied_seq && !self.keep_applied) {
            return;
        }
        self.version += 1;
        let mut resolve_again = false;
        for agent in agents {
            let change = PendingVisibility {
                seq,
                visible_to: agent.visible_to.as_slice().into(),
                listed: agent.listed,
            };
            if let Some(existing) = self.changed.get_mut(&agent.id) {
                // Changes may be noted in another order than they were written.
                if seq < existing.seq {
                    continue;
                }
                if existing.seq <= applied_seq && seq > applied_seq {
                    self.unresolved.push(agent.id);
                } else if (&existing.visible_to, existing.listed)
                    != (&change.visible_to, change.listed)
                {
                    resolve_again = true;
                }
                *existing = change;
            } else if self.changed.len() >= self.limit {
                self.newest_lost_seq = self.newest_lost_seq.max(Some(seq));
            } else {
                self.changed.insert(agent.id, change);
                if seq > applied_seq {
                    self.unresolved.push(agent.id);
                }
            }
        }
        if resolve_again {
            self.mark_unresolved(applied_seq);
        }
    }

    /// Adapts to a new searcher, which has applied all events up to `applied`.
    pub fn advance(&mut self, applied_seq: i64) {
        if !self.keep_applied {
            self.changed.retain(|_, change| change.seq > applied_seq);
            if self.newest_lost_seq.is_some_and(|lost| lost <= applied_seq) {
                self.newest_lost_seq = None;
            }
        }
        self.mark_unresolved(applied_seq);
        self.version += 1;
    }

    /// Marks the documents of all unapplied changes to be looked up again.
    fn mark_unresolved(&mut self, applied_seq: i64) {
        self.excluded = Arc::default();
        let waiting = self.changed.iter();
        self.unresolved = waiting
            .filter(|(_, change)| change.seq > applied_seq)
            .map(|(id, _)| *id)
            .collect();
    }

    /// Sets whether changes that are applied already are kept.
    pub fn set_keep_applied(&mut self, keep: bool) {
        self.keep_applied = keep;
    }

    /// Version of the overlay, which rises with every change.
    pub fn version(&self) -> u64 {
        self.version
    }

    pub fn len(&self) -> usize {
        self.changed.len()
    }

    /// Whether changes newer than `applied` were lost for want of room.
    pub fn has_lost_changes(&self, applied_seq: i64) -> bool {
        self.newest_lost_seq.is_some_and(|lost| lost > applied_seq)
    }

    /// Documents of this searcher that may have to be left out. Only agents noted since the last call are looked up.
    pub fn resolve_exclusions(
        &mut self,
        searcher: &Searcher,
        fields: &IndexFields,
    ) -> tantivy::Result<Arc<OverlayExclusions>> {
        if self.unresolved.is_empty() {
            return Ok(Arc::clone(&self.excluded));
        }
        let mut exclusions = (*self.excluded).clone();
        for reader in searcher.segment_readers() {
            let terms = fields.keys.inverted_index(reader)?;
            for id in &self.unresolved {
                let Some(mut postings) =
                    terms.read_postings(&fields.id_term(*id), IndexRecordOption::Basic)?
                else {
                    continue;
                };
                let Some(change) = self.changed.get(id) else {
                    continue;
                };
                let documents = exclusions.entry(reader.segment_id()).or_default();
                while postings.doc() != TERMINATED {
                    // An agent that is no longer listed is hidden from everybody: until the index catches up, searches
                    // would still find it among the listed ones.
                    let hidden = !change.listed && is_listed(reader, postings.doc())?;
                    let still_seen_by = match hidden {
                        true => Arc::default(),
                        false => Arc::clone(&change.visible_to),
                    };
                    documents.push((postings.doc(), still_seen_by));
                    postings.advance();
                }
            }
        }
        self.unresolved.clear();
        self.excluded = Arc::new(exclusions);
        Ok(Arc::clone(&self.excluded))
    }
}

fn is_listed(reader: &SegmentReader, document: DocId) -> tantivy::Result<bool> {
    let column = reader.fast_fields().str(Facet::Lifecycle.as_str())?;
    let Some(column) = column else {
        return Ok(false);
    };
    let mut lifecycle = String::new();
    Ok(match column.ords().first(document) {
        Some(ordinal) => {
            column.ord_to_str(ordinal, &mut lifecycle)?
                && LISTED_LIFECYCLES.contains(&lifecycle.as_str())
        }
        None => false,
    })
}
