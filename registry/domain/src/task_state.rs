//! States of the tasks that the registry runs for A2A clients.

use super::text_enum::text_enum;

text_enum! {
    /// The state of a task, in the terms of A2A 0.3.
    TaskState {
        Working = "working",
        /// The task waits for another message from its client.
        InputRequired = "input-required",
        Completed = "completed",
        /// The client canceled the task.
        Canceled = "canceled",
        Failed = "failed",
    }
}

impl TaskState {
    /// Whether the task cannot change anymore.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Canceled | Self::Failed)
    }
}
