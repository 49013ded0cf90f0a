//! Applies the admission rules to an ingested version, with the rows of its group.

use a2a_registry_domain::admission_rules::{Rule, Ruling};
use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_domain::review::VersionState;
use a2a_registry_store::Write;
use a2a_registry_store::entity::agent;
use a2a_registry_store::versions::VersionKey;
use uuid::Uuid;

use crate::admission::change::change_between;
use crate::admission::decision::{DecisionInput, decide_on};
use crate::commit::approver::{Approver, CRAWLER, POLICY};
use crate::commit::ledger::Ledger;
use crate::commit::state::AgentState;
use crate::context::Context;
use crate::crawl::ingest::arrival::Arrival;
use crate::crawl::ingest::group::Group;
use crate::error::Result;

/// Applies the rules again to the newest version of a repeated card, if it waits: its signatures are in another state
/// now.
pub async fn rule_again(
    context: &Context,
    write: &Write,
    group: &Group,
    ledger: &mut Ledger<'_>,
    state: &mut AgentState,
    card: &Arrival<'_>,
    has_error: bool,
) -> Result<()> {
    let key = |id: Option<Uuid>| group.versions.get(&id?);
    let newest = key(card.newest.as_ref().map(|newest| newest.id));
    let Some(waiting) = newest.filter(|key| key.state == VersionState::Pending) else {
        return Ok(());
    };
    let change = match key(state.agent.approved_version) {
        None => None,
        Some(approved) => {
            let binding = group.key_binding(card.source);
            let (agent, fresh) = (&state.agent, &ledger.bodies);
            let change = change_between(context, write, agent, approved, waiting, &binding, fresh);
            Some(change.await?)
        }
    };
    let input = DecisionInput {
        change,
        has_error,
        ..decision_input(group, &state.agent, waiting)
    };
    rule(context, write, ledger, state, input).await
}

pub async fn rule(
    context: &Context,
    write: &Write,
    ledger: &mut Ledger<'_>,
    state: &mut AgentState,
    input: DecisionInput<'_>,
) -> Result<()> {
    // A new agent of a denied domain is put on hold with its first card; existing ones when the rules change.
    if decide_on(context, write, ledger, state, input).await? == Ruling::Denied {
        ledger.hold(state, Hold::Denied, POLICY, "the domain is on deny_domains");
    }
    Ok(())
}

/// The input of the rules that the rows of a group provide: all but the change, the errors, and an approval with the
/// registration.
pub fn decision_input<'a>(
    group: &'a Group,
    agent: &agent::Model,
    version: &'a VersionKey,
) -> DecisionInput<'a> {
    let name = |id: Uuid| Some(group.accounts.get(&id)?.name.clone());
    let decisions = group.decisions.get(&version.agent_id);
    DecisionInput {
        version,
        change: None,
        has_error: false,
        domain: group.domains.get(&agent.domain_id),
        decisions: decisions.map_or(&[], Vec::as_slice),
        registration_approval: None,
        submitter: agent.submitter.and_then(name),
        actor: CRAWLER,
    }
}

/// The approver of a registration with `--approve`.
pub fn registration_approver(group: &Group, account: Uuid) -> Option<Approver> {
    let account = group.accounts.get(&account)?;
    Some(Approver {
        actor: account.name.clone(),
        rule: Rule::Person,
        reason: Some("approved with the registration".into()),
        self_approved: true,
    })
}
