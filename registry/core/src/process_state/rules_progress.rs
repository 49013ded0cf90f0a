//! The progress of the decisions by changed admission rules, as this process knows it.

use std::sync::{Mutex, PoisonError};

use uuid::Uuid;

/// The progress of the decisions by the rules of this process.
#[derive(Debug)]
pub struct RulesProgress {
    /// The name of this process in the lease of the decisions.
    pub lease_owner: Uuid,
    stage: Mutex<RulesStage>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RulesStage {
    /// They have not begun in this process.
    Waiting,
    Deciding {
        /// Agents and reviews that are decided.
        decided: u64,
        /// Agents and reviews to decide in all.
        total: u64,
    },
    /// Another process decides, with this progress when this one last looked.
    Elsewhere {
        decided: u64,
        total: u64,
    },
    /// Some could not be decided, and are tried again.
    Failed {
        count: u64,
    },
    /// Another process was started with other rules since, and decides by those.
    Superseded,
    Decided,
}

impl RulesProgress {
    pub fn new(lease_owner: Uuid) -> Self {
        Self {
            lease_owner,
            stage: Mutex::new(RulesStage::Waiting),
        }
    }

    pub fn set_stage(&self, stage: RulesStage) {
        *self.stage.lock().unwrap_or_else(PoisonError::into_inner) = stage;
    }

    pub fn status_text(&self) -> String {
        let stage = *self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        let hidden = "what they may forbid is hidden meanwhile";
        match stage {
            RulesStage::Waiting => format!("decisions by the present rules are about to begin; {hidden}"),
            RulesStage::Deciding { decided, total } => {
                format!("{decided} of {total} are decided by the changed rules; {hidden}")
            }
            RulesStage::Elsewhere { decided, total } => format!(
                "another process has decided {decided} of {total} by the changed rules; {hidden}"
            ),
            RulesStage::Failed { count } => format!(
                "{count} could not be decided by the changed rules, and are tried again; the log names them; {hidden}"
            ),
            RulesStage::Superseded => {
                "another process was started with other rules since, and decides by those; give all processes the same rules".into()
            }
            RulesStage::Decided => "everything is decided by the present rules".into(),
        }
    }
}
