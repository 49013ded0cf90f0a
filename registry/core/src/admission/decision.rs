//! The decision on a version of a card: the input of the rules, and the consequences of their ruling.

use a2a_registry_domain::admission_rules::{Facts, Rule, Ruling, decide};
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::lifecycle::Lifecycle;
use a2a_registry_domain::ownership::DomainState;
use a2a_registry_domain::review::{ChangeClass, VersionState};
use a2a_registry_domain::signature::SignatureState;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{decision, domain};
use a2a_registry_store::versions::{self, VersionKey};
use a2a_registry_store::{Write, accounts, decisions, domains};
use uuid::Uuid;

use crate::admission::change::change_between;
use crate::admission::policies::{Question, hold_by_policy, said_in_decision};
use crate::commit::approver::Approver;
use crate::commit::ledger::Ledger;
use crate::commit::state::AgentState;
use crate::context::Context;
use crate::error::Result;
use crate::signatures::KeyBinding;

pub struct DecisionInput<'a> {
    pub version: &'a VersionKey,
    /// The class of its change against the served version; `None` if none is served.
    pub change: Option<ChangeClass>,
    pub has_error: bool,
    pub domain: Option<&'a domain::Model>,
    pub decisions: &'a [decision::Model],
    pub registration_approval: Option<Approver>,
    pub submitter: Option<String>,
    /// The actor whose act or fetch submits it to the rules.
    pub actor: &'a str,
}

impl DecisionInput<'_> {
    /// The last decision of a person on exactly this content, in this generation of the domain. An approval from before
    /// `oldest` has ended; an earlier decision that took effect again later still counts from its own time.
    fn persons_decision(&self, oldest: i64) -> Option<bool> {
        let since = self.domain.map_or(0, |row| row.generation_since);
        let key = self.version;
        self.decisions
            .iter()
            .rev()
            .filter(|made| made.at >= since && (!made.approved || made.reason.is_some()))
            .find(|made| made.content_digest == key.content_digest && made.signing == key.signing)
            .filter(|made| !made.approved || made.at >= oldest)
            .map(|made| made.approved)
    }
}

/// Decides on a version by the rules: it is approved, rejected or put in review. Nothing happens for a denied domain:
/// the caller puts its agents on hold.
pub async fn decide_on(
    context: &Context,
    write: &Write,
    ledger: &mut Ledger<'_>,
    state: &mut AgentState,
    case: DecisionInput<'_>,
) -> Result<Ruling> {
    let (key, change) = (case.version, case.change);
    let signature_invalid = key.signature.may_be(SignatureState::Invalid);
    let person = case.persons_decision(oldest_approval(context, ledger.now()));
    // An approval with the registration was given before the invalid signature was known.
    let approval = case
        .registration_approval
        .filter(|_| !signature_invalid && context.config.governance.registrant_may_approve(change));
    let verified = |row: &domain::Model| row.state == DomainState::Verified;
    let question = Question {
        version: key,
        change,
        has_error: case.has_error,
        domain: case.domain,
    };
    let said = said_in_decision(context, write, ledger, state, question).await?;
    let facts = Facts {
        domain: &state.agent.domain,
        verified: case.domain.is_some_and(verified),
        change,
        admitted: ledger.coverage_of(key).is_admitted(),
        has_error: case.has_error,
        signature_invalid,
        person: approval.as_ref().map(|_| true).or(person),
        permitted: said.permit.as_ref().map(|(rule, _)| *rule),
    };
    let ruling = decide(&facts, &context.rules);
    match ruling {
        Ruling::Approved(rule) => {
            let by = approver(rule, approval, said.permit);
            ledger.approve(state, key, change, &by);
        }
        Ruling::Rejected => ledger.refuse(state, key, &Approver::policy(Rule::Person)),
        Ruling::Pending if state.is_under_review(key.id, change) => {}
        Ruling::Pending => ledger.open_review(state, key, change, case.submitter, case.actor),
        Ruling::Denied => {}
    }
    let shown = state.agent.approved_version;
    if shown.is_none_or(|shown| shown == key.id) {
        hold_by_policy(ledger, state, &said.forbids);
    }
    Ok(ruling)
}

