//! Counts this process's changes to the rows of agents and domains, for caches.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use uuid::Uuid;

/// The number of counters that agents and domains share. A collision only costs a reload.
const STRIPES: usize = 16_384;

/// Counters of changed rows. A cache entry stores the stamp that was read *before* its rows, and is valid while the
/// stamp stays the same. Writes of other processes are not counted.
#[derive(Debug)]
pub struct RowChanges {
    everywhere: AtomicU64,
    stripes: Box<[AtomicU64]>,
}

impl Default for RowChanges {
    fn default() -> Self {
        Self {
            everywhere: AtomicU64::new(0),
            stripes: (0..STRIPES).map(|_| AtomicU64::new(0)).collect(),
        }
    }
}

impl RowChanges {
    /// A number that changes with each committed change to the rows of an agent, its domain, or sources, keys and
    /// registrants of either.
    pub fn stamp(&self, agent: Uuid, domain: i64) -> u64 {
        let count = |stripe: usize| self.stripes[stripe].load(Ordering::Acquire);
        // Each counter only grows, so the sum is the same only if all of them are.
        self.everywhere.load(Ordering::Acquire) + count(of_agent(agent)) + count(of_domain(domain))
    }

    pub(super) fn count(&self, rows: ChangedRows) {
        let changed = rows.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        if changed.everywhere {
            self.everywhere.fetch_add(1, Ordering::AcqRel);
        }
        for stripe in changed.stripes {
            self.stripes[stripe].fetch_add(1, Ordering::AcqRel);
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct ChangedRows(Mutex<Changed>);

#[derive(Debug, Default)]
struct Changed {
    /// Whether rows changed whose agents and domains are not known.
    everywhere: bool,
    stripes: Vec<usize>,
}

impl ChangedRows {
    pub(super) fn agents<'a>(&self, agents: impl IntoIterator<Item = &'a Uuid>) {
        self.changed()
            .stripes
            .extend(agents.into_iter().map(|agent| of_agent(*agent)));
    }

    pub(super) fn domains(&self, domains: impl IntoIterator<Item = i64>) {
        self.changed()
            .stripes
            .extend(domains.into_iter().map(of_domain));
    }

    /// Records changes to rows whose agents and domains the statement does not name.
    pub(super) fn everywhere(&self) {
        self.changed().everywhere = true;
    }

    fn changed(&self) -> MutexGuard<'_, Changed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn of_agent(agent: Uuid) -> usize {
    // The low bits of a UUIDv7 are random, so they spread evenly.
    usize::try_from(agent.as_u128() % STRIPES as u128).unwrap_or(0)
}

fn of_domain(domain: i64) -> usize {
    usize::try_from(domain.unsigned_abs() % STRIPES as u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_changes_with_its_agent_its_domain_and_what_is_not_known() {
        let changes = RowChanges::default();
        let (agent, other) = (Uuid::from_u128(7), Uuid::from_u128(8));
        let mut last = changes.stamp(agent, 1);
        let mut moves = |note: &dyn Fn(&ChangedRows)| {
            let rows = ChangedRows::default();
            note(&rows);
            changes.count(rows);
            let before = std::mem::replace(&mut last, changes.stamp(agent, 1));
            before != last
        };
        assert!(moves(&|rows| rows.agents(&[other, agent])));
        assert!(moves(&|rows| rows.domains([2, 1])));
        assert!(moves(&ChangedRows::everywhere));
        assert!(!moves(&|rows| rows.agents(&[other])));
        assert!(!moves(&|rows| rows.domains([2])));
        assert!(!moves(&|_| ()));
    }
}
