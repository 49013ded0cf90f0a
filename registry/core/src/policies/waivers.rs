//! Waivers: a policy that forbids does not count for the content of an agent, for a limited time and a reason.

use std::collections::{BTreeSet, HashMap};

use a2a_registry_api::{NewWaiver, Waiver, WaiverList};
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::{DAY, Timestamp};
use a2a_registry_policy::Effect;
use a2a_registry_store::entity::{account, agent, waiver};
use a2a_registry_store::versions::{self, VersionKey};
use a2a_registry_store::waivers::{self, WaiverFilter};
use a2a_registry_store::{Handle, Write, accounts, agents};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::IntoParams;
use uuid::Uuid;

use crate::admission::policies::follow_policies;
use crate::agents::records::shown_version;
use crate::agents::views::agent_visible;
use crate::commit::admitting::admitting_set;
use crate::commit::approver::{SYSTEM, check_reason};
use crate::commit::ledger::Ledger;
use crate::commit::publish::commit_act;
use crate::commit::state::{AgentState, state_of};
use crate::context::Context;
use crate::error::{AppError, Result};
use crate::paging::{ListPage, PageRequest, not_empty};
use crate::reviews::approvers::{may_decide, parties, refuse_party};
use crate::visibility::caller::Caller;

/// Maximum duration of a waiver, in days.
pub const MAX_WAIVER_DAYS: i64 = 180;
/// Waivers of one agent that are in force.
const MAX_WAIVERS: u64 = 50;
/// Waivers that are read at once.
const PAGE: u64 = 500;

/// Which waivers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct WaiverQuery {
    /// Those of this agent: its identifier or URN.
    #[serde(default, deserialize_with = "not_empty")]
    pub agent: Option<String>,
    /// Those of the policy with this identifier.
    #[serde(default, deserialize_with = "not_empty")]
    pub policy: Option<String>,
    /// Whether those that have ended too.
    #[serde(default)]
    pub ended: bool,
    /// Waivers of a page, at most 100.
    #[serde(default)]
    #[param(minimum = 1, maximum = 100, default = 20)]
    pub page_size: Option<u32>,
    /// The token of the page.
    #[serde(default, deserialize_with = "not_empty")]
    pub page_token: Option<String>,
}

/// Under four-eyes a party may not grant one.
pub async fn waiver_grant(context: &Context, caller: &Caller, new: &NewWaiver) -> Result<Waiver> {
    let account = caller.demand(Permission::Approve)?;
    check_reason(&new.reason)?;
    let expires_at = end_after(context.now(), new.expires_in_days)?;
    let seen = agent_visible(context, caller, &new.agent).await?;
    let set = admitting_set(context, &context.store).await?;
    let mut policies = set.policies().iter();
    if !policies.any(|policy| policy.id == new.policy && policy.effect == Effect::Forbid) {
        return Err(AppError::invalid(
            "/policy",
            "this is no policy of the newest set that forbids; `policy show` lists them",
        ));
    }
    let write = context.store.write().await?;
    let mut state = state_of(&write, seen.id).await?;
    refuse_party(
        account.id,
        &parties(&write, &context.config, &state.agent).await?,
    )?;
    let shown = waivable(&write, &state, new, expires_at).await?;
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    let row = waiver::Model {
        id: ledger.new_id(),
        agent_id: seen.id,
        policy: new.policy.clone(),
        content_digest: shown.content_digest,
        reason: new.reason.clone(),
        approver_id: account.id,
        created_at: context.now().0,
        expires_at: expires_at.0,
        ended_at: None,
        ended_by: None,
        ended_reason: None,
    };
    write.waiver_insert(row.clone()).await?;
    let data = json!({"waiver": row.id, "policy": row.policy, "digest": shown.digest,
        "expires_at": expires_at, "reason": row.reason});
    ledger.agent_event(EventKind::WaiverGranted, seen.id, &account.name, data);
    ledger.touch(&mut state);
    follow_policies(context, &write, &mut ledger, &mut state).await?;
    commit_act(context, write, ledger).await?;
    one_view(context, row).await
}

/// The version that an agent shows, if a waiver can be granted for it.
async fn waivable(
    write: &Write,
    state: &AgentState,
    new: &NewWaiver,
    expires_at: Timestamp,
) -> Result<VersionKey> {
    if state.agent.retired_at.is_some() {
        return Err(AppError::conflict("The agent is retired for good."));
    }
    let shown: Vec<Uuid> = shown_version(&state.agent).into_iter().collect();
    let shown = versions::version_keys(write, &shown).await?.pop();
    let Some(shown) = shown.filter(|shown| shown.digest == new.digest) else {
        return Err(AppError::conflict(
            "The agent shows another card than the one with this digest; look at it again.",
        ));
    };
    let granted = waivers::waivers_of(write, &[state.agent.id]).await?;
    let is_same = |one: &waiver::Model| {
        one.policy == new.policy
            && one.content_digest == shown.content_digest
            && one.expires_at > expires_at.plus(-DAY).0
    };
    if granted.iter().any(is_same) {
        return Err(AppError::conflict(
            "This policy is waived for this content already, for about as long as that or longer.",
        ));
    }
    if granted.len() as u64 >= MAX_WAIVERS {
        return Err(AppError::limit_reached(format!(
            "An agent has at most {MAX_WAIVERS} waivers in force; end one first."
        )));
    }
    Ok(shown)
}

fn end_after(now: Timestamp, days: u32) -> Result<Timestamp> {
    match i64::from(days) {
        days @ 1..=MAX_WAIVER_DAYS => Ok(now.plus(days * DAY)),
        _ => Err(AppError::invalid(
            "/expires_in_days",
            format!("a waiver ends after 1 to {MAX_WAIVER_DAYS} days"),
        )),
    }
}

