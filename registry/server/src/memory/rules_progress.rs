//! How far the decisions by changed admission rules are, as this process knows it.

use std::sync::{Mutex, PoisonError};

use uuid::Uuid;

/// How far the decisions by the rules of this process are.
#[derive(Debug)]
pub struct RulesProgress {
    /// The name of this process in the lease of the decisions.
    pub(crate) holder: Uuid,
    stage: Mutex<Stage>,
}

/// The stage of the decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// They have not begun in this process.
    Waiting,
    /// This process decides.
    Deciding {
        /// Agents and reviews that are decided.
        decided: u64,
        /// All that have to be.
        total: u64,
    },
    /// Another process decides, and had decided that many of all when this one last looked.
    Elsewhere {
        /// Agents and reviews that are decided.
        decided: u64,
        /// All that have to be.
        total: u64,
    },
    /// Some could not be decided, and are tried again.
    Failed {
        /// Their number.
        count: u64,
    },
    /// Another process was started with other rules since, and decides by those.
    Superseded,
    /// Everything is decided.
    Decided,
}

impl RulesProgress {
    /// Of a process with this name, in which no decision has begun.
    pub(crate) fn new(holder: Uuid) -> Self {
        Self {
            holder,
            stage: Mutex::new(Stage::Waiting),
        }
    }

    /// Records the stage.
    pub(crate) fn note(&self, stage: Stage) {
        *self.stage.lock().unwrap_or_else(PoisonError::into_inner) = stage;
    }

    /// The stage as a sentence.
    pub(crate) fn sentence(&self) -> String {
        let stage = *self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        let hidden = "what they may forbid is hidden meanwhile";
        match stage {
            Stage::Waiting => format!("decisions by the present rules are about to begin; {hidden}"),
            Stage::Deciding { decided, total } => {
                format!("{decided} of {total} are decided by the changed rules; {hidden}")
            }
            Stage::Elsewhere { decided, total } => format!(
                "another process has decided {decided} of {total} by the changed rules; {hidden}"
            ),
            Stage::Failed { count } => format!(
                "{count} could not be decided by the changed rules, and are tried again; the log names them; {hidden}"
            ),
            Stage::Superseded => {
                "another process was started with other rules since, and decides by those; give all processes the same rules".into()
            }
            Stage::Decided => "everything is decided by the present rules".into(),
        }
    }
}
