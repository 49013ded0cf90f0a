//! Collector of changes, up to the limit.

use serde_json::Value;

use super::change::{CardChange, CardDiff, ChangeClass, MAX_CHANGES};
use super::display::{self, unmarked_member_name};
use super::json_equality::{BeforeAfter, is_value_unchanged};
use super::object_members::differing_members;
use crate::json_pointer::JsonPointer;

/// Changes found so far: the first ones of each class, and the most important class of all.
#[derive(Debug, Default)]
pub(super) struct ChangeCollector {
    /// Changes by class, the least important first; each list holds at most [`MAX_CHANGES`].
    changes_by_class: [Vec<CardChange>; ChangeClass::ALL.len()],
    count: usize,
}

impl ChangeCollector {
    /// Adds a change. A change with hidden characters is always at least high.
    pub(super) fn add(
        &mut self,
        class: ChangeClass,
        pointer: &JsonPointer<'_>,
        (before, after): BeforeAfter<'_>,
        reason: &'static str,
    ) {
        let has_hidden = after.is_some_and(display::value_has_hidden_characters);
        let class = if has_hidden {
            class.max(ChangeClass::High)
        } else {
            class
        };
        self.count += 1;
        let Some(list) = self.changes_by_class.get_mut(class as usize) else {
            return;
        };
        if list.len() == MAX_CHANGES {
            return;
        }
        let (before, after) = display::shorten_value_pair(before, after);
        let mut reason = reason.to_owned();
        if has_hidden {
            reason.push_str("; it contains invisible characters");
        }
        list.push(CardChange {
            pointer: pointer.to_json_pointer(),
            before,
            after,
            class,
            reason,
        });
    }

    /// Number of changes so far, with which a rule detects whether it has added any.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn into_diff(self) -> CardDiff {
        let changes: Vec<CardChange> = self.changes_by_class.into_iter().rev().flatten().collect();
        let class = changes
            .first()
            .map_or(ChangeClass::None, |first| first.class);
        let mut diff = CardDiff {
            class,
            cut: self.count > MAX_CHANGES,
            changes,
        };
        diff.changes.truncate(MAX_CHANGES);
        diff
    }
}

/// Adds a change for every place below `pointer` where the two values differ, down to single values, all of one class.
pub(super) fn add_each_difference(
    class: ChangeClass,
    pointer: &JsonPointer<'_>,
    values: BeforeAfter<'_>,
    reason: &'static str,
    out: &mut ChangeCollector,
) {
    match values {
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            for (name, values) in differing_members(old, new) {
                let shown = unmarked_member_name(name);
                add_each_difference(class, &pointer.member(&shown), values, reason, out);
            }
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) => {
            for index in 0..old.len().max(new.len()) {
                add_each_difference(
                    class,
                    &pointer.element(index),
                    (old.get(index), new.get(index)),
                    reason,
                    out,
                );
            }
        }
        _ if is_value_unchanged(values) => {}
        _ => out.add(class, pointer, values, reason),
    }
}
