//! Waivers: a forbidding policy does not apply to the content of an agent, for a limited time and with a reason.

use std::collections::{BTreeSet, HashMap};

use a2a_registry_api::limits::MAX_WAIVER_DAYS;
use a2a_registry_api::{NewWaiver, Waiver, WaiverList, deserialize_nonempty_parameter};
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::{DAY, Timestamp};
use a2a_registry_policy::Effect;
use a2a_registry_store::entity::{account, agent, waiver};
use a2a_registry_store::versions::{self, VersionSummary};
use a2a_registry_store::waivers::{self, WaiverFilter};
use a2a_registry_store::{Executor, WriteTransaction, accounts, agents};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::IntoParams;
use uuid::Uuid;

use crate::admission::policies::update_policy_hold;
use crate::agents::records::current_version_id;
use crate::agents::views::require_visible_agent;
use crate::commit::admission_policies::load_admission_policies;
use crate::commit::agent_state::{AgentChangeState, load_agent_state};
use crate::commit::change_set::ChangeSet;
use crate::commit::decision_maker::{SYSTEM_ACTOR, check_reason};
use crate::commit::publish::commit_and_await_index;
use crate::context::AppContext;
use crate::error::{AppError, Result};
use crate::paging::{ListPage, PageRequest};
use crate::reviews::approvers::{conflicted_accounts, may_decide_review, reject_excluded_decider};
use crate::reviews::view::own_agent_ids;
use crate::visibility::caller::Caller;

/// Maximum number of waivers in force for one agent.
const MAX_WAIVERS_PER_AGENT: u64 = 50;
/// Number of waivers that are read at once.
const BATCH: u64 = 500;

/// The selection of waivers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct WaiverQuery {
    /// Only waivers of this agent, by identifier or URN.
    #[serde(default, deserialize_with = "deserialize_nonempty_parameter")]
    pub agent: Option<String>,
    /// Only waivers of the policy with this identifier.
    #[serde(default, deserialize_with = "deserialize_nonempty_parameter")]
    pub policy: Option<String>,
    /// Whether to include ended waivers.
    #[serde(default)]
    pub ended: bool,
    /// Waivers on the page, at most 100; by default 20.
    #[serde(default)]
    #[param(minimum = 1, maximum = 100, default = 20)]
    pub page_size: Option<u32>,
    /// `next_page_token` of the previous page.
    #[serde(default, deserialize_with = "deserialize_nonempty_parameter")]
    pub page_token: Option<String>,
}

/// Grants a waiver. Under four-eyes a party may not grant one.
pub async fn waiver_grant(
    context: &AppContext,
    caller: &Caller,
    new: &NewWaiver,
) -> Result<Waiver> {
    let account = caller.require_permission(Permission::Approve)?;
    check_reason(&new.reason)?;
    let expires_at = waiver_expiry(context.now(), new.expires_in_days)?;
    let agent = require_visible_agent(context, caller, &new.agent).await?;
    let set = load_admission_policies(context, &context.store).await?;
    let mut policies = set.policies().iter();
    if !policies.any(|policy| policy.id == new.policy && policy.effect == Effect::Forbid) {
        return Err(AppError::invalid(
            "/policy",
            "this is not a forbidding policy of the newest set; `policy show` lists them",
        ));
    }
    let write = context.store.begin_write().await?;
    let mut state = load_agent_state(&write, agent.id).await?;
    reject_excluded_decider(
        account.id,
        &conflicted_accounts(&write, &context.config(), &state.agent).await?,
    )?;
    let version = require_waivable_version(&write, &state, new, expires_at).await?;
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    let row = waiver::Model {
        id: change_set.new_id(),
        agent_id: agent.id,
        policy: new.policy.clone(),
        content_digest: version.content_digest,
        reason: new.reason.clone(),
        approver_id: account.id,
        created_at: context.now().0,
        expires_at: expires_at.0,
        ended_at: None,
        ended_by: None,
        ended_reason: None,
    };
    write.insert_waiver(row.clone()).await?;
    let data = json!({"waiver": row.id, "policy": row.policy, "digest": version.digest,
        "expires_at": expires_at, "reason": row.reason});
    change_set.add_agent_event(EventKind::WaiverGranted, agent.id, &account.name, data);
    change_set.mark_agent_changed(&mut state);
    update_policy_hold(context, &write, &mut change_set, &mut state).await?;
    commit_and_await_index(context, write, change_set).await?;
    waiver_view(context, row).await
}

