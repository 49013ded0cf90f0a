//! Policies that apply to an agent and their waivers, for callers with full access.

use a2a_registry_api::limits::MAX_REASON;
use a2a_registry_core::agents::policy_attributes::{agent_attributes, matching_custom_policies};
use a2a_registry_core::agents::records::AgentRecord;
use a2a_registry_core::commit::admission_policies::load_admission_policies;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::Result;
use a2a_registry_core::text::{self, BLOCK, LINE};
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_policy::{Action, Effect};
use a2a_registry_store::accounts;
use uuid::Uuid;

const MAX_POLICIES: usize = 100;

#[derive(Debug)]
pub(crate) struct AgentPoliciesView {
    /// Digest of the card that a waiver from this page is granted for.
    pub digest: String,
    pub policies: Vec<MatchingPolicyView>,
    pub waivers: Vec<WaiverView>,
    pub waivable: Vec<String>,
    pub reason_chars: usize,
}

#[derive(Debug)]
pub(crate) struct MatchingPolicyView {
    pub id: String,
    /// Effect of the policy, such as `forbids discover, invoke (dry run)`.
    pub says: String,
    pub is_waived: bool,
}

#[derive(Debug)]
pub(crate) struct WaiverView {
    pub policy: String,
    pub reason: String,
    pub approver: String,
    pub expires: Timestamp,
    /// Whether the waiver is for the effective content.
    pub counts: bool,
}

impl AgentPoliciesView {
    /// Loads the view; `None` for a caller without full access.
    pub(crate) async fn load(
        context: &AppContext,
        caller: &Caller,
        record: &AgentRecord,
    ) -> Result<Option<Self>> {
        if !caller.has_permission(Permission::SeeAll) {
            return Ok(None);
        }
        let set = load_admission_policies(context, &context.store).await?;
        let matches = matching_custom_policies(&set, &agent_attributes(context, record));
        let waived = record.waived_policies(context.now());
        let may_waive =
            caller.has_permission(Permission::Approve) && record.agent.retired_at.is_none();
        let waivable = matches.iter().filter(|(policy, _)| {
            may_waive && policy.effect == Effect::Forbid && !waived.contains(&policy.id.as_str())
        });
        Ok(Some(Self {
            digest: record.version.digest.clone(),
            waivable: waivable
                .take(MAX_POLICIES)
                .map(|(policy, _)| policy.id.clone())
                .collect(),
            policies: matches
                .iter()
                .take(MAX_POLICIES)
                .map(|(policy, actions)| MatchingPolicyView {
                    id: policy.id.clone(),
                    says: describe_policy_effect(policy.effect, actions, policy.mode.as_str()),
                    is_waived: policy.effect == Effect::Forbid
                        && waived.contains(&policy.id.as_str()),
                })
                .collect(),
            waivers: waiver_views(context, record).await?,
            reason_chars: MAX_REASON,
        }))
    }
}

fn describe_policy_effect(effect: Effect, actions: &[Action], mode: &str) -> String {
    let actions: Vec<&str> = actions.iter().map(|action| action.as_str()).collect();
    let mode = match mode {
        "enforce" => String::new(),
        other => format!(" ({})", other.replace('_', " ")),
    };
    format!("{}s {}{mode}", effect.as_str(), actions.join(", "))
}

async fn waiver_views(context: &AppContext, record: &AgentRecord) -> Result<Vec<WaiverView>> {
    let mut ids: Vec<Uuid> = record.waivers.iter().map(|one| one.approver_id).collect();
    ids.sort_unstable();
    ids.dedup();
    let approvers = accounts::accounts_by_ids(&context.store, &ids).await?;
    let name = |id: Uuid| {
        let account = approvers.iter().find(|account| account.id == id);
        account.map_or("", |account| account.name.as_str())
    };
    let to_view = |one: &a2a_registry_store::entity::waiver::Model| WaiverView {
        policy: text::single_line(&one.policy, LINE),
        reason: text::multiline_text(&one.reason, BLOCK),
        approver: text::single_line(name(one.approver_id), LINE),
        expires: Timestamp(one.expires_at),
        counts: one.content_digest == record.version.content_digest,
    };
    Ok(record.waivers.iter().map(to_view).collect())
}
