//! The lease for decisions by changed rules: the deciding process, its rules, and its progress. It is stored in the
//! database, so that the next process continues from there.

use a2a_registry_domain::admission_rules::DomainPattern;
use a2a_registry_store::{WriteTransaction, settings};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::context::AppContext;
use crate::error::{AppError, Result};

const RULES_RUN_SETTING: &str = "rules_pass";

/// The stored rules run. Each of its transactions locks this row first, so that no two processes decide at the same
/// time, and none decides by rules that a later start has replaced.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct StoredRulesRun {
    pub rules: String,
    /// The `allow_domains` lists by which agents may be decided: that of the last complete run, and those of the runs
    /// begun since.
    pub allow_lists: Vec<Vec<DomainPattern>>,
    pub holder: Option<Uuid>,
    /// The time at which the lease ends unless it is renewed, in microseconds.
    pub until: i64,
    pub after: Option<Uuid>,
    /// Whether all reviews are decided. Reviews that the run itself opens are not decided twice.
    pub reviews_done: bool,
    /// Whether a review up to `after` failed; then the next run starts from the first one again.
    pub review_failed: bool,
    /// Agents and reviews decided so far.
    pub decided: u64,
    /// Total number of agents and reviews to decide.
    pub total: u64,
}

impl StoredRulesRun {
    /// Reads and locks the stored run.
    pub async fn lock(write: &WriteTransaction) -> Result<Self> {
        let text = settings::lock_setting(write, RULES_RUN_SETTING).await?;
        // A run that this build cannot read starts from the beginning.
        let stored = text.and_then(|text| serde_json::from_str(&text).ok());
        Ok(stored.unwrap_or_default())
    }

    pub async fn store(&self, write: &WriteTransaction) -> Result<()> {
        let text = serde_json::to_string(self);
        let text = text.map_err(|error| AppError::internal(error.to_string()))?;
        Ok(write.set_setting(RULES_RUN_SETTING, &text).await?)
    }
}

/// Records that this process was started with its rules, before it reads what they forbid: after the commit no process
/// decides by other rules. An interrupted run by the same rules continues. Returns the stored run.
pub async fn register_process_rules(
    context: &AppContext,
    write: &WriteTransaction,
) -> Result<StoredRulesRun> {
    let mut stored_run = StoredRulesRun::lock(write).await?;
    let rules = context.rules().to_string();
    if stored_run.rules != rules {
        stored_run = StoredRulesRun {
            rules,
            allow_lists: stored_run.allow_lists,
            ..StoredRulesRun::default()
        };
    }
    if !stored_run
        .allow_lists
        .contains(&context.rules().allow_domains)
    {
        let list = context.rules().allow_domains.clone();
        stored_run.allow_lists.push(list);
    }
    if !context.store.is_postgres() {
        // No other process uses this database, so the previous holder has been killed.
        stored_run.holder = None;
    }
    stored_run.store(write).await?;
    Ok(stored_run)
}
