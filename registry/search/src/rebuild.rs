//! Rebuilds the index while the old one serves searches.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tantivy::IndexWriter;
use tantivy::merge_policy::LogMergePolicy;

use super::document::AgentDocument;
use super::error::IndexError;
use super::index_folder::{self, IndexFolder};
use super::index_manifest::{IndexManifest, remove_stale_folders, unused_folder_name};
use super::rule_label_file::write_rule_labels;
use super::rule_labels::RuleLabels;
use super::{IndexInner, WriterState, lock_ignoring_poison};

/// A running rebuild. If it is dropped before [`finish`](Self::finish), or the process crashes, nothing changes.
pub struct IndexRebuild {
    inner: Arc<IndexInner>,
    /// The folder of the new index, until that serves searches.
    folder: Option<IndexFolder>,
    writer: Option<IndexWriter>,
    rule_labels: RuleLabels,
}

impl std::fmt::Debug for IndexRebuild {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Rebuild")
            .field(
                "folder",
                &self.folder.as_ref().map(|generation| &generation.name),
            )
            .finish_non_exhaustive()
    }
}

impl IndexRebuild {
    pub(super) fn start(inner: Arc<IndexInner>) -> Result<Self, IndexError> {
        // Keep recorded changes from now on: the rebuilt state may be older than the serving one.
        lock_ignoring_poison(&inner.serving_state)
            .overlay
            .set_keep_applied(true);
        let mut rebuild = Self {
            inner,
            folder: None,
            writer: None,
            rule_labels: RuleLabels::default(),
        };
        let inner = &rebuild.inner;
        let writer_state = lock_ignoring_poison(&inner.writer_state);
        let in_use = writer_state.as_ref().map(|live| live.folder.name.as_str());
        let name = unused_folder_name(&inner.dir, in_use);
        drop(writer_state);
        let folder = IndexFolder::create(&inner.dir, name)?;
        let writer = folder.new_writer(inner.config.rebuild_threads, inner.config.rebuild_memory);
        rebuild.folder = Some(folder);
        let writer = rebuild.writer.insert(writer?);
        // This policy merges fewer large segments: the rest are merged once the new index is in use.
        writer.set_merge_policy(Box::new(LogMergePolicy::default()));
        Ok(rebuild)
    }

    /// Adds agents, each only once. After an error, such as a full disk, the rebuild cannot continue.
    pub fn add_agents(&mut self, agents: Vec<AgentDocument>) -> Result<(), IndexError> {
        let writer = self.writer.as_ref().ok_or_else(rebuild_stopped_error)?;
        for agent in &agents {
            self.rule_labels.replace_agent(agent.id, &agent.rule_labels);
        }
        index_folder::add_agents(writer, &self.inner.fields, agents)
    }

    /// Commits the new index, swaps it with the serving one and removes the old one. `seq` must be the newest event
    /// when reading began, so that everything added was read after it: the follower continues after `seq`, and later
    /// changes stay hidden until then. After an error the old index stays in use.
    pub fn finish(mut self, seq: i64) -> Result<(), IndexError> {
        let mut writer = self.writer.take().ok_or_else(rebuild_stopped_error)?;
        index_folder::commit_with_seq(&mut writer, seq)?;
        // Wait for the merges, so that searches start with few large segments.
        writer.wait_merging_threads()?;
        let folder = self.folder.as_ref().ok_or_else(rebuild_stopped_error)?;
        let searcher = folder.reload_searcher()?;
        let rule_labels = std::mem::take(&mut self.rule_labels);
        if !rule_labels.is_empty() {
            write_rule_labels(folder.path(), &rule_labels, seq)?;
        }

        let inner = Arc::clone(&self.inner);
        let served = inner.build_served_index(searcher, seq, rule_labels)?;
        let mut writer_state = lock_ignoring_poison(&inner.writer_state);
        IndexManifest::for_folder(&folder.name).write(&inner.dir)?;
        let replaced = std::mem::replace(
            &mut *writer_state,
            self.folder.take().map(|generation| WriterState {
                folder: generation,
                writer: None,
                committed_seq: seq,
            }),
        );
        let mut serving_state = lock_ignoring_poison(&inner.serving_state);
        serving_state.overlay.set_keep_applied(false);
        // Updated together with the swap, so that a caller that reads the counter before a view can attribute damage.
        serving_state.damage = None;
        serving_state.rebuild_count += 1;
        serving_state.restored_rule_labels_seq = None;
        let before = serving_state.replace_served(served);
        drop(serving_state);
        drop(before);
        inner.failed_commits.store(0, Ordering::Release);
        if let Some(WriterState {
            folder: generation,
            writer,
            ..
        }) = replaced
        {
            drop(writer);
            generation.remove();
        }
        // The folder of an index that could not be opened belongs to no `WriterState`, so it is removed here.
        if let Some(live) = writer_state.as_ref() {
            remove_stale_folders(&inner.dir, &live.folder.name);
        }
        Ok(())
    }
}

fn rebuild_stopped_error() -> IndexError {
    IndexError::Damaged("the rebuild was stopped by an earlier error".to_owned())
}

impl Drop for IndexRebuild {
    fn drop(&mut self) {
        drop(self.writer.take());
        if let Some(folder) = self.folder.take() {
            folder.remove();
        }
        let mut view = lock_ignoring_poison(&self.inner.serving_state);
        view.overlay.set_keep_applied(false);
        drop(view);
        self.inner.rebuilding.store(false, Ordering::Release);
    }
}