/// Returns the version that an agent serves, if a waiver can be granted for it.
async fn require_waivable_version(
    write: &WriteTransaction,
    state: &AgentChangeState,
    new: &NewWaiver,
    expires_at: Timestamp,
) -> Result<VersionSummary> {
    if state.agent.retired_at.is_some() {
        return Err(AppError::conflict("The agent is retired for good."));
    }
    let version_id: Vec<Uuid> = current_version_id(&state.agent).into_iter().collect();
    let version_key = versions::version_summaries(write, &version_id).await?.pop();
    let Some(version) = version_key.filter(|shown| shown.digest == new.digest) else {
        return Err(AppError::conflict(
            "The agent shows another card than the one with this digest. Check it again.",
        ));
    };
    let granted = waivers::active_waivers_by_agent(write, &[state.agent.id]).await?;
    let is_same = |one: &waiver::Model| {
        one.policy == new.policy
            && one.content_digest == version.content_digest
            && one.expires_at > expires_at.plus_micros(-DAY).0
    };
    if granted.iter().any(is_same) {
        return Err(AppError::conflict(
            "This policy is already waived for this content, for about the same time or longer.",
        ));
    }
    if granted.len() as u64 >= MAX_WAIVERS_PER_AGENT {
        return Err(AppError::limit_reached(format!(
            "An agent can have at most {MAX_WAIVERS_PER_AGENT} waivers in force. End one first."
        )));
    }
    Ok(version)
}

fn waiver_expiry(now: Timestamp, days: u32) -> Result<Timestamp> {
    match days {
        1..=MAX_WAIVER_DAYS => Ok(now.plus_micros(i64::from(days) * DAY)),
        _ => Err(AppError::invalid(
            "/expires_in_days",
            format!("a waiver must end after 1 to {MAX_WAIVER_DAYS} days"),
        )),
    }
}

/// Lists waivers: all of them for callers who see everything, and for others those of their own agents.
pub async fn waiver_list(
    context: &AppContext,
    caller: &Caller,
    query: &WaiverQuery,
) -> Result<WaiverList> {
    let account = caller.require_permission(Permission::Read)?;
    let query_key = format!(
        "waivers {:?} {:?} {}",
        query.agent, query.policy, query.ended
    );
    let page = PageRequest {
        page_size: query.page_size,
        page_token: query.page_token.clone(),
    };
    let list = ListPage::new(&context.page_token_signer, caller, &query_key, &page)?;
    let before = list.start_position()?;
    let agent = match &query.agent {
        Some(agent) => Some(require_visible_agent(context, caller, agent).await?.id),
        None => None,
    };
    let agents: Option<Vec<Uuid>> = match account.has_permission(Permission::SeeAll) {
        true => agent.map(|agent| vec![agent]),
        false => {
            let mut own = own_agent_ids(context, account.id).await?;
            own.retain(|id| agent.is_none_or(|agent| agent == *id));
            Some(own)
        }
    };
    let filter = WaiverFilter {
        agents,
        policy: query.policy.clone(),
        include_ended: query.ended,
    };
    let mut rows = waivers::waiver_page(&context.store, &filter, before, list.row_limit()).await?;
    let next_page_token = list.truncate_rows(&mut rows, |last| last.id);
    Ok(WaiverList {
        waivers: waiver_views(&context.store, rows).await?,
        next_page_token,
    })
}

/// Ends a waiver; its policy applies again.
pub async fn end_active_waiver(context: &AppContext, caller: &Caller, id: Uuid) -> Result<()> {
    let account = caller.require_permission(Permission::Curate)?;
    let row = load_active_waiver_row(context, id).await?;
    match end_waiver(context, &row, &account.name, "taken back").await? {
        true => Ok(()),
        false => Err(AppError::no_waiver(id)),
    }
}

/// Loads a waiver that has not ended.
pub async fn load_active_waiver(context: &AppContext, caller: &Caller, id: Uuid) -> Result<Waiver> {
    caller.require_permission(Permission::Curate)?;
    waiver_view(context, load_active_waiver_row(context, id).await?).await
}

async fn load_active_waiver_row(context: &AppContext, id: Uuid) -> Result<waiver::Model> {
    let row = waivers::waiver_by_id(&context.store, id).await?;
    row.filter(|row| row.ended_at.is_none())
        .ok_or_else(|| AppError::no_waiver(id))
}

