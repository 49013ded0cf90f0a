//! Decides on versions of cards: collects the facts for the admission rules and applies the rules' decision.

use a2a_registry_domain::admission_rules::{
    AdmissionDecision, AdmissionFacts, Rule, decide_admission,
};
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::lifecycle::Lifecycle;
use a2a_registry_domain::ownership::DomainState;
use a2a_registry_domain::review::{ChangeClass, VersionState};
use a2a_registry_domain::signature::SignatureState;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{decision, domain};
use a2a_registry_store::versions::{self, VersionSummary};
use a2a_registry_store::{WriteTransaction, accounts, decisions, domains};
use uuid::Uuid;

use crate::admission::change_class::classify_change;
use crate::admission::policies::{
    AdmissionCandidate, evaluate_and_count_dry_runs, sync_policy_hold,
};
use crate::commit::agent_state::AgentChangeState;
use crate::commit::change_set::ChangeSet;
use crate::commit::decision_maker::DecisionMaker;
use crate::context::AppContext;
use crate::error::Result;
use crate::signatures::DomainKeyBinding;

pub struct AdmissionInput<'a> {
    pub version: &'a VersionSummary,
    /// The class of the change from the served version; `None` if no version is served.
    pub change: Option<ChangeClass>,
    pub has_error: bool,
    pub domain: Option<&'a domain::Model>,
    pub decisions: &'a [decision::Model],
    pub registration_approval: Option<DecisionMaker>,
    pub submitter: Option<String>,
    /// The actor whose action or fetch led to the decision.
    pub actor: &'a str,
}

impl AdmissionInput<'_> {
    /// The last decision by a person on exactly this content, in this ownership generation of the domain. Approvals
    /// older than `approvals_since` have expired. A decision that took effect again later still counts from the time
    /// when the person made it.
    fn last_person_decision(&self, approvals_since: i64) -> Option<bool> {
        let since = self.domain.map_or(0, |row| row.generation_since);
        let key = self.version;
        self.decisions
            .iter()
            .rev()
            .filter(|made| made.at >= since && (!made.approved || made.reason.is_some()))
            .find(|made| made.content_digest == key.content_digest && made.signing == key.signing)
            .filter(|made| !made.approved || made.at >= approvals_since)
            .map(|made| made.approved)
    }
}

/// Applies the admission rules to a version, which is then approved, rejected or put in review. For a denied domain,
/// the version's state does not change; the caller places the hold on the domain's agents.
pub async fn decide_version(
    context: &AppContext,
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    state: &mut AgentChangeState,
    input: AdmissionInput<'_>,
) -> Result<AdmissionDecision> {
    let (key, change) = (input.version, input.change);
    let signature_invalid = key.signature.could_be(SignatureState::Invalid);
    let person_decision =
        input.last_person_decision(approvals_valid_since(context, change_set.now()));
    // An approval given with the registration does not cover an invalid signature, which was not known then.
    let registration_approval = input.registration_approval.filter(|_| {
        !signature_invalid && context.config().governance.registrant_may_approve(change)
    });
    let is_verified = |row: &domain::Model| row.state == DomainState::Verified;
    let candidate = AdmissionCandidate {
        version: key,
        change,
        has_error: input.has_error,
        domain: input.domain,
    };
    let policy_decision =
        evaluate_and_count_dry_runs(context, write, change_set, state, candidate).await?;
    let facts = AdmissionFacts {
        domain: &state.agent.domain,
        verified: input.domain.is_some_and(is_verified),
        change,
        admitted: change_set.version_coverage_level(key).is_admitted(),
        has_error: input.has_error,
        signature_invalid,
        person_approved: registration_approval
            .as_ref()
            .map(|_| true)
            .or(person_decision),
        permitting_rule: policy_decision.permit.as_ref().map(|(rule, _)| *rule),
    };
    let ruling = decide_admission(&facts, &context.rules());
    match ruling {
        AdmissionDecision::Approved(rule) => {
            let permit = policy_decision.permit.clone();
            let approver = approval_decision_maker(rule, registration_approval, permit);
            change_set.approve_version(state, key, change, &approver);
        }
        AdmissionDecision::Rejected => {
            change_set.repeat_rejection(state, key, &DecisionMaker::by_rule(Rule::Person))
        }
        AdmissionDecision::Pending if state.is_under_review(key.id, change) => {}
        AdmissionDecision::Pending => {
            change_set.open_review(state, key, change, input.submitter, input.actor)
        }
        AdmissionDecision::Denied => {}
    }
    let served = state.agent.approved_version;
    if served.is_none_or(|shown| shown == key.id) {
        sync_policy_hold(context, change_set, state, &policy_decision);
    }
    Ok(ruling)
}

