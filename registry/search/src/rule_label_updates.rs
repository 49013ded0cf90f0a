//! Rule label updates: changes of the agents' rule labels while their documents stay.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use uuid::Uuid;

use super::agent_id_reader::AgentIdReader;
use super::doc_bit_set::DocBitSet;
use super::error::IndexError;
use super::rule_label_file::{RULE_LABEL_FILE, write_rule_labels};
use super::rule_labels::{RuleLabelUpdate, RuleLabels};
use super::{Index, IndexInner, lock_ignoring_poison};

/// Number of changed agents after which the file of the rule labels is written again, unless that is less than an
/// eighth of all: after a crash the rules are evaluated for the agents that have changed since.
const MIN_UNSAVED_AGENTS: usize = 10_000;
const MAX_UNSAVED_FRACTION: u64 = 8;

impl Index {
    /// The undeleted agents of the last commit without this rule label; none without an index, which will be rebuilt.
    pub fn agents_without_rule_label(&self, label: &str) -> Result<Vec<Uuid>, IndexError> {
        let view = match self.0.current_view() {
            Err(IndexError::NeedsRebuild { .. }) => return Ok(Vec::new()),
            view => view?,
        };
        let labels = [label.to_owned()];
        let mut missing = Vec::new();
        for reader in view.searcher.segment_readers() {
            let mut documents = DocBitSet::alive(reader);
            documents.subtract(&view.rule_labels.docs_with_any(&labels, reader)?);
            let ids = AgentIdReader::open(reader)?;
            missing.extend(documents.iter().map(|document| ids.get(document)));
        }
        Ok(missing)
    }

    /// All rule labels that an agent may have.
    pub fn rule_labels(&self) -> Vec<String> {
        let labels = self.0.served_rule_labels();
        labels
            .columns()
            .keys()
            .map(|label| (**label).to_owned())
            .collect()
    }

    /// Bytes of memory that the rule labels use.
    pub fn rule_label_bytes(&self) -> usize {
        self.0.served_rule_labels().byte_size()
    }

    /// Starts an update that adds the rule label `marker` to each of its agents, and the second label of each of
    /// `copies` to those that have the first.
    pub fn new_rule_label_update(
        &self,
        marker: String,
        copies: Vec<(String, String)>,
    ) -> RuleLabelUpdate {
        let numbers = Arc::clone(self.0.served_rule_labels().numbers());
        RuleLabelUpdate::new(numbers, marker, copies)
    }

    /// Applies an update; searches see all of it at once. Agents that have the marker already stay as they are.
    pub fn apply_rule_label_update(&self, update: &RuleLabelUpdate) {
        self.0
            .change_rule_labels(|labels| labels.apply_update(update));
    }

    /// Removes all rule labels of these agents until their documents are replaced, or an update adds labels.
    pub fn forget_rule_labels_of_agents(&self, ids: &[Uuid]) {
        if !ids.is_empty() {
            self.0
                .change_rule_labels(|labels| labels.forget_agents(ids));
        }
    }

    /// Drops the rule labels that `is_kept` does not name. No caller may still have one of those.
    pub fn retain_rule_labels(&self, is_kept: impl Fn(&str) -> bool) {
        self.0
            .change_rule_labels(|labels| labels.retain_labels(is_kept));
    }

    /// The event up to which the rule labels were current when they were read from their file; `None` if there was
    /// none, or after a rebuild. The labels of agents that changed afterwards are to be forgotten.
    pub fn restored_rule_labels_seq(&self) -> Option<i64> {
        lock_ignoring_poison(&self.0.serving_state).restored_rule_labels_seq
    }

    /// Writes the rule labels to their file. A failure is only logged: the next start evaluates the rules again.
    pub fn save_rule_labels(&self) {
        let writer_state = lock_ignoring_poison(&self.0.writer_state);
        let Some(state) = writer_state.as_ref() else {
            return;
        };
        let (labels, seq) = (self.0.served_rule_labels(), self.applied_seq());
        if labels.is_empty() && !state.folder.path().join(RULE_LABEL_FILE).exists() {
            return;
        }
        if let Err(error) = write_rule_labels(state.folder.path(), &labels, seq) {
            tracing::warn!(%error, "cannot save the rule labels; after a restart all rules are evaluated again");
        }
        self.0.unsaved_agents.store(0, Ordering::Relaxed);
    }

    /// Saves the rule labels if those of many agents have changed since the last time.
    pub(super) fn save_rule_labels_if_needed(&self, changed: usize) {
        let before = self.0.unsaved_agents.fetch_add(changed, Ordering::Relaxed);
        let fraction = self.num_agents() / MAX_UNSAVED_FRACTION;
        let enough = MIN_UNSAVED_AGENTS.max(usize::try_from(fraction).unwrap_or(usize::MAX));
        if before + changed >= enough && !self.0.served_rule_labels().is_empty() {
            self.save_rule_labels();
        }
    }
}

impl IndexInner {
    /// The rule labels in use.
    pub(super) fn served_rule_labels(&self) -> RuleLabels {
        let state = lock_ignoring_poison(&self.serving_state);
        let served = state.served.as_ref();
        served.map_or_else(RuleLabels::default, |served| served.rule_labels.clone())
    }

    /// Changes the rule labels in use. Nothing that was computed with the earlier ones is used by a later search.
    fn change_rule_labels(&self, change: impl FnOnce(&mut RuleLabels)) {
        // Commits change them too, so they wait.
        let _writer_state = lock_ignoring_poison(&self.writer_state);
        let mut labels = self.served_rule_labels();
        change(&mut labels);
        let mut state = lock_ignoring_poison(&self.serving_state);
        if let Some(served) = &mut state.served {
            served.rule_labels = labels;
            served.class_statistics = Arc::default();
            state.generation += 1;
        }
    }
}
