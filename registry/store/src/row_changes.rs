//! Counts this process's changes to the rows of agents and domains, for caches.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use uuid::Uuid;

/// The number of counters that agents and domains share. A collision only costs a reload.
const STRIPES: usize = 16_384;

/// Counters of changed rows. A cache entry stores the stamp that was read *before* its rows, and is valid while the
/// stamp stays the same. Writes of other processes are not counted.
#[derive(Debug)]
pub struct RowChangeCounters {
    global: AtomicU64,
    stripes: Box<[AtomicU64]>,
}

impl Default for RowChangeCounters {
    fn default() -> Self {
        Self {
            global: AtomicU64::new(0),
            stripes: (0..STRIPES).map(|_| AtomicU64::new(0)).collect(),
        }
    }
}

impl RowChangeCounters {
    /// A number that changes with each committed change to the rows of an agent, its domain, or sources, keys and
    /// registrants of either.
    pub fn cache_stamp(&self, agent: Uuid, domain: i64) -> u64 {
        let count = |stripe: usize| self.stripes[stripe].load(Ordering::Acquire);
        // Each counter only grows, so the sum is the same only if all of them are.
        self.global.load(Ordering::Acquire)
            + count(agent_stripe(agent))
            + count(domain_stripe(domain))
    }

    pub(super) fn record(&self, rows: PendingRowChanges) {
        let changed = rows.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        if changed.all_rows {
            self.global.fetch_add(1, Ordering::AcqRel);
        }
        for stripe in changed.stripes {
            self.stripes[stripe].fetch_add(1, Ordering::AcqRel);
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct PendingRowChanges(Mutex<ChangedStripes>);

#[derive(Debug, Default)]
struct ChangedStripes {
    /// Whether rows changed whose agents and domains are not known.
    all_rows: bool,
    stripes: Vec<usize>,
}

impl PendingRowChanges {
    pub(super) fn mark_agents<'a>(&self, agents: impl IntoIterator<Item = &'a Uuid>) {
        self.lock()
            .stripes
            .extend(agents.into_iter().map(|agent| agent_stripe(*agent)));
    }

    pub(super) fn mark_domains(&self, domains: impl IntoIterator<Item = i64>) {
        self.lock()
            .stripes
            .extend(domains.into_iter().map(domain_stripe));
    }

    /// Records changes to rows whose agents and domains the statement does not name.
    pub(super) fn mark_everything(&self) {
        self.lock().all_rows = true;
    }

    fn lock(&self) -> MutexGuard<'_, ChangedStripes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn agent_stripe(agent: Uuid) -> usize {
    // The low bits of a UUIDv7 are random, so they spread evenly.
    usize::try_from(agent.as_u128() % STRIPES as u128).unwrap_or(0)
}

fn domain_stripe(domain: i64) -> usize {
    usize::try_from(domain.unsigned_abs() % STRIPES as u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_changes_with_its_agent_its_domain_and_what_is_not_known() {
        let changes = RowChangeCounters::default();
        let (agent, other) = (Uuid::from_u128(7), Uuid::from_u128(8));
        let mut last = changes.cache_stamp(agent, 1);
        let mut moves = |note: &dyn Fn(&PendingRowChanges)| {
            let rows = PendingRowChanges::default();
            note(&rows);
            changes.record(rows);
            let before = std::mem::replace(&mut last, changes.cache_stamp(agent, 1));
            before != last
        };
        assert!(moves(&|rows| rows.mark_agents(&[other, agent])));
        assert!(moves(&|rows| rows.mark_domains([2, 1])));
        assert!(moves(&PendingRowChanges::mark_everything));
        assert!(!moves(&|rows| rows.mark_agents(&[other])));
        assert!(!moves(&|rows| rows.mark_domains([2])));
        assert!(!moves(&|_| ()));
    }
}
