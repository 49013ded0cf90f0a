//! Agents that policies may hide now, or hide no longer.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use uuid::Uuid;

/// Maximum number of queued agents. If more are queued, all agents are checked.
const MAX_QUEUED_AGENTS: usize = 10_000;

/// Agents to check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueuedAgents {
    All,
    Some(BTreeSet<Uuid>),
}

#[derive(Debug)]
pub struct HiddenAgentQueue {
    queue: Mutex<QueuedAgents>,
    /// The set under which the agents were queued for the last time.
    set_number: AtomicU64,
}

impl Default for HiddenAgentQueue {
    fn default() -> Self {
        Self {
            queue: Mutex::new(QueuedAgents::Some(BTreeSet::new())),
            // No set has this number: a process that starts does not know what was checked.
            set_number: AtomicU64::new(u64::MAX),
        }
    }
}

impl HiddenAgentQueue {
    /// Queues agents that have changed.
    pub fn queue_agents(&self, agents: &[Uuid]) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *queue {
            QueuedAgents::All => {}
            QueuedAgents::Some(some) if some.len() + agents.len() > MAX_QUEUED_AGENTS => {
                *queue = QueuedAgents::All;
            }
            QueuedAgents::Some(some) => some.extend(agents),
        }
    }

    pub fn queue_all_agents(&self) {
        *self.queue.lock().unwrap_or_else(PoisonError::into_inner) = QueuedAgents::All;
    }

    /// Takes the agents that were queued since the last call: all of them if another set is in force since then.
    pub fn take(&self, set_number: u64) -> QueuedAgents {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let queued = std::mem::replace(&mut *queue, QueuedAgents::Some(BTreeSet::new()));
        match self.set_number.swap(set_number, Ordering::AcqRel) == set_number {
            true => queued,
            false => QueuedAgents::All,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_agents_and_another_set_are_all_agents() {
        let queue = HiddenAgentQueue::default();
        assert_eq!(queue.take(0), QueuedAgents::All);
        let ids: Vec<Uuid> = (0..MAX_QUEUED_AGENTS as u128)
            .map(Uuid::from_u128)
            .collect();
        queue.queue_agents(&ids);
        let expected = QueuedAgents::Some(ids.iter().copied().collect());
        assert_eq!(queue.take(0), expected);
        queue.queue_agents(&ids);
        queue.queue_agents(&[Uuid::max()]);
        assert_eq!(queue.take(0), QueuedAgents::All);
        assert_eq!(queue.take(0), QueuedAgents::Some(BTreeSet::new()));
        assert_eq!(queue.take(1), QueuedAgents::All);
        assert_eq!(queue.take(1), QueuedAgents::Some(BTreeSet::new()));
        queue.queue_all_agents();
        assert_eq!(queue.take(1), QueuedAgents::All);
    }
}
