//! The registry as an agent: its signed card as it is served, the signal that a task has changed, and the new tasks that
//! wait to be stored.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use a2a_registry_store::entity::a2a_task;
use bytes::Bytes;
use tokio::sync::{OwnedMutexGuard, oneshot, watch};

use crate::error::AppError;

/// The state of the registry as an agent, in this process.
#[derive(Debug, Default)]
pub(crate) struct OwnAgent {
    /// The card; unset while the registry is no agent, and in commands that serve nothing.
    pub(crate) card: OnceLock<OwnCard>,
    /// Changes whenever this process has changed a task.
    pub(crate) tasks: watch::Sender<u64>,
    /// Tasks that are not stored yet.
    pub(crate) new_tasks: NewTasks,
}

/// New tasks that wait to be stored together. Each is of a request that waits for it, so there are no more of them than
/// open requests.
#[derive(Debug, Default)]
pub(crate) struct NewTasks {
    waiting: Mutex<Vec<NewTask>>,
    turn: Arc<tokio::sync::Mutex<()>>,
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

    /// Waits until those before are stored. Whoever holds this stores all that wait by then.
    pub(crate) async fn turn(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.turn).lock_owned().await
    }

    /// All that wait.
    pub(crate) fn take(&self) -> Vec<NewTask> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *waiting)
    }
}

/// The registry's own card.
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

impl OwnAgent {
    /// Wakes whoever waits for a change of a task.
    pub(crate) fn task_changed(&self) {
        self.tasks
            .send_modify(|count| *count = count.wrapping_add(1));
    }
}
