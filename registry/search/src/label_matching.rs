//! Label matching: compares the labels of a caller with the visibility labels of an agent.
//!
//! A plain label of the caller shows the agents that have it. Labels with a mark apply rules that were evaluated for
//! each agent beforehand, and are kept beside the documents (`rule_labels`): if any label begins with [`ONLY_MARK`],
//! plain labels show only agents that also have one of those labels; plain labels never show agents that have a label
//! marked with [`NEVER_MARK`]; a label marked with [`ALWAYS_MARK`] shows the agents that have it, regardless of the
//! other marks.

use tantivy::{SegmentReader, Term};

use super::doc_bit_set::DocBitSet;
use super::keys::{KeyField, KeyKind};

/// Marks a caller's label: plain labels show only agents that have one of the labels with this mark.
pub const ONLY_MARK: char = '+';
/// Marks a caller's label: plain labels show no agent that has it.
pub const NEVER_MARK: char = '-';
/// Marks a caller's label: it shows agents regardless of the other marks.
pub const ALWAYS_MARK: char = '!';

pub const MAX_LABELS: usize = 4_096;

/// The labels of a caller, by their marks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct CallerLabels {
    plain: Vec<String>,
    only: Vec<String>,
    never: Vec<String>,
    always: Vec<String>,
    /// The generation of the rule labels with which the marked labels are compared; 0 without such labels.
    rule_generation: u64,
}

impl CallerLabels {
    pub fn from_labels(labels: &[String]) -> Self {
        let mut caller_labels = Self::default();
        for label in labels {
            let (list, text) = match label.chars().next() {
                Some(ONLY_MARK) => (&mut caller_labels.only, &label[1..]),
                Some(NEVER_MARK) => (&mut caller_labels.never, &label[1..]),
                Some(ALWAYS_MARK) => (&mut caller_labels.always, &label[1..]),
                _ => (&mut caller_labels.plain, label.as_str()),
            };
            list.push(text.to_owned());
        }
        caller_labels
    }

    /// These labels, for this generation of the rule labels.
    #[must_use]
    pub fn at_generation(self, generation: u64) -> Self {
        Self {
            rule_generation: if self.has_rules() { generation } else { 0 },
            ..self
        }
    }

    /// Whether rules restrict what plain labels show.
    pub fn has_rules(&self) -> bool {
        !self.only.is_empty() || !self.never.is_empty()
    }

    pub fn rule_generation(&self) -> u64 {
        self.rule_generation
    }

    /// Approximate size of the labels in bytes.
    pub fn byte_size(&self) -> usize {
        let labels = [&self.plain, &self.only, &self.never, &self.always];
        let each = |label: &String| size_of::<String>() + label.len();
        labels.into_iter().flatten().map(each).sum()
    }

    /// Whether the caller may see an agent with these labels.
    pub fn can_see(&self, agent_labels: &[String]) -> bool {
        let carries = |some: &[String]| some.iter().any(|label| agent_labels.contains(label));
        let plainly = carries(&self.plain)
            && (self.only.is_empty() || carries(&self.only))
            && !carries(&self.never);
        plainly || carries(&self.always)
    }

    /// The visible agents of a segment; `add_term_docs` adds the documents with a term to a set, and
    /// `docs_with_rule_label` finds those with one of these rule labels.
    pub fn visible_docs(
        &self,
        keys: KeyField,
        reader: &SegmentReader,
        mut add_term_docs: impl FnMut(&Term, &mut DocBitSet) -> tantivy::Result<()>,
        docs_with_rule_label: impl Fn(&[String]) -> tantivy::Result<DocBitSet>,
    ) -> tantivy::Result<DocBitSet> {
        let mut any_of = |labels: &[String]| {
            let mut any = DocBitSet::empty(reader.max_doc());
            for label in labels {
                add_term_docs(&keys.term(KeyKind::VisibleTo, label), &mut any)?;
            }
            tantivy::Result::Ok(any)
        };
        let mut visible = any_of(&self.plain)?;
        if !self.only.is_empty() {
            visible.intersect_with(&docs_with_rule_label(&self.only)?);
        }
        if !self.never.is_empty() {
            visible.subtract(&docs_with_rule_label(&self.never)?);
        }
        if !self.always.is_empty() {
            visible.union_with(&any_of(&self.always)?);
        }
        Ok(visible)
    }
}

/// Whether a caller with these labels may see an agent with those labels. For many agents, create `CallerLabels` once
/// instead.
pub fn is_visible_to(labels: &[String], agent_labels: &[String]) -> bool {
    let carries = |label: &str| agent_labels.iter().any(|one| one == label);
    let (mut plainly, mut any_only, mut only, mut never) = (false, false, false, false);
    for label in labels {
        match label.chars().next() {
            Some(ALWAYS_MARK) if carries(&label[1..]) => return true,
            Some(ALWAYS_MARK) => {}
            Some(NEVER_MARK) => never |= carries(&label[1..]),
            Some(ONLY_MARK) => {
                any_only = true;
                only |= carries(&label[1..]);
            }
            _ => plainly |= carries(label),
        }
    }
    plainly && (only || !any_only) && !never
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn marks_narrow_what_plain_labels_show() {
        let cases: [(&[&str], &[&str], bool); 12] = [
            (&["public"], &["public"], true),
            (&["public"], &["internal"], false),
            (&[], &["public"], false),
            (&["public", "+p1"], &["public"], false),
            (&["public", "+p1", "+p2"], &["public", "p2"], true),
            (&["public", "+p1"], &["p1"], false),
            (&["public", "-p3"], &["public"], true),
            (&["public", "-p3"], &["public", "p3"], false),
            (&["public", "+p1", "-p3"], &["public", "p1", "p3"], false),
            (&["public", "-p3", "!me"], &["public", "p3", "me"], true),
            (&["public", "+p1", "!me"], &["me"], true),
            // Marks are not a part of the agent's labels.
            (&["public", "-p3"], &["public", "-p3"], true),
        ];
        for (caller, carried, expected) in cases {
            let (caller, carried) = (labels(caller), labels(carried));
            assert_eq!(
                is_visible_to(&caller, &carried),
                expected,
                "{caller:?} on {carried:?}"
            );
            let viewer = CallerLabels::from_labels(&caller);
            assert_eq!(
                viewer.can_see(&carried),
                expected,
                "{caller:?} on {carried:?}"
            );
        }
    }
}
