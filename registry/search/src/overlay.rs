//! The overlay: agents that changed after the searcher's state.
//!
//! A change that hides an agent is acknowledged only when this process no longer shows the agent. So each writer first
//! records its changes in the overlay, and every search excludes from hits, totals, facets and suggestions the agents
//! that the caller may no longer see. Agents that stay visible are shown in their old state until the index has caught
//! up.

use std::collections::HashMap;
use std::sync::Arc;

use a2a_registry_domain::facet::Facet;
use tantivy::index::SegmentId;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, DocSet, Searcher, SegmentReader, TERMINATED};
use uuid::Uuid;

use super::request::LISTED_LIFECYCLES;
use super::schema::IndexFields;

/// Documents of changed agents by segment, each with the labels of which a caller must have one to still see it.
pub(super) type OverlayExclusions = HashMap<SegmentId, Vec<(DocId, Arc<[String]>)>>;

/// A changed agent, with its new visibility.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedAgent {
    pub id: Uuid,
    /// Labels of which a caller must have one.
    pub visible_to: Vec<String>,
    /// Whether searches without a filter find the agent.
    pub listed: bool,
}

impl ChangedAgent {
    /// A change that hides an agent from all callers.
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
    /// Whether applied changes are kept too, as during a rebuild: the rebuilt state may be older than the serving one.
    keep_applied: bool,
    /// Event of the newest change that was not recorded because the overlay was full.
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

    /// Records that these agents changed with event `seq`; `applied_seq` is the last event in the searcher.
    pub fn record_changes(&mut self, agents: &[ChangedAgent], seq: i64, applied_seq: i64) {
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
                // Changes may be recorded in another order than they were written.
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
            self.mark_all_unresolved(applied_seq);
        }
    }

    /// Adapts to a new searcher that has applied all events up to `applied_seq`.
    pub fn advance_to_seq(&mut self, applied_seq: i64) {
        if !self.keep_applied {
            self.changed.retain(|_, change| change.seq > applied_seq);
            if self.newest_lost_seq.is_some_and(|lost| lost <= applied_seq) {
                self.newest_lost_seq = None;
            }
        }
        self.mark_all_unresolved(applied_seq);
        self.version += 1;
    }

    /// Marks the documents of all unapplied changes for another lookup.
    fn mark_all_unresolved(&mut self, applied_seq: i64) {
        self.excluded = Arc::default();
        let waiting = self.changed.iter();
        self.unresolved = waiting
            .filter(|(_, change)| change.seq > applied_seq)
            .map(|(id, _)| *id)
            .collect();
    }

    /// Sets whether applied changes are kept.
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

    /// Whether changes newer than `applied_seq` were lost because the overlay was full.
    pub fn has_lost_changes(&self, applied_seq: i64) -> bool {
        self.newest_lost_seq.is_some_and(|lost| lost > applied_seq)
    }

    /// Documents of this searcher that may have to be excluded. Only agents recorded since the last call are looked
    /// up.
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
                    // An agent that is no longer listed is hidden from all callers: until the index catches up,
                    // searches would still find it among the listed ones.
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
