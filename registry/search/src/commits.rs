//! Commits: make changed documents visible to searches, together with the event up to which they are current.

use tantivy::Searcher;
use uuid::Uuid;

use super::document::AgentDocument;
use super::error::IndexError;
use super::index_folder;
use super::{Index, IndexInner, ServingState, WriterState, damage, lock_ignoring_poison};

/// Number of events without changed agents that cause a commit of their own. Fewer wait for the next commit, because
/// each commit writes several files and discards statistics and duplicate groups; after a crash they are applied
/// again.
pub(super) const MAX_UNCOMMITTED_EVENTS: i64 = 2_000;

impl Index {
    /// Replaces the documents of agents, removes those of `deletes` (an id in both lists is kept), commits them
    /// together with the event `seq` up to which they are current, and shows them to searches. The later of two
    /// documents for one agent counts. If no agent has changed, the event may be committed later.
    ///
    /// After an error, such as a full disk, the last committed state stays in use, and the same call can be repeated:
    /// applying the same changes again has no effect.
    pub fn apply_changes(
        &self,
        upserts: Vec<AgentDocument>,
        deletes: &[Uuid],
        seq: i64,
    ) -> Result<(), IndexError> {
        let rebuilt = self.rebuild_count();
        let changed = upserts.len() + deletes.len();
        let outcome = damage::catch_panics(|| {
            self.commit_changes(upserts, deletes, seq, MAX_UNCOMMITTED_EVENTS)
        });
        self.record_commit_result(&outcome, rebuilt);
        if outcome.is_ok() {
            self.save_rule_labels_if_needed(changed);
        }
        outcome
    }

    pub fn commit_applied_seq(&self) -> Result<(), IndexError> {
        damage::catch_panics(|| self.commit_changes(Vec::new(), &[], self.applied_seq(), 1))
    }

    /// Commits these changes; without any, commits only if at least `min_events` events are waiting.
    fn commit_changes(
        &self,
        upserts: Vec<AgentDocument>,
        deletes: &[Uuid],
        seq: i64,
        min_events: i64,
    ) -> Result<(), IndexError> {
        let inner = &*self.0;
        let mut writer_state = lock_ignoring_poison(&inner.writer_state);
        let Some(state) = writer_state.as_mut() else {
            return Err(inner.needs_rebuild_error());
        };
        let gone = || IndexError::NeedsRebuild {
            reason: "its folder was removed".to_owned(),
        };
        if !state.folder.exists() {
            state.writer = None;
            return Err(gone());
        }
        let seq = seq.max(self.applied_seq());
        let is_unchanged = upserts.is_empty() && deletes.is_empty();
        if is_unchanged && seq.saturating_sub(state.committed_seq) < min_events {
            lock_ignoring_poison(&inner.serving_state).advance_applied_seq(seq);
            return Ok(());
        }
        let mut rule_labels = inner.served_rule_labels();
        for id in deletes {
            rule_labels.replace_agent(*id, &[]);
        }
        for agent in &upserts {
            rule_labels.replace_agent(agent.id, &agent.rule_labels);
        }
        let result = inner.write_and_commit_changes(state, upserts, deletes, seq);
        if result.is_err() {
            // A failed writer may have stopped permanently. A new one has no uncommitted changes.
            state.writer = None;
            if !state.folder.exists() {
                return Err(gone());
            }
        }
        let searcher = result?;
        state.committed_seq = seq;
        inner.replace_served(inner.build_served_index(searcher, seq, rule_labels)?);
        Ok(())
    }
}

impl IndexInner {
    fn write_and_commit_changes(
        &self,
        state: &mut WriterState,
        upserts: Vec<AgentDocument>,
        deletes: &[Uuid],
        seq: i64,
    ) -> Result<Searcher, IndexError> {
        let mut writer = match state.writer.take() {
            Some(writer) => writer,
            None => state.folder.new_writer(1, self.config.writer_memory)?,
        };
        index_folder::replace_agents(&writer, &self.fields, upserts, deletes)?;
        index_folder::commit_with_seq(&mut writer, seq)?;
        state.writer = Some(writer);
        state.folder.reload_searcher()
    }
}

impl ServingState {
    /// Marks the current state as up to date with this event, because no later event changed a document.
    fn advance_applied_seq(&mut self, applied_seq: i64) {
        if let Some(serving) = &mut self.served {
            serving.applied_seq = applied_seq;
        }
        self.overlay.advance_to_seq(applied_seq);
    }
}
