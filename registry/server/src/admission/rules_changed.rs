//! Applies the operator's rules when the server starts, if they have changed since its last start.

use std::collections::BTreeSet;

use a2a_registry_domain::admission_rules::Rule;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_domain::review::{ReviewKind, ReviewState};
use a2a_registry_store::entity::{domain, entry, review};
use a2a_registry_store::reviews::ReviewFilter;
use a2a_registry_store::{agents, decisions, entries, reviews, settings};
use uuid::Uuid;

use crate::admission::decision::{decide_waiting, revoke_approval};
use crate::commit::approver::POLICY;
use crate::commit::ledger::Ledger;
use crate::commit::publish::after_write;
use crate::commit::state::state_of;
use crate::context::Context;
use crate::entry_rows::{denies_entry, entry_event};
use crate::error::AppError;

/// The setting that holds the rules of the last start.
const RULES: &str = "rules";
/// Agents, reviews or decisions per page. The changes to a page of agents or reviews are one transaction.
const PAGE: u64 = 500;

/// Puts agents of domains on `deny_domains` on hold, and lifts that hold for domains that are no longer listed. Revokes
/// the approvals that `--approve-all` gave if the option is no longer set. Applies the rules again to every open review
/// if they are not those of the last start.
pub async fn apply_rules(context: &Context) -> Result<(), AppError> {
    apply_denials(context).await?;
    if !context.config.governance.approve_all {
        revoke_approve_all(context).await?;
    }
    let rules = context.rules.to_string();
    if settings::setting_get(&context.store, RULES).await?.as_ref() == Some(&rules) {
        return Ok(());
    }
    decide_open_reviews(context).await?;
    // Written last: after an interrupted start the next one applies the rules again.
    let write = context.store.write().await?;
    write.setting_put(RULES, &rules).await?;
    Ok(write.commit().await?)
}

/// Decides again, by the changed rules, on every agent with an open review. One that fails stops none of the others.
///
/// # Errors
/// Where the database fails as a whole; else the first failure of those that failed, after the others.
pub(crate) async fn decide_open_reviews(context: &Context) -> Result<(), AppError> {
    let open = ReviewFilter {
        state: Some(ReviewState::Open),
        kind: Some(ReviewKind::Admission),
        ..ReviewFilter::default()
    };
    let (mut after, mut failed) = (None, Ok(()));
    loop {
        let page = reviews::review_page(&context.store, &open, after, PAGE).await?;
        let Some(last) = page.last() else {
            return failed;
        };
        after = Some(last.id);
        match decide_again(context, &page).await {
            Err(error) if error.is_of_database() => return Err(error),
            Err(_) => {}
            Ok(()) => continue,
        }
        for review in &page {
            let decided = decide_again(context, std::slice::from_ref(review)).await;
            if let Err(error) = &decided {
                let text = error.for_log();
                tracing::error!(error = text, review = %review.id, "rules could not act on a review");
            }
            failed = failed.and(decided);
        }
    }
}

/// Decides again on the agents of these reviews, in one transaction.
async fn decide_again(context: &Context, open: &[review::Model]) -> Result<(), AppError> {
    let write = context.store.write().await?;
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    for review in open {
        let mut state = state_of(&write, review.agent_id).await?;
        decide_waiting(context, &write, &mut ledger, &mut state, POLICY).await?;
    }
    let touched = ledger.write(&write).await?;
    write.commit().await?;
    after_write(context, &touched);
    Ok(())
}

/// Puts agents on hold whose domain `deny_domains` lists, and lifts the hold of the others.
async fn apply_denials(context: &Context) -> Result<(), AppError> {
    apply_denials_to_entries(context).await?;
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

/// Hides the entries that `deny_domains` hides, and shows the others.
async fn apply_denials_to_entries(context: &Context) -> Result<(), AppError> {
    let mut after = None;
    loop {
        let page = entries::entries_walk(&context.store, after, PAGE).await?;
        let Some((last, _)) = page.last() else {
            return Ok(());
        };
        after = Some(last.id);
        let denied = |row: &entry::Model, of: &domain::Model| {
            denies_entry(&context.rules, &of.name, &row.identifier)
        };
        let changed = page
            .into_iter()
            .filter(|(row, of)| row.denied != denied(row, of));
        let changed: Vec<entry::Model> = changed.map(|(row, _)| row).collect();
        if changed.is_empty() {
            continue;
        }
        let write = context.store.write().await?;
        let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
        for row in &changed {
            entry_event(&mut ledger, EventKind::EntryChanged, row, POLICY);
        }
        for hides in [true, false] {
            let ids: Vec<Uuid> = changed
                .iter()
                .filter(|row| row.denied != hides)
                .map(|row| row.id)
                .collect();
            write.entries_set_denied(&ids, hides).await?;
        }
        let touched = ledger.write(&write).await?;
        write.commit().await?;
        after_write(context, &touched);
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
            // Versions that were fetched while the domain was denied have no decision yet.
            decide_waiting(context, &write, &mut ledger, &mut state, POLICY).await?;
        }
    }
    let touched = ledger.write(&write).await?;
    write.commit().await?;
    after_write(context, &touched);
    Ok(())
}

/// Revokes the approval of every agent whose approved version has its latest approval from `--approve-all`.
async fn revoke_approve_all(context: &Context) -> Result<(), AppError> {
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
            revoke_if_by_approve_all(context, id).await?;
        }
    }
}

async fn revoke_if_by_approve_all(context: &Context, agent: Uuid) -> Result<(), AppError> {
    let write = context.store.write().await?;
    let mut state = state_of(&write, agent).await?;
    let Some(approved) = state.agent.approved_version else {
        return Ok(());
    };
    let decided = decisions::decisions_on(&write, &[agent]).await?;
    let latest = decided
        .iter()
        .rev()
        .find(|row| row.version_id == approved && row.approved && row.rule != Rule::BreakGlass);
    let is_by_flag = latest.is_some_and(|row| row.rule == Rule::ApproveAll);
    if !is_by_flag || state.agent.retired_at.is_some() {
        return Ok(());
    }
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    revoke_approval(context, &write, &mut ledger, &mut state, POLICY).await?;
    let touched = ledger.write(&write).await?;
    write.commit().await?;
    after_write(context, &touched);
    Ok(())
}