/// Who approves by a rule: the person who approved with the registration, or the rule, with the written policy as its
/// reason.
fn approver(
    rule: Rule,
    approval: Option<Approver>,
    permit: Option<(Rule, Option<String>)>,
) -> Approver {
    if let (Rule::Person, Some(approval)) = (rule, approval) {
        return approval;
    }
    let named = permit.filter(|(permitted, _)| *permitted == rule);
    let named = named.and_then(|(_, policy)| policy);
    Approver {
        reason: named.map(|id| format!("permitted by the policy `{id}`")),
        ..Approver::policy(rule)
    }
}

/// The time from which approvals by persons count; older ones have ended.
fn oldest_approval(context: &Context, now: Timestamp) -> i64 {
    let term = context.config.governance.term();
    term.map_or(i64::MIN, |term| now.plus(-term).0)
}

/// Applies the rules again to an agent's newest version, if it is not decided yet.
pub async fn decide_waiting(
    context: &Context,
    write: &Write,
    ledger: &mut Ledger<'_>,
    state: &mut AgentState,
    actor: &str,
) -> Result<()> {
    let newest: Vec<Uuid> = state.agent.newest_version.into_iter().collect();
    let waits = versions::version_keys(write, &newest)
        .await?
        .iter()
        .any(|key| key.state == VersionState::Pending);
    if waits {
        decide_newest(context, write, ledger, state, actor).await?;
    }
    Ok(())
}

/// Applies the rules to an agent's newest version, as ingest does to a new one.
pub async fn decide_newest(
    context: &Context,
    write: &Write,
    ledger: &mut Ledger<'_>,
    state: &mut AgentState,
    actor: &str,
) -> Result<()> {
    let (newest, approved) = (state.agent.newest_version, state.agent.approved_version);
    let ids: Vec<Uuid> = newest.into_iter().chain(approved).collect();
    let keys = versions::version_keys(write, &ids).await?;
    let key = |id: Option<Uuid>| keys.iter().find(|key| Some(key.id) == id);
    let (Some(key), approved) = (key(newest), key(approved)) else {
        return Ok(());
    };
    let row = versions::versions_by_ids(write, &[key.id]).await?.pop();
    let domain = domains::domains_by_ids(write, &[state.agent.domain_id]).await?;
    let bindings = KeyBinding::of_domains(write, &domain).await?;
    let binding = bindings.into_values().next().unwrap_or_default();
    let change = match approved {
        Some(approved) => {
            let change = change_between(context, write, &state.agent, approved, key, &binding, &[]);
            Some(change.await?)
        }
        None => None,
    };
    let case = DecisionInput {
        version: key,
        change,
        has_error: row.is_some_and(|row| row.has_error),
        domain: domain.first(),
        decisions: &decisions::decisions_by_person(write, &[state.agent.id]).await?,
        registration_approval: None,
        submitter: submitter_name(write, state).await?,
        actor,
    };
    decide_on(context, write, ledger, state, case).await?;
    Ok(())
}

/// Revokes an agent's approval and applies the rules to its newest version.
pub async fn revoke_approval(
    context: &Context,
    write: &Write,
    ledger: &mut Ledger<'_>,
    state: &mut AgentState,
    actor: &str,
) -> Result<()> {
    // An agent in a state that only a later build knows is shown to no one, and left to that build.
    if state.agent.lifecycle.known().is_none() {
        return Ok(());
    }
    let newest: Vec<Uuid> = state.agent.newest_version.into_iter().collect();
    let Some(key) = versions::version_keys(write, &newest).await?.pop() else {
        return Ok(());
    };
    let by = Approver {
        actor: actor.to_owned(),
        ..Approver::policy(Rule::NoRule)
    };
    ledger.withdraw_of_approval(state, &by);
    state.agent.approved_version = None;
    state.agent.lifecycle = Lifecycle::Pending.into();
    ledger.set_state(key.id, VersionState::Pending);
    let data = serde_json::json!({"digest": key.digest});
    ledger.agent_event(EventKind::AgentReturned, state.agent.id, actor, data);
    decide_newest(context, write, ledger, state, actor).await
}

pub async fn submitter_name(write: &Write, state: &AgentState) -> Result<Option<String>> {
    let submitter: Vec<Uuid> = state.agent.submitter.into_iter().collect();
    let submitter = accounts::accounts_by_ids(write, &submitter).await?.pop();
    Ok(submitter.map(|account| account.name))
}