/// The maker of an approval: the person who approved with the registration, or else the rule. If a custom policy
/// permitted the version, the reason names the policy.
fn approval_decision_maker(
    rule: Rule,
    registration_approval: Option<DecisionMaker>,
    permit: Option<(Rule, Option<String>)>,
) -> DecisionMaker {
    if let (Rule::Person, Some(approval)) = (rule, registration_approval) {
        return approval;
    }
    let named = permit.filter(|(permitted, _)| *permitted == rule);
    let named = named.and_then(|(_, policy)| policy);
    DecisionMaker {
        reason: named.map(|id| format!("permitted by the policy `{id}`")),
        ..DecisionMaker::by_rule(rule)
    }
}

/// The earliest time of an approval by a person that is still valid; older approvals have expired.
fn approvals_valid_since(context: &AppContext, now: Timestamp) -> i64 {
    let term = context.config().governance.approval_term();
    term.map_or(i64::MIN, |term| now.plus_micros(-term).0)
}

/// Applies the rules again to an agent's newest version, if that version is undecided.
pub async fn redecide_pending_version(
    context: &AppContext,
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    state: &mut AgentChangeState,
    actor: &str,
) -> Result<()> {
    let newest: Vec<Uuid> = state.agent.newest_version.into_iter().collect();
    let waits = versions::version_summaries(write, &newest)
        .await?
        .iter()
        .any(|key| key.state == VersionState::Pending);
    if waits {
        decide_newest_version(context, write, change_set, state, actor).await?;
    }
    Ok(())
}

/// Applies the rules to an agent's newest version, as ingest does with a new one.
pub async fn decide_newest_version(
    context: &AppContext,
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    state: &mut AgentChangeState,
    actor: &str,
) -> Result<()> {
    let (newest, approved) = (state.agent.newest_version, state.agent.approved_version);
    let ids: Vec<Uuid> = newest.into_iter().chain(approved).collect();
    let keys = versions::version_summaries(write, &ids).await?;
    let key = |id: Option<Uuid>| keys.iter().find(|key| Some(key.id) == id);
    let (Some(key), approved) = (key(newest), key(approved)) else {
        return Ok(());
    };
    let row = versions::versions_by_ids(write, &[key.id]).await?.pop();
    let domain = domains::domains_by_ids(write, &[state.agent.domain_id]).await?;
    let bindings = DomainKeyBinding::load_for_domains(write, &domain).await?;
    let binding = bindings.into_values().next().unwrap_or_default();
    let change = match approved {
        Some(approved) => {
            let change =
                classify_change(context, write, &state.agent, approved, key, &binding, &[]);
            Some(change.await?)
        }
        None => None,
    };
    let input = AdmissionInput {
        version: key,
        change,
        has_error: row.is_some_and(|row| row.has_error),
        domain: domain.first(),
        decisions: &decisions::human_decisions_by_agent(write, &[state.agent.id]).await?,
        registration_approval: None,
        submitter: submitter_name(write, state).await?,
        actor,
    };
    decide_version(context, write, change_set, state, input).await?;
    Ok(())
}

/// Revokes an agent's approval and applies the rules to its newest version.
pub async fn revoke_approval(
    context: &AppContext,
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    state: &mut AgentChangeState,
    actor: &str,
) -> Result<()> {
    // An agent in a state that only a later build knows is hidden from everyone, and left to that build.
    if state.agent.lifecycle.known_value().is_none() {
        return Ok(());
    }
    let newest: Vec<Uuid> = state.agent.newest_version.into_iter().collect();
    let Some(key) = versions::version_summaries(write, &newest).await?.pop() else {
        return Ok(());
    };
    let approver = DecisionMaker {
        actor: actor.to_owned(),
        ..DecisionMaker::by_rule(Rule::NoRule)
    };
    change_set.withdraw_approval_reviews(state, &approver);
    state.agent.approved_version = None;
    state.agent.lifecycle = Lifecycle::Pending.into();
    change_set.set_version_state(key.id, VersionState::Pending);
    let data = serde_json::json!({"digest": key.digest});
    change_set.add_agent_event(EventKind::AgentReturned, state.agent.id, actor, data);
    decide_newest_version(context, write, change_set, state, actor).await
}

pub async fn submitter_name(
    write: &WriteTransaction,
    state: &AgentChangeState,
) -> Result<Option<String>> {
    let submitter: Vec<Uuid> = state.agent.submitter.into_iter().collect();
    let submitter = accounts::accounts_by_ids(write, &submitter).await?.pop();
    Ok(submitter.map(|account| account.name))
}
