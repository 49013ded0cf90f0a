//! What the owner of a domain may do with it and its agents (model.md section 7).

use crate::agents::views::agent_show;
use crate::agents::views::agent_visible;
use crate::crawl::ingest::after_act;
use crate::domains::acts::domain_visible;
use crate::domains::acts::write_with_followers;
use crate::domains::view::domain_view;
use crate::ownership::challenges::challenge;
use crate::ownership::dispute::dispute_over;
use crate::ownership::dispute::may_keep;
use crate::ownership::settle::follow_proofs;
use crate::reviews::queue::state_of;
use std::collections::BTreeMap;

use serde_json::json;
use url::Url;

use crate::caller::Account;
use crate::caller::Caller;
use crate::commit::ledger::Ledger;
use crate::context::Context;
use crate::error::AppError;
use crate::error::ErrorKind;
use crate::ownership::is_disputed;
use a2a_registry_api::limits::{MAX_CONTACT, MAX_LABEL, MAX_LABELS};
use a2a_registry_api::{Agent, AgentPatch, DomainPatch, DomainView, Transfer};
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::ownership::OptOut;
use a2a_registry_domain::role::Permission;
use a2a_registry_store::entity::agent;
use a2a_registry_store::{accounts, domains};

/// Changes how a domain is looked after: its contact, and whether it is listed at all.
///
/// # Errors
/// `Forbidden` for whoever neither owns nor curates it; `Conflict` while it is disputed; `Invalid`;
/// `NotFound`.
pub async fn domain_patch(
    context: &Context,
    caller: &Caller,
    domain: &str,
    patch: &DomainPatch,
) -> Result<DomainView, AppError> {
    let seen = domain_visible(context, caller, domain).await?;
    let account = may_keep(context, caller, &seen).await?;
    let contact = patch.contact.as_deref().map(contact).transpose()?;
    let (write, mut row, followers) = write_with_followers(context, &seen).await?;
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    if let Some(contact) = contact {
        row.contact = contact;
    }
    match patch.opt_out {
        Some(true) => row.opted_out_by = Some(OptOut::Owner.into()),
        Some(false) if row.opted_out_by()? == Some(OptOut::Record) => {
            return Err(AppError::new(
                ErrorKind::Conflict,
                "The domain opts out by a record of its own; remove policy=none from it.",
            ));
        }
        Some(false) => row.opted_out_by = None,
        None => {}
    }
    let data = json!({"contact": row.contact, "opt_out": row.opted_out_by});
    ledger.event(EventKind::DomainUpdated, &row.name, &account.name, data);
    follow_proofs(
        context,
        &write,
        &mut ledger,
        &mut row,
        &followers,
        &account.name,
    )
    .await?;
    let touched = ledger.write(&write).await?;
    write.commit().await?;
    after_act(context, &touched).await;
    context.wake.visits.notify_one();
    domain_view(context, caller, row.id).await
}

/// Gives a domain to another account. What has proved it goes on counting as the account's that proved it,
/// so the new one has to place a record of its own.
///
/// # Errors
/// As [`Context::domain_patch`]; `Invalid` for an account that there is not.
pub async fn domain_transfer(
    context: &Context,
    caller: &Caller,
    domain: &str,
    transfer: &Transfer,
) -> Result<DomainView, AppError> {
    let seen = domain_visible(context, caller, domain).await?;
    let account = may_keep(context, caller, &seen).await?;
    let (write, mut row, followers) = write_with_followers(context, &seen).await?;
    let to = accounts::account_by_name(&write, &transfer.account)
        .await?
        .ok_or_else(|| AppError::invalid("/account", "There is no account of that name."))?;
    let from = row.owner_id.or(row.account_id);
    row.account_id = Some(to.id);
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    let data = json!({"transferred_to": to.name});
    ledger.event(EventKind::DomainUpdated, &row.name, &account.name, data);
    // The one who gives it away claims it no more; a record left in place is no claim.
    for mut proof in domains::proofs_of(&write, &[row.id]).await? {
        if proof.account_id.is_some() && proof.account_id == from && from != Some(to.id) {
            proof.ended_at = Some(ledger.now().0);
            write.proof_update(&proof).await?;
            let data = json!({"method": proof.method, "account": proof.account_id, "reason": "transferred"});
            ledger.event(EventKind::DomainProofEnded, &row.name, &account.name, data);
        }
    }
    if let Some(from) = from {
        write.challenge_end(row.id, from).await?;
    }
    if crate::ownership::is_provable(&row) {
        challenge(context, &write, row.id, to.id).await?;
    }
    follow_proofs(
        context,
        &write,
        &mut ledger,
        &mut row,
        &followers,
        &account.name,
    )
    .await?;
    let touched = ledger.write(&write).await?;
    write.commit().await?;
    after_act(context, &touched).await;
    domain_view(context, caller, row.id).await
}

