//! Collecting changes within their bound.

use serde_json::Value;

use super::shown;
use super::{CardDiff, Change, ChangeClass, MAX_CHANGES};
use crate::pointer::Pointer;

/// What stands at one place in the older and in the newer card.
pub(super) type Sides<'v> = (Option<&'v Value>, Option<&'v Value>);

/// The changes found so far: of each class the first ones, and the gravest class of all.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// By class, the least first; each list ends at [`MAX_CHANGES`].
    by_class: [Vec<Change>; ChangeClass::ALL.len()],
    /// How many were found, those left out included.
    found: usize,
}

impl Changes {
    /// Adds a change. Only what a reader can see all of is ever less than high.
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
            reason.push_str("; it has characters that cannot be seen");
        }
        list.push(Change {
            pointer: at.text(),
            before,
            after,
            class,
            reason,
        });
    }

    /// How many changes were found so far: by it a rule tells whether it has found any.
    pub(super) fn found(&self) -> usize {
        self.found
    }

    /// The changes, the gravest first.
    pub(super) fn into_diff(self) -> CardDiff {
        let changes: Vec<Change> = self.by_class.into_iter().rev().flatten().collect();
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
