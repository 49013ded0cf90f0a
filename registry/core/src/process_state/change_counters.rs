//! Stamps that show which cached responses may be stale.

use std::sync::atomic::{AtomicU64, Ordering};

use uuid::Uuid;

/// The number of counters that agents share. If two agents share a counter, a change of one only causes a reload of
/// the other.
const STRIPES: usize = 16_384;

/// A counter for every agent, shared by a few: a cache entry of an agent stores the counter's value read *before* the
/// database was read, and is valid while the value is unchanged.
#[derive(Debug)]
pub struct AgentChangeCounters {
    pub stripes: Box<[AtomicU64]>,
}

impl Default for AgentChangeCounters {
    fn default() -> Self {
        Self {
            stripes: (0..STRIPES).map(|_| AtomicU64::new(0)).collect(),
        }
    }
}

impl AgentChangeCounters {
    pub fn count(&self, agent: Uuid) -> u64 {
        self.counter(agent).load(Ordering::Acquire)
    }

    /// Marks every cache entry of these agents as stale.
    pub fn increment(&self, agents: &[Uuid]) {
        for agent in agents {
            self.counter(*agent).fetch_add(1, Ordering::AcqRel);
        }
    }

    pub fn counter(&self, agent: Uuid) -> &AtomicU64 {
        // The low bits of a UUIDv7 are random, so they spread evenly.
        let index = usize::try_from(agent.as_u128() % STRIPES as u128).unwrap_or(0);
        &self.stripes[index]
    }
}
