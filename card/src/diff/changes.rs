//! Collects changes, up to the limit.

use serde_json::Value;

use super::change::{CardChange, CardDiff, ChangeClass, MAX_CHANGES};
use super::fields::pairs;
use super::shown::{self, shown_name};
use super::tree::{Sides, same_sides};
use crate::pointer::Pointer;

/// The changes found so far: the first ones of each class, and the most important class of all.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// By class, the least important first; each list ends at [`MAX_CHANGES`].
    by_class: [Vec<CardChange>; ChangeClass::ALL.len()],
    found: usize,
}

impl Changes {
    /// Adds a change. Only a change without hidden characters is ever less than high.
    pub(super) fn add(
        &mut self,
        class: ChangeClass,
        at: &Pointer<'_>,
        (before, after): Sides<'_>,
        reason: &'static str,
    ) {
        let hides = after.is_some_and(shown::has_hidden);
        let class = if hides {
            class.max(ChangeClass::High)
        } else {
            class
        };
        self.found += 1;
        let Some(list) = self.by_class.get_mut(class as usize) else {
            return;
        };
        if list.len() == MAX_CHANGES {
            return;
        }
        let (before, after) = shown::pair(before, after);
        let mut reason = reason.to_owned();
        if hides {
            reason.push_str("; it contains invisible characters");
        }
        list.push(CardChange {
            pointer: at.text(),
            before,
            after,
            class,
            reason,
        });
    }

    /// The number so far, by which a rule sees whether it has added any.
    pub(super) fn found(&self) -> usize {
        self.found
    }

    pub(super) fn into_diff(self) -> CardDiff {
        let changes: Vec<CardChange> = self.by_class.into_iter().rev().flatten().collect();
        let class = changes
            .first()
            .map_or(ChangeClass::None, |first| first.class);
        let mut diff = CardDiff {
            class,
            cut: self.found > MAX_CHANGES,
            changes,
        };
        diff.changes.truncate(MAX_CHANGES);
        diff
    }
}

/// Adds a change for every place below `at` where the two differ, down to single values, all of one class.
pub(super) fn each(
    class: ChangeClass,
    at: &Pointer<'_>,
    sides: Sides<'_>,
    reason: &'static str,
    out: &mut Changes,
) {
    match sides {
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            for (name, sides) in pairs(old, new) {
                let shown = shown_name(name);
                each(class, &at.name(&shown), sides, reason, out);
            }
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) => {
            for index in 0..old.len().max(new.len()) {
                each(
                    class,
                    &at.index(index),
                    (old.get(index), new.get(index)),
                    reason,
                    out,
                );
            }
        }
        _ if same_sides(sides) => {}
        _ => out.add(class, at, sides, reason),
    }
}
