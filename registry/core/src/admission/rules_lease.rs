//! The lease of the decisions by changed rules: which process decides, by which rules, and how far it is. It is stored
//! in the database, so that the next process continues from there.

use a2a_registry_domain::admission_rules::DomainPattern;
use a2a_registry_store::{Write, settings};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::context::Context;
use crate::error::{AppError, Result};

const PASS: &str = "rules_pass";

/// The stored pass. Each of its transactions locks this row first, so that no two processes decide at the same time,
/// and none by rules that a later start has replaced.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct KeptPass {
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

impl KeptPass {
    /// Reads and locks it.
    pub async fn lock(write: &Write) -> Result<Self> {
        let text = settings::setting_locked(write, PASS).await?;
        // If this build cannot read it, it begins anew.
        let kept = text.and_then(|text| serde_json::from_str(&text).ok());
        Ok(kept.unwrap_or_default())
    }

    pub async fn put(&self, write: &Write) -> Result<()> {
        let text = serde_json::to_string(self);
        let text = text.map_err(|error| AppError::internal(error.to_string()))?;
        Ok(write.setting_put(PASS, &text).await?)
    }
}

/// Records that this process was started with its rules, before it reads what they forbid: from the commit on, no
/// process decides by other rules. An interrupted pass by the same rules continues. Returns the stored pass.
pub async fn announce(context: &Context, write: &Write) -> Result<KeptPass> {
    let mut kept = KeptPass::lock(write).await?;
    let rules = context.rules.to_string();
    if kept.rules != rules {
        kept = KeptPass {
            rules,
            allow_lists: kept.allow_lists,
            ..KeptPass::default()
        };
    }
    if !kept.allow_lists.contains(&context.rules.allow_domains) {
        let list = context.rules.allow_domains.clone();
        kept.allow_lists.push(list);
    }
    if !context.store.is_postgres() {
        // No other process uses this database, so the previous holder was killed.
        kept.holder = None;
    }
    kept.put(write).await?;
    Ok(kept)
}
