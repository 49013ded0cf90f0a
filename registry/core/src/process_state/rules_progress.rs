//! The progress of decisions under changed admission rules, as this process knows it.

use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use uuid::Uuid;

/// The progress of decisions under the rules of this process.
#[derive(Debug)]
pub struct RulesRunProgress {
    /// The name of this process in the lease of the decisions.
    pub lease_owner: Uuid,
    /// Whether a reload failed that the database may have recorded: then even the rules from before it must be
    /// recorded again.
    pub has_uncertain_reload: AtomicBool,
    stage: Mutex<RulesRunStage>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RulesRunStage {
    /// The decisions have not begun in this process.
    Waiting,
    Deciding {
        /// Number of decided agents and reviews.
        decided: u64,
        /// Total number of agents and reviews to decide.
        total: u64,
    },
    /// Another process decides, with this progress when last checked.
    Elsewhere {
        decided: u64,
        total: u64,
    },
    /// Some agents or reviews could not be decided and will be retried.
    Failed {
        count: u64,
    },
    /// Another process was started later with different rules and decides by those.
    Superseded,
    Decided,
}

impl RulesRunProgress {
    pub fn new(lease_owner: Uuid) -> Self {
        Self {
            lease_owner,
            has_uncertain_reload: AtomicBool::new(false),
            stage: Mutex::new(RulesRunStage::Waiting),
        }
    }

    pub fn set_stage(&self, stage: RulesRunStage) {
        *self.stage.lock().unwrap_or_else(PoisonError::into_inner) = stage;
    }

    pub fn status_text(&self) -> String {
        let stage = *self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        let hidden = "any agent that they may forbid is hidden meanwhile";
        match stage {
            RulesRunStage::Waiting => format!("decisions under the current rules are about to begin; {hidden}"),
            RulesRunStage::Deciding { decided, total } => {
                format!("{decided} of {total} are decided under the changed rules; {hidden}")
            }
            RulesRunStage::Elsewhere { decided, total } => format!(
                "another process has decided {decided} of {total} under the changed rules; {hidden}"
            ),
            RulesRunStage::Failed { count } => format!(
                "{count} could not be decided under the changed rules and will be retried; the log names them; \
                 {hidden}"
            ),
            RulesRunStage::Superseded => {
                "another process was started later with other rules and applies those; give all processes the same \
                 rules".into()
            }
            RulesRunStage::Decided => "everything is decided under the current rules".into(),
        }
    }
}
