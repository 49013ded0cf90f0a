//! Rebuild of the index while the old one serves searches.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tantivy::IndexWriter;
use tantivy::merge_policy::LogMergePolicy;

use super::document::Document;
use super::error::IndexError;
use super::generation::{self, Generation};
use super::stamp::{Stamp, fresh_folder, remove_others};
use super::{Inner, WriterState, lock};

/// If it is dropped before [`finish`](Self::finish), or the process crashes, nothing changes.
pub struct Rebuild {
    inner: Arc<Inner>,
    /// Taken when the new index begins to serve.
    generation: Option<Generation>,
    writer: Option<IndexWriter>,
}

impl std::fmt::Debug for Rebuild {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Rebuild")
            .field(
                "folder",
                &self.generation.as_ref().map(|generation| &generation.name),
            )
            .finish_non_exhaustive()
    }
}

impl Rebuild {
    pub(super) fn begin(inner: Arc<Inner>) -> Result<Self, IndexError> {
        // Recorded changes are kept from now on: the rebuilt state may be older than the serving one.
        lock(&inner.view).overlay.keep(true);
        let mut rebuild = Self {
            inner,
            generation: None,
            writer: None,
        };
        let inner = &rebuild.inner;
        let live = lock(&inner.live);
        let in_use = live.as_ref().map(|live| live.generation.name.as_str());
        let name = fresh_folder(&inner.dir, in_use);
        drop(live);
        let generation = Generation::create(&inner.dir, name)?;
        let writer = generation.writer(inner.config.rebuild_threads, inner.config.rebuild_memory);
        rebuild.generation = Some(generation);
        let writer = rebuild.writer.insert(writer?);
        // It merges fewer large segments: the others are merged once the new index is in use.
        writer.set_merge_policy(Box::new(LogMergePolicy::default()));
        Ok(rebuild)
    }

    /// Each agent must be added only once. After an error, such as a full disk, the rebuild cannot continue.
    pub fn add(&mut self, agents: Vec<Document>) -> Result<(), IndexError> {
        let writer = self.writer.as_ref().ok_or_else(stopped)?;
        generation::add(writer, &self.inner.fields, agents)
    }

    /// Commits the new index, swaps it with the serving one and removes that. Everything added must have been read
    /// after event `seq`, so `seq` is the newest event when reading began: the follower continues after it, and later
    /// changes stay hidden until then. After an error the old index stays in use.
    pub fn finish(mut self, seq: i64) -> Result<(), IndexError> {
        let mut writer = self.writer.take().ok_or_else(stopped)?;
        generation::commit(&mut writer, seq)?;
        // Waiting for the merges gives searches few large segments from the start.
        writer.wait_merging_threads()?;
        let generation = self.generation.as_ref().ok_or_else(stopped)?;
        let searcher = generation.reload()?;

        let inner = Arc::clone(&self.inner);
        let serving = inner.serving(searcher, seq)?;
        let mut live = lock(&inner.live);
        Stamp::of(&generation.name).write(&inner.dir)?;
        let old = std::mem::replace(
            &mut *live,
            self.generation.take().map(|generation| WriterState {
                generation,
                writer: None,
                committed: seq,
            }),
        );
        let mut view = lock(&inner.view);
        view.overlay.keep(false);
        // Together with the swap, so that a caller that reads the counter before a view can attribute damage.
        view.damage = None;
        view.rebuilt += 1;
        let before = view.serve(serving);
        drop(view);
        drop(before);
        inner.failed_commits.store(0, Ordering::Release);
        if let Some(WriterState {
            generation, writer, ..
        }) = old
        {
            drop(writer);
            generation.remove();
        }
        // The folder of an index that could not be opened belongs to no `WriterState`, so it is removed here.
        if let Some(live) = live.as_ref() {
            remove_others(&inner.dir, &live.generation.name);
        }
        Ok(())
    }
}

fn stopped() -> IndexError {
    IndexError::Damaged("the rebuild was stopped by an earlier error".to_owned())
}

impl Drop for Rebuild {
    fn drop(&mut self) {
        drop(self.writer.take());
        if let Some(generation) = self.generation.take() {
            generation.remove();
        }
        let mut view = lock(&self.inner.view);
        view.overlay.keep(false);
        drop(view);
        self.inner.rebuilding.store(false, Ordering::Release);
    }
}
