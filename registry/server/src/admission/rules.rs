//! What follows when the operator's rules have changed between two starts.

use std::collections::BTreeSet;

use a2a_registry_domain::admission::{Facts, Rule, Ruling, decide};
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::lifecycle::{Hold, Lifecycle};
use a2a_registry_domain::ownership::DomainState;
use a2a_registry_domain::review::{ReviewState, VersionState};
use a2a_registry_domain::signature::SignatureState;
use a2a_registry_store::{
    Write, accounts, agents, decisions, domains, reviews, settings, versions,
};
use uuid::Uuid;

use crate::admission::change::change_between;
use crate::commit::ledger::{AgentState, Decider, Ledger, POLICY};
use crate::commit::shown::after_write;
use crate::commit::state::state_of;
use crate::context::Context;
use crate::error::AppError;
use crate::signatures::KeyBinding;

/// The setting that holds the rules of the last start.
const RULES: &str = "rules";
/// Agents looked at in one transaction.
const PAGE: u64 = 500;

/// Holds every agent whose domain is on `deny_domains` now, releases those whose domain no longer
/// is, and takes back what only `--approve-all` had approved where it is no longer given. What waits
/// for a curator is put before the rules again where they are not those of the last start.
///
/// # Errors
/// Where the database fails.
pub async fn apply_rules(context: &Context) -> Result<(), AppError> {
    apply_denials(context).await?;
    if !context.config.governance.approve_all {
        take_back_approve_all(context).await?;
    }
    let rules = context.rules.to_string();
    if settings::setting_get(&context.store, RULES).await?.as_ref() == Some(&rules) {
        return Ok(());
    }
    decide_open_reviews(context).await?;
    // Written last: a start that breaks off before asks the rules once more.
    let write = context.store.write().await?;
    write.setting_put(RULES, &rules).await?;
    Ok(write.commit().await?)
}

/// Puts every agent with an open review before the rules again.
async fn decide_open_reviews(context: &Context) -> Result<(), AppError> {
    let open = Some(ReviewState::Open);
    let mut after = None;
    loop {
        let page = reviews::review_page(&context.store, open, after, PAGE).await?;
        let Some(last) = page.last() else {
            return Ok(());
        };
        after = Some(last.id);
        let write = context.store.write().await?;
        let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
        for question in &page {
            let mut state = state_of(&write, question.agent_id).await?;
            decide_waiting(context, &write, &mut ledger, &mut state).await?;
        }
        let touched = ledger.write(&write).await?;
        write.commit().await?;
        after_write(context, &touched);
    }
}

/// Puts an agent's newest version before the rules again, where nobody has decided on it.
pub(crate) async fn decide_waiting(
    context: &Context,
    write: &Write,
    ledger: &mut Ledger<'_>,
    state: &mut AgentState,
) -> Result<(), AppError> {
    let newest: Vec<Uuid> = state.agent.newest_version.into_iter().collect();
    let waits = versions::version_keys(write, &newest)
        .await?
        .iter()
        .any(|key| key.state == VersionState::Pending);
    if waits {
        decide_newest(context, write, ledger, state).await?;
    }
    Ok(())
}

/// Puts an agent's newest version before the rules, as ingest does with one that has just come.
pub(crate) async fn decide_newest(
    context: &Context,
    write: &Write,
    ledger: &mut Ledger<'_>,
    state: &mut AgentState,
) -> Result<(), AppError> {
    let (newest, approved) = (state.agent.newest_version, state.agent.approved_version);
    let ids: Vec<Uuid> = newest.into_iter().chain(approved).collect();
    let keys = versions::version_keys(write, &ids).await?;
    let key = |id: Option<Uuid>| keys.iter().find(|key| Some(key.id) == id);
    let (Some(key), approved) = (key(newest), key(approved)) else {
        return Ok(());
    };
    let row = versions::versions_by_ids(write, &[key.id]).await?.pop();
    let verified = domains::domains_by_ids(write, &[state.agent.domain_id]).await?;
    let since = verified.first().map_or(0, |row| row.generation_since);
    let same = |digest: &str, signing: &str| {
        digest == key.content_digest.as_str() && signing == key.signing.as_str()
    };
    let bindings = KeyBinding::of_domains(write, &verified).await?;
    let binding = bindings.into_values().next().unwrap_or_default();
    let change = match approved {
        Some(approved) => {
            let change = change_between(context, write, &state.agent, approved, key, &binding, &[]);
            Some(change.await?)
        }
        None => None,
    };
    let facts = Facts {
        domain: &state.agent.domain.clone(),
        verified: verified
            .first()
            .is_some_and(|row| row.state == DomainState::Verified),
        change,
        admitted: ledger.standing_of(key).is_admitted(),
        has_error: row.is_some_and(|row| row.has_error),
        signature_invalid: key.signature.may_be(SignatureState::Invalid),
        person: decisions::decisions_by_person(write, &[state.agent.id])
            .await?
            .iter()
            .rev()
            .filter(|made| made.at >= since)
            .find(|made| same(&made.content_digest, &made.signing))
            .map(|made| made.approved),
    };
    match decide(&facts, &context.rules) {
        Ruling::Approved(rule) => ledger.approve(state, key, change, &Decider::policy(rule)),
        Ruling::Rejected => ledger.refuse(state, key, &Decider::policy(Rule::Person)),
        Ruling::Pending => {
            if state.asks(key.id, change) {
                return Ok(());
            }
            let submitter = submitter_name(write, state).await?;
            ledger.ask(state, key, change, submitter);
        }
        Ruling::Denied => {}
    }
    Ok(())
}

