//! Approval, with a registration, of the pending card at the registered URL.

use std::collections::BTreeSet;

use a2a_registry_domain::lifecycle::Lifecycle;
use a2a_registry_domain::source::SourceKind;
use a2a_registry_store::entity::{domain, source};
use a2a_registry_store::{WriteTransaction, agents, domains, versions};
use uuid::Uuid;

use crate::commit::agent_state::load_agent_state;
use crate::commit::change_set::ChangeSet;
use crate::commit::decision_maker::DecisionMaker;
use crate::config::GovernanceConfig;
use crate::domains::registration_target::RegistrationTarget;
use crate::error::Result;
use crate::visibility::caller::Caller;

/// Approves the pending newest card of a known agent, for a registration with `--approve`. Called once per batch,
/// whose approvals are written together.
pub async fn approve_pending_card(
    governance: &GovernanceConfig,
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    caller: &Caller,
    row: &domain::Model,
    target: &RegistrationTarget,
    approved_agents: &mut BTreeSet<Uuid>,
) -> Result<()> {
    let account = caller.require_account()?;
    let sources = domains::live_sources_by_domain(write, &[row.id]).await?;
    let anonymous_view = |one: &source::Model| {
        let same = |(kind, url): &(SourceKind, String)| one.kind == *kind && one.url == *url;
        target.sources.iter().any(same)
    };
    let target_sources = sources.iter().filter(|one| anonymous_view(one));
    let Some(agent) = target_sources.filter_map(|source| source.agent_id).next() else {
        return Ok(());
    };
    if !approved_agents.insert(agent) {
        return Ok(());
    }
    if agents::agents_by_ids(write, &[agent]).await?.is_empty() {
        return Ok(());
    }
    let mut state = load_agent_state(write, agent).await?;
    let rejected = state.agent.lifecycle == Lifecycle::Rejected;
    let reviewed_version = state
        .open_review
        .as_ref()
        .map(|question| question.version_id);
    // A rejected first card has no open review, but can be approved now.
    let Some(version) = reviewed_version.or(state.agent.newest_version.filter(|_| rejected)) else {
        return Ok(());
    };
    let change_class = match &state.open_review {
        Some(question) => question.change_class()?,
        None => None,
    };
    if !governance.registrant_may_approve(change_class) {
        return Ok(());
    }
    let Some(key) = versions::version_summaries(write, &[version]).await?.pop() else {
        return Ok(());
    };
    let approver = DecisionMaker::by_person(account, &state, "approved with the registration");
    change_set.approve_version(&mut state, &key, change_class, &approver);
    Ok(())
}
