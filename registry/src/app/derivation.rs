//! What is derived from a card's bytes and kept beside them, and deriving it again after an upgrade.

use std::collections::BTreeSet;

use a2a_card::{DERIVATION, LintContext, Parsed, Severity, all_findings_in, content_digest};
use serde_json::json;
use url::Url;

use super::App;
use super::error::AppError;
use super::ledger::{Ledger, SYSTEM};
use super::signatures::Signatures;
use crate::domain::event::EventKind;
use crate::store::entity::version;
use crate::store::{Write, agents, versions};

/// How many versions are derived again in one transaction.
const PAGE: u64 = 200;

/// What is kept of a reading.
#[derive(Debug)]
pub(super) struct Derived {
    /// JSON of the model.
    pub(super) model: String,
    /// JSON of the findings.
    pub(super) findings: String,
    /// Whether one of them is an error.
    pub(super) has_error: bool,
    /// The number this was made with.
    pub(super) derivation: i32,
}

/// The derivation that this build makes, as the database keeps it.
pub(super) fn current() -> i32 {
    i32::try_from(DERIVATION).unwrap_or(i32::MAX)
}

/// What stands around a card, as far as the linter looks at it.
#[derive(Debug, Default)]
pub(super) struct Surroundings {
    site: Option<Url>,
    previous: Option<Parsed>,
}

impl Surroundings {
    /// Those of a card of that domain, and the bytes that the agent had before.
    pub(super) fn of(domain: &str, previous: Option<&[u8]>) -> Self {
        Self {
            site: Url::parse(&format!("https://{domain}/")).ok(),
            previous: previous.and_then(|bytes| a2a_card::parse(bytes).ok()),
        }
    }

    /// Those of a version that is kept.
    ///
    /// # Errors
    /// Where the database fails.
    pub(super) async fn of_version(write: &Write, row: &version::Model) -> Result<Self, AppError> {
        let agent = agents::agents_by_ids(write, &[row.agent_id]).await?.pop();
        let before = versions::version_page(write, row.agent_id, true, Some(row.id), 1).await?;
        let previous = match before.first() {
            Some(before) => versions::body_by_digest(write, &before.digest).await?,
            None => None,
        };
        Ok(agent.map_or_else(Self::default, |agent| {
            Self::of(&agent.domain, previous.as_deref())
        }))
    }

    fn context(&self) -> LintContext<'_> {
        LintContext {
            card_url: self.site.as_ref(),
            previous: self.previous.as_ref(),
        }
    }
}

/// Writes a reading down.
pub(super) fn derive(
    parsed: &Parsed,
    bytes: &[u8],
    signatures: &Signatures,
    around: &Surroundings,
) -> Derived {
    let mut findings = all_findings_in(parsed, bytes, around.context());
    findings.extend(signatures.findings(bytes));
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let text = |value: Result<String, serde_json::Error>| value.unwrap_or_else(|_| "null".into());
    Derived {
        model: text(serde_json::to_string(&parsed.card)),
        findings: text(serde_json::to_string(&findings)),
        has_error: findings
            .iter()
            .any(|finding| finding.severity == Severity::Error),
        derivation: current(),
    }
}

impl App {
    /// Derives a page of versions again that an older build has derived; answers how many it was. Bytes
    /// and decisions made stay; where something came out differently an event tells of the agent, and
    /// what waits for a decision is put before the rules again.
    ///
    /// # Errors
    /// Where the database fails; the page is tried again then.
    pub async fn derive_again(&self) -> Result<usize, AppError> {
        let old = versions::versions_derived_before(&self.store, current(), PAGE).await?;
        if old.is_empty() {
            return Ok(0);
        }
        let write = self.store.write().await?;
        let mut ledger = Ledger::new(self.now(), self.entropy.as_ref());
        let count = old.len();
        let mut changed = BTreeSet::new();
        for row in old {
            let bytes = versions::body_by_digest(&write, &row.digest).await?;
            let around = Surroundings::of_version(&write, &row).await?;
            let again = rederive(&row, bytes.as_deref(), &around);
            let differs = again
                != version::Model {
                    derivation: again.derivation,
                    ..row.clone()
                };
            if differs {
                let data = json!({"digest": row.digest, "derivation": again.derivation});
                ledger.agent_event(EventKind::AgentDerived, row.agent_id, SYSTEM, data);
                changed.insert(row.agent_id);
            }
            if (&again.content_digest, &again.signing) != (&row.content_digest, &row.signing) {
                // What was decided was decided on these bytes, however they are read today.
                write
                    .decisions_rekey(row.id, &again.content_digest, &again.signing)
                    .await?;
            }
            write.version_derived(again).await?;
        }
        for agent in changed {
            let mut state = self.state_of(&write, agent).await?;
            self.decide_waiting(&write, &mut ledger, &mut state).await?;
        }
        let touched = ledger.write(&write).await?;
        write.commit().await?;
        self.after_write(&touched);
        Ok(count)
    }
}

/// The row as this build derives it; a row whose bytes are gone or no longer read keeps what it has.
fn rederive(row: &version::Model, bytes: Option<&[u8]>, around: &Surroundings) -> version::Model {
    let read = bytes.and_then(|bytes| Some((a2a_card::parse(bytes).ok()?, bytes)));
    let Some((parsed, bytes)) = read else {
        return version::Model {
            derivation: current(),
            ..row.clone()
        };
    };
    let signatures = Signatures::judge_again(&parsed, bytes, &row.key_sets);
    let derived = derive(&parsed, bytes, &signatures, around);
    version::Model {
        content_digest: content_digest(bytes),
        signing: signatures.summary(),
        signature: signatures.state().into(),
        thumbprints: signatures.thumbprints(),
        verdicts: signatures.verdicts(),
        wire_family: parsed.family.as_str().into(),
        model: derived.model,
        findings: derived.findings,
        has_error: derived.has_error,
        derivation: derived.derivation,
        ..row.clone()
    }
}