/// Who registered an agent.
pub(crate) async fn submitter_name(
    write: &Write,
    state: &AgentState,
) -> Result<Option<String>, AppError> {
    let submitter: Vec<Uuid> = state.agent.submitter.into_iter().collect();
    let submitter = accounts::accounts_by_ids(write, &submitter).await?.pop();
    Ok(submitter.map(|account| account.name))
}

async fn apply_denials(context: &Context) -> Result<(), AppError> {
    let held: BTreeSet<Uuid> = agents::agents_held(&context.store, Hold::Denied)
        .await?
        .into_iter()
        .map(|row| row.agent_id)
        .collect();
    if context.rules.deny_domains.is_empty() && held.is_empty() {
        return Ok(());
    }
    let mut after = None;
    loop {
        let rows = agents::agents_walk(&context.store, after, PAGE).await?;
        let Some(last) = rows.last() else {
            return Ok(());
        };
        after = Some(last.id);
        let changed: Vec<Uuid> = rows
            .iter()
            .filter(|row| row.retired_at.is_none())
            .filter(|row| context.rules.denies(&row.domain) != held.contains(&row.id))
            .map(|row| row.id)
            .collect();
        change_denials(context, &changed).await?;
    }
}

async fn change_denials(context: &Context, ids: &[Uuid]) -> Result<(), AppError> {
    if ids.is_empty() {
        return Ok(());
    }
    let write = context.store.write().await?;
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    for id in ids {
        let mut state = state_of(&write, *id).await?;
        if context.rules.denies(&state.agent.domain) {
            ledger.hold(
                &mut state,
                Hold::Denied,
                POLICY,
                "the domain is on deny_domains",
            );
        } else {
            let reason = "the domain is no longer on deny_domains";
            ledger.lift(&mut state, Hold::Denied, POLICY, reason);
            // What came while the domain was denied was never put to anybody.
            decide_waiting(context, &write, &mut ledger, &mut state).await?;
        }
    }
    let touched = ledger.write(&write).await?;
    write.commit().await?;
    after_write(context, &touched);
    Ok(())
}

/// Every agent whose served version nothing but `--approve-all` has approved goes back to waiting.
async fn take_back_approve_all(context: &Context) -> Result<(), AppError> {
    let mut after = 0;
    loop {
        let rows =
            decisions::decisions_by_rule(&context.store, Rule::ApproveAll.as_str(), after, PAGE)
                .await?;
        let Some(last) = rows.last() else {
            return Ok(());
        };
        after = last.id;
        let ids: BTreeSet<Uuid> = rows.iter().map(|row| row.agent_id).collect();
        for id in ids {
            take_back(context, id).await?;
        }
    }
}

/// Takes an agent's approval back and asks for it again. Whoever decides next decides on what it says now.
///
/// # Errors
/// Where the database fails.
pub(crate) async fn ask_again(
    context: &Context,
    write: &Write,
    ledger: &mut Ledger<'_>,
    state: &mut AgentState,
    actor: &str,
) -> Result<(), AppError> {
    // Nobody is shown an agent of which only a later build knows where it stands, and it stays for that build.
    if state.agent.lifecycle.known().is_none() {
        return Ok(());
    }
    let newest: Vec<Uuid> = state.agent.newest_version.into_iter().collect();
    let Some(key) = versions::version_keys(write, &newest).await?.pop() else {
        return Ok(());
    };
    state.agent.approved_version = None;
    state.agent.lifecycle = Lifecycle::Pending.into();
    ledger.set_state(key.id, VersionState::Pending);
    let data = serde_json::json!({"digest": key.digest});
    ledger.agent_event(EventKind::AgentReturned, state.agent.id, actor, data);
    decide_newest(context, write, ledger, state).await
}

async fn take_back(context: &Context, agent: Uuid) -> Result<(), AppError> {
    let write = context.store.write().await?;
    let mut state = state_of(&write, agent).await?;
    let Some(approved) = state.agent.approved_version else {
        return Ok(());
    };
    let made = decisions::decisions_on(&write, &[agent]).await?;
    let last = made
        .iter()
        .rev()
        .find(|row| row.version_id == approved && row.approved);
    let only_by_flag = last.is_some_and(|row| row.rule == Rule::ApproveAll.as_str());
    if !only_by_flag || state.agent.retired_at.is_some() {
        return Ok(());
    }
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    ask_again(context, &write, &mut ledger, &mut state, POLICY).await?;
    let touched = ledger.write(&write).await?;
    write.commit().await?;
    after_write(context, &touched);
    Ok(())
}
