//! Commits: changed documents become visible to searches together with the event up to which they are current.

use tantivy::Searcher;
use uuid::Uuid;

use super::document::Document;
use super::error::IndexError;
use super::generation;
use super::{Index, Inner, ViewState, WriterState, damage, lock};

/// How many events that concern no agent cause a commit of their own. Fewer wait for the next commit, since each commit
/// writes several files and discards statistics and groups of duplicates; after a crash they are applied again.
pub(super) const MOST_UNCOMMITTED: i64 = 2_000;

impl Index {
    /// Replaces the documents of agents, removes those of `deletes` (an id in both lists is kept), commits them
    /// together with the event `seq` up to which they are current, and shows them to searches. Of two documents for one
    /// agent the later counts. If no agent has changed, the event may be committed later.
    ///
    /// After an error, such as a full disk, the last committed state stays in use, and the same call may be repeated:
    /// applying the same changes again has no effect.
    pub fn apply(
        &self,
        upserts: Vec<Document>,
        deletes: &[Uuid],
        seq: i64,
    ) -> Result<(), IndexError> {
        let rebuilt = self.rebuilt();
        let outcome = damage::guarded(|| self.commit(upserts, deletes, seq, MOST_UNCOMMITTED));
        self.note_commit(&outcome, rebuilt);
        outcome
    }

    pub fn commit_applied(&self) -> Result<(), IndexError> {
        damage::guarded(|| self.commit(Vec::new(), &[], self.applied_seq(), 1))
    }

    /// Commits these changes; without any, only that many events.
    fn commit(
        &self,
        upserts: Vec<Document>,
        deletes: &[Uuid],
        seq: i64,
        events: i64,
    ) -> Result<(), IndexError> {
        let inner = &*self.0;
        let mut live = lock(&inner.live);
        let Some(state) = live.as_mut() else {
            return Err(inner.needs_rebuild());
        };
        let gone = || IndexError::NeedsRebuild {
            reason: "its folder went away".to_owned(),
        };
        if !state.generation.exists() {
            state.writer = None;
            return Err(gone());
        }
        let seq = seq.max(self.applied_seq());
        let is_unchanged = upserts.is_empty() && deletes.is_empty();
        if is_unchanged && seq.saturating_sub(state.committed) < events {
            lock(&inner.view).reach(seq);
            return Ok(());
        }
        let result = inner.write(state, upserts, deletes, seq);
        if result.is_err() {
            // A failed writer may have stopped for good. A new one has no uncommitted changes.
            state.writer = None;
            if !state.generation.exists() {
                return Err(gone());
            }
        }
        let searcher = result?;
        state.committed = seq;
        inner.publish(inner.serving(searcher, seq)?);
        Ok(())
    }
}

impl Inner {
    fn write(
        &self,
        state: &mut WriterState,
        upserts: Vec<Document>,
        deletes: &[Uuid],
        seq: i64,
    ) -> Result<Searcher, IndexError> {
        let mut writer = match state.writer.take() {
            Some(writer) => writer,
            None => state.generation.writer(1, self.config.writer_memory)?,
        };
        generation::replace(&writer, &self.fields, upserts, deletes)?;
        generation::commit(&mut writer, seq)?;
        state.writer = Some(writer);
        state.generation.reload()
    }
}

impl ViewState {
    /// Marks the state in use as current up to this event, because no event since has changed a document.
    fn reach(&mut self, applied: i64) {
        if let Some(serving) = &mut self.serving {
            serving.applied = applied;
        }
        self.overlay.follow(applied);
    }
}
