//! The registry as an agent: its signed card as it is served, the signals that a task has changed, and the new tasks to
//! be stored.

use std::sync::{Mutex, OnceLock, PoisonError};

use a2a_registry_store::entity::a2a_task;
use bytes::Bytes;
use tokio::sync::{broadcast, oneshot};
use uuid::Uuid;

use crate::error::Result;

/// Maximum number of changes that a follower may have left unread.
const CHANGES: usize = 1024;
/// Maximum number of new tasks in one transaction.
const GROUP: usize = 256;
/// Bytes of new tasks beyond which no further one is added to the same transaction.
const GROUP_BYTES: usize = 8 << 20;

#[derive(Debug, Default)]
pub struct OwnAgent {
    /// Unset while the registry is no agent, and in commands that serve nothing.
    pub card: OnceLock<OwnCard>,
    /// Wakes the followers of a task that this process has changed.
    pub tasks: TaskSignals,
    pub new_tasks: NewTasks,
}

/// Announces which task this process has changed.
#[derive(Debug)]
pub struct TaskSignals(broadcast::Sender<Uuid>);

#[derive(Debug)]
pub struct TaskSignal {
    task: Uuid,
    changes: broadcast::Receiver<Uuid>,
}

impl Default for TaskSignals {
    fn default() -> Self {
        Self(broadcast::Sender::new(CHANGES))
    }
}

impl TaskSignals {
    /// The signal of a task, for its changes from now on.
    pub fn follow(&self, task: Uuid) -> TaskSignal {
        TaskSignal {
            task,
            changes: self.0.subscribe(),
        }
    }

    pub fn changed(&self, task: Uuid) {
        // It fails where nobody follows any.
        let _ = self.0.send(task);
    }
}

impl TaskSignal {
    /// Waits for a change, or until so many of all tasks are waiting here that one may have been missed.
    pub async fn changed(&mut self) {
        let changes = &mut self.changes;
        while changes.recv().await.is_ok_and(|task| task != self.task) {}
    }
}

/// New tasks that wait to be stored together. Each is of a request that waits for it, so there are no more of them than
/// open requests.
#[derive(Debug, Default)]
pub struct NewTasks {
    waiting: Mutex<Vec<NewTask>>,
    /// Whoever holds it stores those that wait by then.
    pub turn: tokio::sync::Mutex<()>,
}

/// A new task, and the receiver of the message that it is stored.
#[derive(Debug)]
pub struct NewTask {
    pub row: a2a_task::Model,
    pub stored: oneshot::Sender<Result<()>>,
}

impl NewTasks {
    /// Adds a task; the returned receiver learns when it is stored.
    pub fn add(&self, row: a2a_task::Model) -> oneshot::Receiver<Result<()>> {
        let (stored, learns) = oneshot::channel();
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push(NewTask { row, stored });
        learns
    }

    /// The longest-waiting tasks, as many as fit in one transaction.
    pub fn take(&self) -> Vec<NewTask> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = 0;
        let sizes = waiting.iter().map(|new| new.bytes());
        let fit = sizes.take(GROUP).take_while(|size| {
            let fits = bytes <= GROUP_BYTES;
            bytes += size;
            fits
        });
        let count = fit.count();
        waiting.drain(..count).collect()
    }
}

impl NewTask {
    /// An estimate of its bytes, from its large columns.
    fn bytes(&self) -> usize {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        self.row.history.len() + length(&self.row.outcome) + length(&self.row.more)
    }
}

#[derive(Debug)]
pub struct OwnCard {
    /// The bytes, which are the same for every caller.
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
        let signals = TaskSignals::default();
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        signals.changed(one);
        let mut followed = [one, one, other].map(|task| signals.follow(task));
        let woken = |signal: &mut TaskSignal| signal.changed().now_or_never().is_some();
        assert_eq!(followed.each_mut().map(woken), [false; 3]);
        signals.changed(one);
        assert_eq!(followed.each_mut().map(woken), [true, true, false]);
        assert_eq!(followed.each_mut().map(woken), [false; 3]);
        for _ in 0..=CHANGES {
            signals.changed(Uuid::nil());
        }
        assert_eq!(followed.each_mut().map(woken), [true; 3]);
        drop(followed);
        signals.changed(one);
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
        let half = "x".repeat(GROUP_BYTES / 2);
        for (rows, groups) in [
            (vec![String::new(); GROUP], vec![GROUP]),
            (vec![String::new(); GROUP + 1], vec![GROUP, 1]),
            // A group ends with the task that goes beyond.
            (vec![half.clone(); 4], vec![3, 1]),
            (vec![half + "x"; 4], vec![2, 2]),
        ] {
            let new = NewTasks::default();
            let waiting: Vec<_> = rows.into_iter().map(|text| new.add(row(text))).collect();
            for expected in groups {
                assert_eq!(new.take().len(), expected);
            }
            assert!(new.take().is_empty());
            drop(waiting);
        }
    }
}
