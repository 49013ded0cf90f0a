//! Approval with a registration: of the pending card at the registered URL.

use std::collections::BTreeSet;

use a2a_registry_domain::lifecycle::Lifecycle;
use a2a_registry_domain::source::SourceKind;
use a2a_registry_store::entity::{domain, source};
use a2a_registry_store::{Write, agents, domains, versions};
use uuid::Uuid;

use crate::commit::approver::Approver;
use crate::commit::ledger::Ledger;
use crate::commit::state::state_of;
use crate::config::GovernanceConfig;
use crate::domains::target::Target;
use crate::error::Result;
use crate::visibility::caller::Caller;

/// Approves the waiting newest card of a known agent, for a registration with `--approve`; once in a batch, whose
/// approvals are written together.
pub async fn approve_pending(
    governance: &GovernanceConfig,
    write: &Write,
    ledger: &mut Ledger<'_>,
    caller: &Caller,
    row: &domain::Model,
    new: &Target,
    approved: &mut BTreeSet<Uuid>,
) -> Result<()> {
    let account = caller.account()?;
    let sources = domains::sources_of(write, &[row.id]).await?;
    let anonymous_view = |one: &source::Model| {
        let same = |(kind, url): &(SourceKind, String)| one.kind == *kind && one.url == *url;
        new.sources.iter().any(same)
    };
    let known = sources.iter().filter(|one| anonymous_view(one));
    let Some(agent) = known.filter_map(|source| source.agent_id).next() else {
        return Ok(());
    };
    if !approved.insert(agent) {
        return Ok(());
    }
    if agents::agents_by_ids(write, &[agent]).await?.is_empty() {
        return Ok(());
    }
    let mut state = state_of(write, agent).await?;
    let rejected = state.agent.lifecycle == Lifecycle::Rejected;
    let asked = state
        .open_review
        .as_ref()
        .map(|question| question.version_id);
    // A rejected first card has no open review, but can be approved now.
    let Some(version) = asked.or(state.agent.newest_version.filter(|_| rejected)) else {
        return Ok(());
    };
    let class = match &state.open_review {
        Some(question) => question.change_class()?,
        None => None,
    };
    if !governance.registrant_may_approve(class) {
        return Ok(());
    }
    let Some(key) = versions::version_keys(write, &[version]).await?.pop() else {
        return Ok(());
    };
    let by = Approver::person(account, &state, "approved with the registration");
    ledger.approve(&mut state, &key, class, &by);
    Ok(())
}
