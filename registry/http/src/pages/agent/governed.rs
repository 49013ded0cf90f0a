//! The policies that apply to an agent and their waivers, for callers who see everything.

use a2a_registry_api::limits::MAX_REASON;
use a2a_registry_core::agents::policy_facts::{facts, matching};
use a2a_registry_core::agents::records::AgentRecord;
use a2a_registry_core::commit::admitting::admitting_set;
use a2a_registry_core::context::Context;
use a2a_registry_core::error::Result;
use a2a_registry_core::text::{self, BLOCK, LINE};
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_policy::{Action, Effect};
use a2a_registry_store::accounts;
use uuid::Uuid;

const POLICIES: usize = 100;

#[derive(Debug)]
pub(crate) struct GovernedView {
    /// The card that a waiver from this page is granted for.
    pub digest: String,
    pub policies: Vec<MatchView>,
    pub waivers: Vec<WaiverView>,
    pub waivable: Vec<String>,
    pub reason_chars: usize,
}

#[derive(Debug)]
pub(crate) struct MatchView {
    pub id: String,
    /// Such as `forbids discover, invoke (dry run)`.
    pub says: String,
    pub is_waived: bool,
}

#[derive(Debug)]
pub(crate) struct WaiverView {
    pub policy: String,
    pub reason: String,
    pub approver: String,
    pub expires: Timestamp,
    /// Whether it is for the content that is shown.
    pub counts: bool,
}

impl GovernedView {
    /// `None` for a caller who does not see everything.
    pub(crate) async fn load(
        context: &Context,
        caller: &Caller,
        record: &AgentRecord,
    ) -> Result<Option<Self>> {
        if !caller.may(Permission::SeeAll) {
            return Ok(None);
        }
        let set = admitting_set(context, &context.store).await?;
        let found = matching(&set, &facts(context, record));
        let waived = record.waived_policies(context.now());
        let may_waive = caller.may(Permission::Approve) && record.agent.retired_at.is_none();
        let waivable = found.iter().filter(|(policy, _)| {
            may_waive && policy.effect == Effect::Forbid && !waived.contains(&policy.id.as_str())
        });
        Ok(Some(Self {
            digest: record.version.digest.clone(),
            waivable: waivable
                .take(POLICIES)
                .map(|(policy, _)| policy.id.clone())
                .collect(),
            policies: found
                .iter()
                .take(POLICIES)
                .map(|(policy, actions)| MatchView {
                    id: policy.id.clone(),
                    says: says(policy.effect, actions, policy.mode.as_str()),
                    is_waived: policy.effect == Effect::Forbid
                        && waived.contains(&policy.id.as_str()),
                })
                .collect(),
            waivers: waivers(context, record).await?,
            reason_chars: MAX_REASON,
        }))
    }
}

fn says(effect: Effect, actions: &[Action], mode: &str) -> String {
    let actions: Vec<&str> = actions.iter().map(|action| action.as_str()).collect();
    let mode = match mode {
        "enforce" => String::new(),
        other => format!(" ({})", other.replace('_', " ")),
    };
    format!("{}s {}{mode}", effect.as_str(), actions.join(", "))
}

async fn waivers(context: &Context, record: &AgentRecord) -> Result<Vec<WaiverView>> {
    let mut ids: Vec<Uuid> = record.waivers.iter().map(|one| one.approver_id).collect();
    ids.sort_unstable();
    ids.dedup();
    let approvers = accounts::accounts_by_ids(&context.store, &ids).await?;
    let name = |id: Uuid| {
        let account = approvers.iter().find(|account| account.id == id);
        account.map_or("", |account| account.name.as_str())
    };
    let view = |one: &a2a_registry_store::entity::waiver::Model| WaiverView {
        policy: text::line(&one.policy, LINE),
        reason: text::block(&one.reason, BLOCK),
        approver: text::line(name(one.approver_id), LINE),
        expires: Timestamp(one.expires_at),
        counts: one.content_digest == record.version.content_digest,
    };
    Ok(record.waivers.iter().map(view).collect())
}