pub async fn waiver_list(
    context: &Context,
    caller: &Caller,
    query: &WaiverQuery,
) -> Result<WaiverList> {
    caller.demand(Permission::SeeAll)?;
    let about = format!(
        "waivers {:?} {:?} {}",
        query.agent, query.policy, query.ended
    );
    let page = PageRequest {
        page_size: query.page_size,
        page_token: query.page_token.clone(),
    };
    let list = ListPage::new(&context.signer, caller, &about, &page)?;
    let before = list.start()?;
    let agent = match &query.agent {
        Some(agent) => Some(agent_visible(context, caller, agent).await?.id),
        None => None,
    };
    let filter = WaiverFilter {
        agent,
        policy: query.policy.clone(),
        ended: query.ended,
    };
    let mut rows = waivers::waiver_page(&context.store, &filter, before, list.limit()).await?;
    let next_page_token = list.cut(&mut rows, |last| last.id);
    Ok(WaiverList {
        waivers: views(&context.store, rows).await?,
        next_page_token,
    })
}

/// Ends a waiver; the policy counts again.
pub async fn waiver_end(context: &Context, caller: &Caller, id: Uuid) -> Result<()> {
    let account = caller.demand(Permission::Curate)?;
    let row = row_in_force(context, id).await?;
    match end(context, &row, &account.name, "taken back").await? {
        true => Ok(()),
        false => Err(AppError::no_waiver(id)),
    }
}

/// A waiver that has not ended, before it is ended.
pub async fn waiver_in_force(context: &Context, caller: &Caller, id: Uuid) -> Result<Waiver> {
    caller.demand(Permission::Curate)?;
    one_view(context, row_in_force(context, id).await?).await
}

async fn row_in_force(context: &Context, id: Uuid) -> Result<waiver::Model> {
    let row = waivers::waiver_by_id(&context.store, id).await?;
    row.filter(|row| row.ended_at.is_none())
        .ok_or_else(|| AppError::no_waiver(id))
}

async fn end(context: &Context, row: &waiver::Model, by: &str, reason: &str) -> Result<bool> {
    let write = context.store.write().await?;
    let mut state = state_of(&write, row.agent_id).await?;
    let now = context.now();
    if !write.waiver_end(row.id, now.0, by, reason).await? {
        return Ok(false);
    }
    let mut ledger = Ledger::new(now, context.entropy.as_ref());
    let data = json!({"waiver": row.id, "policy": row.policy, "reason": reason});
    ledger.agent_event(EventKind::WaiverEnded, row.agent_id, by, data);
    ledger.touch(&mut state);
    follow_policies(context, &write, &mut ledger, &mut state).await?;
    commit_act(context, write, ledger).await?;
    Ok(true)
}

/// Ends the waivers that have expired, and those whose approver may no longer grant one. A failure does not stop the
/// others, and the first is returned after them.
pub async fn end_waivers(context: &Context) -> Result<()> {
    let (mut after, mut failed) = (None, Ok(()));
    loop {
        let rows = waivers::waivers_in_force(&context.store, after, PAGE).await?;
        let Some(last) = rows.last() else {
            return failed;
        };
        after = Some(last.id);
        let approvers: Vec<Uuid> = rows.iter().map(|row| row.approver_id).collect();
        let approvers = accounts_by_id(&context.store, approvers).await?;
        for row in &rows {
            let approver = approvers.get(&row.approver_id);
            let grants = approver.is_some_and(|account| may_decide(account, &BTreeSet::new()));
            let reason = match () {
                () if row.expires_at <= context.now().0 => "expired",
                () if !grants => "its approver may not grant it any more",
                () => continue,
            };
            match end(context, row, SYSTEM, reason).await {
                Err(error) if error.is_of_database() => return Err(error),
                Err(error) => {
                    let text = error.for_log();
                    tracing::error!(error = text, waiver = %row.id, "a waiver could not be ended");
                    failed = failed.and(Err(error));
                }
                Ok(_) => {}
            }
        }
    }
}

async fn accounts_by_id(
    on: &impl Handle,
    mut ids: Vec<Uuid>,
) -> Result<HashMap<Uuid, account::Model>> {
    ids.sort_unstable();
    ids.dedup();
    let found = accounts::accounts_by_ids(on, &ids).await?.into_iter();
    Ok(found.map(|account| (account.id, account)).collect())
}

async fn one_view(context: &Context, row: waiver::Model) -> Result<Waiver> {
    let mut views = views(&context.store, vec![row]).await?;
    views
        .pop()
        .ok_or_else(|| AppError::internal("a waiver has no agent".to_owned()))
}

async fn views(on: &impl Handle, rows: Vec<waiver::Model>) -> Result<Vec<Waiver>> {
    let approvers = rows.iter().map(|row| row.approver_id).collect();
    let approvers = accounts_by_id(on, approvers).await?;
    let mut ids: Vec<Uuid> = rows.iter().map(|row| row.agent_id).collect();
    ids.sort_unstable();
    ids.dedup();
    let agents: HashMap<Uuid, agent::Model> = agents::agents_by_ids(on, &ids)
        .await?
        .into_iter()
        .map(|agent| (agent.id, agent))
        .collect();
    let shown: Vec<Uuid> = agents.values().filter_map(shown_version).collect();
    let shown = versions::version_keys(on, &shown).await?;
    let view = |row: waiver::Model| Waiver {
        is_shown: shown
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
