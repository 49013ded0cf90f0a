//! The registry as an agent: its signed card, the signals of changed tasks, and the new tasks to be stored.

use std::sync::{Mutex, OnceLock, PoisonError};

use a2a_registry_store::entity::a2a_task;
use bytes::Bytes;
use tokio::sync::{broadcast, oneshot};
use uuid::Uuid;

use crate::error::Result;

/// Maximum number of changes that a follower may have left unread.
const MAX_UNREAD_CHANGES: usize = 1024;
/// Maximum number of new tasks in one transaction.
const MAX_BATCH_TASKS: usize = 256;
/// Maximum size of the new tasks in one transaction, in bytes.
const MAX_BATCH_BYTES: usize = 8 << 20;

#[derive(Debug, Default)]
pub struct SelfAgentState {
    /// The card; unset while the registry is not an agent, and in commands that do not serve.
    pub card: OnceLock<SelfAgentCard>,
    /// The signals to followers of tasks that this process has changed.
    pub task_watchers: TaskWatchers,
    pub insert_queue: TaskInsertQueue,
}

/// The channel that announces tasks changed by this process.
#[derive(Debug)]
pub struct TaskWatchers(broadcast::Sender<Uuid>);

#[derive(Debug)]
pub struct TaskWatcher {
    task: Uuid,
    changes: broadcast::Receiver<Uuid>,
}

impl Default for TaskWatchers {
    fn default() -> Self {
        Self(broadcast::Sender::new(MAX_UNREAD_CHANGES))
    }
}

impl TaskWatchers {
    /// Watches a task for changes from now on.
    pub fn watch(&self, task: Uuid) -> TaskWatcher {
        TaskWatcher {
            task,
            changes: self.0.subscribe(),
        }
    }

    pub fn notify(&self, task: Uuid) {
        // Sending fails if there are no followers.
        let _ = self.0.send(task);
    }
}

impl TaskWatcher {
    /// Waits for a change of the task, or until so many changes of all tasks are queued that one may have been missed.
    pub async fn wait_for_change(&mut self) {
        let changes = &mut self.changes;
        while changes.recv().await.is_ok_and(|task| task != self.task) {}
    }
}

/// The queue of new tasks to be stored together. Each belongs to a request that waits for it, so there are at most as
/// many as open requests.
#[derive(Debug, Default)]
pub struct TaskInsertQueue {
    queue: Mutex<Vec<QueuedTaskInsert>>,
    /// The holder of this lock stores the tasks that are queued by then.
    pub insert_lock: tokio::sync::Mutex<()>,
}

/// A new task, and the channel that reports that it is stored.
#[derive(Debug)]
pub struct QueuedTaskInsert {
    pub row: a2a_task::Model,
    pub stored: oneshot::Sender<Result<()>>,
}

impl TaskInsertQueue {
    /// Adds a task; the returned receiver learns when it is stored.
    pub fn add(&self, row: a2a_task::Model) -> oneshot::Receiver<Result<()>> {
        let (stored, receiver) = oneshot::channel();
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.push(QueuedTaskInsert { row, stored });
        receiver
    }

    /// The longest-waiting tasks, as many as fit in one transaction.
    pub fn take_batch(&self) -> Vec<QueuedTaskInsert> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = 0;
        let sizes = queue.iter().map(|new| new.bytes());
        let fit = sizes.take(MAX_BATCH_TASKS).take_while(|size| {
            let fits = bytes <= MAX_BATCH_BYTES;
            bytes += size;
            fits
        });
        let count = fit.count();
        queue.drain(..count).collect()
    }
}

impl QueuedTaskInsert {
    /// The estimated size of the task in bytes, from its large columns.
    fn bytes(&self) -> usize {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        self.row.history.len() + length(&self.row.outcome) + length(&self.row.more)
    }
}

#[derive(Debug)]
pub struct SelfAgentCard {
    /// The bytes of the card, the same for every caller.
    pub bytes: Bytes,
    /// Its strong entity tag, with quotes.
    pub tag: String,
    /// When it was signed, in seconds since 1970.
    pub signed_at: u64,
    /// The key set with the public keys, as JSON.
    pub key_set: Bytes,
    /// The strong entity tag of the key set, with quotes.
    pub key_set_tag: String,
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn a_change_wakes_those_who_follow_that_task_alone() {
        let signals = TaskWatchers::default();
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        signals.notify(one);
        let mut followed = [one, one, other].map(|task| signals.watch(task));
        let woken = |signal: &mut TaskWatcher| signal.wait_for_change().now_or_never().is_some();
        assert_eq!(followed.each_mut().map(woken), [false; 3]);
        signals.notify(one);
        assert_eq!(followed.each_mut().map(woken), [true, true, false]);
        assert_eq!(followed.each_mut().map(woken), [false; 3]);
        for _ in 0..=MAX_UNREAD_CHANGES {
            signals.notify(Uuid::nil());
        }
        assert_eq!(followed.each_mut().map(woken), [true; 3]);
        drop(followed);
        signals.notify(one);
    }

    fn row(history: String) -> a2a_task::Model {
        a2a_task::Model {
            id: Uuid::nil(),
            account_id: None,
            sender: None,
            context_id: String::new(),
            state: a2a_registry_domain::task_state::TaskState::Working.into(),
            history,
            outcome: None,
            more: None,
            created_at: 0,
            updated_at: 0,
            expires_at: 0,
        }
    }

    #[test]
    fn a_group_of_new_tasks_is_bounded() {
        let half = "x".repeat(MAX_BATCH_BYTES / 2);
        for (rows, groups) in [
            (vec![String::new(); MAX_BATCH_TASKS], vec![MAX_BATCH_TASKS]),
            (
                vec![String::new(); MAX_BATCH_TASKS + 1],
                vec![MAX_BATCH_TASKS, 1],
            ),
            // A batch ends with the task that exceeds the limit.
            (vec![half.clone(); 4], vec![3, 1]),
            (vec![half + "x"; 4], vec![2, 2]),
        ] {
            let new = TaskInsertQueue::default();
            let waiting: Vec<_> = rows.into_iter().map(|text| new.add(row(text))).collect();
            for expected in groups {
                assert_eq!(new.take_batch().len(), expected);
            }
            assert!(new.take_batch().is_empty());
            drop(waiting);
        }
    }
}
