//! Applies the admission rules to an ingested version, with the rows of its batch.

use a2a_registry_domain::admission_rules::{AdmissionDecision, Rule};
use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_domain::review::VersionState;
use a2a_registry_store::WriteTransaction;
use a2a_registry_store::entity::agent;
use a2a_registry_store::versions::VersionSummary;
use uuid::Uuid;

use crate::admission::change_class::classify_change;
use crate::admission::decision::{AdmissionInput, decide_version};
use crate::commit::agent_state::AgentChangeState;
use crate::commit::change_set::ChangeSet;
use crate::commit::decision_maker::{CRAWLER_ACTOR, DecisionMaker, POLICY_ACTOR};
use crate::context::AppContext;
use crate::crawl::ingest::batch::IngestBatch;
use crate::crawl::ingest::ingested_card::IngestedCard;
use crate::error::Result;

/// Applies the rules again to the newest version of a repeated card, if it is pending: its signature state has
/// changed.
pub async fn redecide_repeated_version(
    context: &AppContext,
    write: &WriteTransaction,
    batch: &IngestBatch,
    change_set: &mut ChangeSet<'_>,
    state: &mut AgentChangeState,
    card: &IngestedCard<'_>,
    has_error: bool,
) -> Result<()> {
    let key = |id: Option<Uuid>| batch.versions.get(&id?);
    let newest = key(card.newest.as_ref().map(|newest| newest.id));
    let Some(pending) = newest.filter(|key| key.state == VersionState::Pending) else {
        return Ok(());
    };
    let change = match key(state.agent.approved_version) {
        None => None,
        Some(approved) => {
            let binding = batch.key_binding(card.source);
            let (agent, fresh) = (&state.agent, &change_set.bodies);
            let change = classify_change(context, write, agent, approved, pending, &binding, fresh);
            Some(change.await?)
        }
    };
    let input = AdmissionInput {
        change,
        has_error,
        ..admission_input(batch, &state.agent, pending)
    };
    decide_ingested_version(context, write, change_set, state, input).await
}

pub async fn decide_ingested_version(
    context: &AppContext,
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    state: &mut AgentChangeState,
    input: AdmissionInput<'_>,
) -> Result<()> {
    // A new agent of a denied domain is put on hold with its first card; existing ones when the rules change.
    if decide_version(context, write, change_set, state, input).await? == AdmissionDecision::Denied
    {
        change_set.place_hold(
            state,
            Hold::Denied,
            POLICY_ACTOR,
            "the domain is on deny_domains",
        );
    }
    Ok(())
}

/// The input of the admission rules from the rows of a batch: everything except the change, the errors, and an
/// approval with the registration.
pub fn admission_input<'a>(
    batch: &'a IngestBatch,
    agent: &agent::Model,
    version: &'a VersionSummary,
) -> AdmissionInput<'a> {
    let name = |id: Uuid| Some(batch.accounts.get(&id)?.name.clone());
    let decisions = batch.decisions.get(&version.agent_id);
    AdmissionInput {
        version,
        change: None,
        has_error: false,
        domain: batch.domains.get(&agent.domain_id),
        decisions: decisions.map_or(&[], Vec::as_slice),
        registration_approval: None,
        submitter: agent.submitter.and_then(name),
        actor: CRAWLER_ACTOR,
    }
}

/// The decision maker of a registration with `--approve`.
pub fn registration_approver(batch: &IngestBatch, account: Uuid) -> Option<DecisionMaker> {
    let account = batch.accounts.get(&account)?;
    Some(DecisionMaker {
        actor: account.name.clone(),
        rule: Rule::Person,
        reason: Some("approved with the registration".into()),
        self_approved: true,
    })
}