/// Sets who may find an agent, which its owner may only narrow, and its labels, which curators set.
///
/// # Errors
/// `Forbidden`, `Conflict`, `Invalid`, `NotFound`.
pub async fn agent_patch(
    context: &Context,
    caller: &Caller,
    agent: &str,
    patch: &AgentPatch,
) -> Result<Agent, AppError> {
    let (seen, account) = agent_to_keep(context, caller, agent).await?;
    let write = context.store.write().await?;
    let mut state = state_of(&write, seen.id).await?;
    let curates = caller.may(Permission::Curate);
    if let Some(visibility) = patch.visibility {
        let now = state.agent.visibility()?;
        if !curates && visibility < now {
            return Err(AppError::new(
                ErrorKind::Forbidden,
                format!(
                    "An owner may only narrow who finds an agent; it is {now} now. Ask a curator."
                ),
            ));
        }
        state.agent.visibility = visibility.into();
    }
    if let Some(labels) = &patch.labels {
        caller.demand(Permission::Curate)?;
        check_labels(labels)?;
        state.agent.labels = serde_json::to_string(labels).unwrap_or_else(|_| "{}".into());
    }
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    ledger.touch(&mut state);
    let data = json!({"visibility": patch.visibility, "labels": patch.labels});
    ledger.agent_event(EventKind::AgentUpdated, seen.id, &account.name, data);
    let touched = ledger.write(&write).await?;
    write.commit().await?;
    after_act(context, &touched).await;
    agent_show(context, caller, &seen.id.to_string()).await
}

/// An agent that the caller may change, and the caller: it has proved the agent's domain, or curates.
///
/// # Errors
/// `NotFound`, `Unauthenticated`, `Forbidden`; `Conflict` for whoever has a part in a dispute of its domain.
pub(crate) async fn agent_to_keep<'a>(
    context: &Context,
    caller: &'a Caller,
    agent: &str,
) -> Result<(agent::Model, &'a Account), AppError> {
    let row = match agent_visible(context, caller, agent).await {
        Ok(row) => row,
        // Withheld for the dispute itself, it is hidden from whoever has not registered it.
        Err(error) => return Err(dispute_over(context, caller, agent).await?.unwrap_or(error)),
    };
    let account = may_keep_agent(context, caller, &row).await?;
    Ok((row, account))
}

/// The caller, where it has proved an agent's domain or curates.
async fn may_keep_agent<'a>(
    context: &Context,
    caller: &'a Caller,
    agent: &agent::Model,
) -> Result<&'a Account, AppError> {
    let row = domains::domains_by_ids(&context.store, &[agent.domain_id]).await?;
    let row = row.first().ok_or_else(|| AppError::not_found("agent"))?;
    match &caller.account {
        // Its card proves an agent where its domain is nobody's, disputed ones apart.
        Some(account)
            if row.owner_id.is_none()
                && !is_disputed(row)?
                && agent.claimed_by == Some(account.id) =>
        {
            Ok(account)
        }
        _ => may_keep(context, caller, row).await,
    }
}

/// A contact as it is kept; nothing for an empty one.
fn contact(text: &str) -> Result<Option<String>, AppError> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let fits = text.len() <= MAX_CONTACT
        && Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "mailto" | "https"));
    if fits {
        Ok(Some(text.to_owned()))
    } else {
        Err(AppError::invalid(
            "/contact",
            format!("A contact is a mailto: or https: URL of at most {MAX_CONTACT} characters."),
        ))
    }
}

fn check_labels(labels: &BTreeMap<String, String>) -> Result<(), AppError> {
    let word = |text: &str| {
        !text.is_empty()
            && text.len() <= MAX_LABEL
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte))
    };
    if labels.len() > MAX_LABELS || !labels.iter().all(|(key, value)| word(key) && word(value)) {
        return Err(AppError::invalid(
            "/labels",
            format!(
                "An agent has at most {MAX_LABELS} labels; keys and values are 1 to {MAX_LABEL} letters, digits, - _ . and /."
            ),
        ));
    }
    Ok(())
}
