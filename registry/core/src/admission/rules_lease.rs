//! The lease of the decisions by changed rules: which process decides, by which rules, and how far it is. It is stored
//! in the database, so that the next process continues from there.

use a2a_registry_domain::admission_rules::DomainPattern;
use a2a_registry_store::{WriteTransaction, settings};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::context::AppContext;
use crate::error::{AppError, Result};

const RULES_RUN_SETTING: &str = "rules_pass";

/// The stored pass. Each of its transactions locks this row first, so that no two processes decide at the same time,
/// and none by rules that a later start has replaced.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct StoredRulesRun {
    pub rules: String,
    /// The lists of `allow_domains` by which agents may be decided: that of the last complete pass, and those of the
    /// passes begun since.
    pub allow_lists: Vec<Vec<DomainPattern>>,
    pub holder: Option<Uuid>,
    /// When the lease ends unless it is renewed, in microseconds.
    pub until: i64,
    pub after: Option<Uuid>,
    /// Whether all of them are decided. Those that the pass itself opens are not decided twice.
    pub reviews_done: bool,
    /// Whether one of them up to `after` failed; then the next pass begins with the first one again.
    pub review_failed: bool,
    /// Agents and reviews that are decided.
    pub decided: u64,
    /// Agents and reviews to decide in all.
    pub total: u64,
}

impl StoredRulesRun {
    /// Reads and locks it.
    pub async fn lock(write: &WriteTransaction) -> Result<Self> {
        let text = settings::lock_setting(write, RULES_RUN_SETTING).await?;
        // If this build cannot read it, it begins anew.
        let stored = text.and_then(|text| serde_json::from_str(&text).ok());
        Ok(stored.unwrap_or_default())
    }

    pub async fn store(&self, write: &WriteTransaction) -> Result<()> {
        let text = serde_json::to_string(self);
        let text = text.map_err(|error| AppError::internal(error.to_string()))?;
        Ok(write.set_setting(RULES_RUN_SETTING, &text).await?)
    }
}

/// Records that this process was started with its rules, before it reads what they forbid: from the commit on, no
/// process decides by other rules. An interrupted pass by the same rules continues. Returns the stored pass.
pub async fn register_rules(
    context: &AppContext,
    write: &WriteTransaction,
) -> Result<StoredRulesRun> {
    let mut stored_run = StoredRulesRun::lock(write).await?;
    let rules = context.rules.to_string();
    if stored_run.rules != rules {
        stored_run = StoredRulesRun {
            rules,
            allow_lists: stored_run.allow_lists,
            ..StoredRulesRun::default()
        };
    }
    if !stored_run
        .allow_lists
        .contains(&context.rules.allow_domains)
    {
        let list = context.rules.allow_domains.clone();
        stored_run.allow_lists.push(list);
    }
    if !context.store.is_postgres() {
        // No other process uses this database, so the previous holder was killed.
        stored_run.holder = None;
    }
    stored_run.store(write).await?;
    Ok(stored_run)
}
