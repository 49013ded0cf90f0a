//! The registry as an agent: its signed card as it is served, the signals that a task has changed, and the new tasks that
//! wait to be stored.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use a2a_registry_store::entity::a2a_task;
use bytes::Bytes;
use tokio::sync::{oneshot, watch};
use uuid::Uuid;

use crate::error::AppError;

/// The most new tasks in one transaction.
const GROUP: usize = 256;
/// Bytes of new tasks beyond which no further one comes into the same transaction.
const GROUP_BYTES: usize = 8 << 20;

/// The state of the registry as an agent, in this process.
#[derive(Debug, Default)]
pub(crate) struct OwnAgent {
    /// The card; unset while the registry is no agent, and in commands that serve nothing.
    pub(crate) card: OnceLock<OwnCard>,
    /// Wakes those who follow a task that this process has changed.
    pub(crate) tasks: TaskSignals,
    /// Tasks that are not stored yet.
    pub(crate) new_tasks: NewTasks,
}

/// A signal for each task that is followed.
#[derive(Debug, Clone, Default)]
pub(crate) struct TaskSignals {
    /// A task that nobody follows has no entry, so there are never more than streams.
    followed: Arc<Mutex<HashMap<Uuid, watch::Sender<u64>>>>,
}

/// The signal of one task, for one who follows it.
#[derive(Debug)]
pub(crate) struct TaskSignal {
    signals: TaskSignals,
    task: Uuid,
    changes: watch::Receiver<u64>,
}

impl TaskSignals {
    /// The signal of a task, which may have been changed before.
    pub(crate) fn follow(&self, task: Uuid) -> TaskSignal {
        let mut followed = self.followed();
        let changes = followed.entry(task).or_default().subscribe();
        TaskSignal {
            signals: self.clone(),
            task,
            changes,
        }
    }

    /// Wakes whoever follows a task.
    pub(crate) fn changed(&self, task: Uuid) {
        if let Some(signal) = self.followed().get(&task) {
            signal.send_modify(|count| *count = count.wrapping_add(1));
        }
    }

    fn followed(&self) -> MutexGuard<'_, HashMap<Uuid, watch::Sender<u64>>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TaskSignal {
    /// Counts the changes up to now as seen.
    pub(crate) fn mark_seen(&mut self) {
        self.changes.borrow_and_update();
    }

    /// Waits for a change that is not seen yet.
    pub(crate) async fn changed(&mut self) {
        if self.changes.changed().await.is_err() {
            // The sender lives as long as anybody follows the task.
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for TaskSignal {
    fn drop(&mut self) {
        let mut followed = self.signals.followed();
        let is_last = followed
            .get(&self.task)
            .is_some_and(|signal| signal.receiver_count() <= 1);
        if is_last {
            followed.remove(&self.task);
        }
    }
}

/// New tasks that wait to be stored together. Each is of a request that waits for it, so there are no more of them than
/// open requests.
#[derive(Debug, Default)]
pub(crate) struct NewTasks {
    waiting: Mutex<Vec<NewTask>>,
    /// Whoever holds it stores those that wait by then.
    pub(crate) turn: tokio::sync::Mutex<()>,
}

/// A new task, and whom to tell that it is stored.
#[derive(Debug)]
pub(crate) struct NewTask {
    pub(crate) row: a2a_task::Model,
    pub(crate) stored: oneshot::Sender<Result<(), AppError>>,
}

impl NewTasks {
    /// Adds a task; what is returned learns when it is stored.
    pub(crate) fn add(&self, row: a2a_task::Model) -> oneshot::Receiver<Result<(), AppError>> {
        let (stored, learns) = oneshot::channel();
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push(NewTask { row, stored });
        learns
    }

    /// Those that have waited for the longest time, as many as belong in one transaction.
    pub(crate) fn take(&self) -> Vec<NewTask> {
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
    /// Bytes of what is large in it.
    fn bytes(&self) -> usize {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        self.row.history.len() + length(&self.row.outcome) + length(&self.row.more)
    }
}

#[derive(Debug)]
pub(crate) struct OwnCard {
    /// Its bytes, the same for everybody.
    pub(crate) bytes: Bytes,
    /// Its strong entity tag, with quotes.
    pub(crate) tag: String,
    /// When it was signed, in seconds since 1970.
    pub(crate) signed_at: u64,
    /// The key set with the public keys, as JSON.
    pub(crate) key_set: Bytes,
    /// The strong entity tag of the key set, with quotes.
    pub(crate) key_set_tag: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_wakes_those_who_follow_that_task_alone() {
        let signals = TaskSignals::default();
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let (mut first, second) = (signals.follow(one), signals.follow(one));
        let third = signals.follow(other);
        let woken = |signal: &TaskSignal| signal.changes.has_changed().unwrap_or(false);
        signals.changed(one);
        assert_eq!([&first, &second, &third].map(woken), [true, true, false]);
        first.mark_seen();
        assert_eq!([&first, &second].map(woken), [false, true]);
        drop(first);
        signals.changed(one);
        assert!(woken(&second));
        drop((second, third));
        assert!(signals.followed().is_empty());
        signals.changed(one);
        assert!(signals.followed().is_empty());
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
