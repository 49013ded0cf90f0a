//! What follows when the operator's rules have changed between two starts.

use std::collections::BTreeSet;

use a2a_registry_domain::admission::Rule;
use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_domain::review::ReviewState;
use a2a_registry_store::{agents, decisions, reviews, settings};
use uuid::Uuid;

use crate::admission::decision::{ask_again, decide_waiting};
use crate::commit::ledger::{Ledger, POLICY};
use crate::commit::publish::after_write;
use crate::commit::state::state_of;
use crate::context::Context;
use crate::error::AppError;

/// The setting that holds the rules of the last start.
const RULES: &str = "rules";
/// Agents looked at in one transaction.
const PAGE: u64 = 500;

/// Holds every agent whose domain is on `deny_domains` now, releases those whose domain no longer
/// is, and takes back what only `--approve-all` had approved where it is no longer given. What waits
/// for a curator is put before the rules again where they are not those of the last start.
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
            decide_waiting(context, &write, &mut ledger, &mut state, POLICY).await?;
        }
        let touched = ledger.write(&write).await?;
        write.commit().await?;
        after_write(context, &touched);
    }
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
            decide_waiting(context, &write, &mut ledger, &mut state, POLICY).await?;
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
            decisions::decisions_by_rule(&context.store, Rule::ApproveAll, after, PAGE).await?;
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
    let only_by_flag = last.is_some_and(|row| row.rule == Rule::ApproveAll);
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
