//! The states of a task that the registry does for a client of A2A.

use super::text_enum::text_enum;

text_enum! {
    /// The state of a task, by the words of A2A 0.3.
    TaskState {
        Working = "working",
        /// It waits for a further message of its client.
        InputRequired = "input-required",
        Completed = "completed",
        /// Its client has ended it.
        Canceled = "canceled",
        Failed = "failed",
    }
}

impl TaskState {
    /// Whether nothing happens to it any more.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Canceled | Self::Failed)
    }
}
