//! The registry as an agent: its signed card as it is served, and the signal that a task has changed.

use std::sync::OnceLock;

use bytes::Bytes;
use tokio::sync::watch;

/// The state of the registry as an agent, in this process.
#[derive(Debug, Default)]
pub(crate) struct OwnAgent {
    /// The card; unset while the registry is no agent, and in commands that serve nothing.
    pub(crate) card: OnceLock<OwnCard>,
    /// Changes whenever this process has changed a task.
    pub(crate) tasks: watch::Sender<u64>,
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
