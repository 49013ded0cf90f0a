//! States of previews of policy sets.

use super::text_enum::text_enum;

text_enum! {
    /// The state of a preview.
    PreviewState {
        /// Another preview is being made first.
        Waiting = "waiting",
        Running = "running",
        Done = "done",
        Cancelled = "cancelled",
        Failed = "failed",
    }
}

impl PreviewState {
    /// Whether the preview is still to be made.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Waiting | Self::Running)
    }
}