async fn end_waiver(
    context: &AppContext,
    row: &waiver::Model,
    actor: &str,
    reason: &str,
) -> Result<bool> {
    let write = context.store.begin_write().await?;
    let mut state = load_agent_state(&write, row.agent_id).await?;
    let now = context.now();
    if !write.end_waiver(row.id, now.0, actor, reason).await? {
        return Ok(false);
    }
    let mut change_set = ChangeSet::new(now, context.entropy.as_ref());
    let data = json!({"waiver": row.id, "policy": row.policy, "reason": reason});
    change_set.add_agent_event(EventKind::WaiverEnded, row.agent_id, actor, data);
    change_set.mark_agent_changed(&mut state);
    update_policy_hold(context, &write, &mut change_set, &mut state).await?;
    commit_and_await_index(context, write, change_set).await?;
    Ok(true)
}

/// Ends the waivers that have expired, and those whose approver may no longer grant one. A failure does not stop the
/// others; the first one is returned at the end.
pub async fn end_expired_waivers(context: &AppContext) -> Result<()> {
    let (mut after, mut first_error) = (None, Ok(()));
    loop {
        let rows = waivers::waivers_in_force(&context.store, after, BATCH).await?;
        let Some(last) = rows.last() else {
            return first_error;
        };
        after = Some(last.id);
        let approvers: Vec<Uuid> = rows.iter().map(|row| row.approver_id).collect();
        let approvers = load_accounts_by_id(&context.store, approvers).await?;
        for row in &rows {
            let approver = approvers.get(&row.approver_id);
            let may_grant =
                approver.is_some_and(|account| may_decide_review(account, &BTreeSet::new()));
            let reason = match () {
                () if row.expires_at <= context.now().0 => "expired",
                () if !may_grant => "its approver may no longer grant it",
                () => continue,
            };
            match end_waiver(context, row, SYSTEM_ACTOR, reason).await {
                Err(error) if error.is_database_failure() => return Err(error),
                Err(error) => {
                    let text = error.log_message();
                    tracing::error!(error = text, waiver = %row.id, "cannot end a waiver");
                    first_error = first_error.and(Err(error));
                }
                Ok(_) => {}
            }
        }
    }
}

async fn load_accounts_by_id(
    db: &impl Executor,
    mut ids: Vec<Uuid>,
) -> Result<HashMap<Uuid, account::Model>> {
    ids.sort_unstable();
    ids.dedup();
    let found = accounts::accounts_by_ids(db, &ids).await?.into_iter();
    Ok(found.map(|account| (account.id, account)).collect())
}

async fn waiver_view(context: &AppContext, row: waiver::Model) -> Result<Waiver> {
    let mut views = waiver_views(&context.store, vec![row]).await?;
    views
        .pop()
        .ok_or_else(|| AppError::internal("a waiver has no agent".to_owned()))
}

async fn waiver_views(db: &impl Executor, rows: Vec<waiver::Model>) -> Result<Vec<Waiver>> {
    let approvers = rows.iter().map(|row| row.approver_id).collect();
    let approvers = load_accounts_by_id(db, approvers).await?;
    let mut ids: Vec<Uuid> = rows.iter().map(|row| row.agent_id).collect();
    ids.sort_unstable();
    ids.dedup();
    let agents: HashMap<Uuid, agent::Model> = agents::agents_by_ids(db, &ids)
        .await?
        .into_iter()
        .map(|agent| (agent.id, agent))
        .collect();
    let current_ids: Vec<Uuid> = agents.values().filter_map(current_version_id).collect();
    let current_versions = versions::version_summaries(db, &current_ids).await?;
    let view = |row: waiver::Model| Waiver {
        is_shown: current_versions
            .iter()
            .any(|key| key.agent_id == row.agent_id && key.content_digest == row.content_digest),
        approver: approvers
            .get(&row.approver_id)
            .map(|account| account.name.clone())
            .unwrap_or_default(),
        id: row.id,
        policy: row.policy,
        agent: row.agent_id,
        content_digest: row.content_digest,
        reason: row.reason,
        created_at: Timestamp(row.created_at),
        expires_at: Timestamp(row.expires_at),
        ended_at: row.ended_at.map(Timestamp),
        ended_by: row.ended_by,
        ended_reason: row.ended_reason,
    };
    Ok(rows.into_iter().map(view).collect())
}
