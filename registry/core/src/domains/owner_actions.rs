//! Changes of a domain by its owner (docs/publish/prove.md#what-an-owner-may-do).

use std::collections::BTreeSet;

use a2a_registry_api::limits::MAX_CONTACT_CHARS;
use a2a_registry_api::{DomainPatch, DomainView, Transfer};
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::ownership::OptOut;
use a2a_registry_store::entity::domain;
use a2a_registry_store::{WriteTransaction, domains};
use serde_json::json;
use url::Url;
use uuid::Uuid;

use crate::commit::change_set::ChangeSet;
use crate::commit::locks::lock_domain_with_dependents;
use crate::commit::publish::commit_and_await_index;
use crate::context::AppContext;
use crate::domains::actions::{find_enabled_account, find_visible_domain};
use crate::domains::endpoint_permission::set_endpoint_checks;
use crate::domains::view::domain_view;
use crate::error::{AppError, Result};
use crate::ownership::apply_check::update_domain_ownership;
use crate::ownership::authorization::{require_owner_or_curator, require_whole_domain_owner};
use crate::ownership::challenges::insert_challenges;
use crate::ownership::owner_vouches::{remove_owner_vouch, store_owner_vouch};
use crate::secrets::source_credentials::remove_credentials;
use crate::visibility::caller::Caller;

const TRANSFERRED: &str = "transferred";

/// Changes a domain's contact, its opt-out, and whether its endpoints are checked.
pub async fn domain_patch(
    context: &AppContext,
    caller: &Caller,
    domain: &str,
    patch: &DomainPatch,
) -> Result<DomainView> {
    let unlocked = find_visible_domain(context, caller, domain).await?;
    require_owner_or_curator(&context.store, caller, &unlocked, context.now()).await?;
    let contact = patch.contact.as_deref().map(parse_contact).transpose()?;
    let (write, mut row, followers) = lock_domain_with_dependents(context, &unlocked).await?;
    // Another account may have proved it since.
    let account = match patch.opt_out {
        Some(true) => require_whole_domain_owner(&write, caller, &row, context.now()).await?,
        _ => require_owner_or_curator(&write, caller, &row, context.now()).await?,
    };
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    if let Some(contact) = contact {
        row.contact = contact;
    }
    match patch.opt_out {
        Some(true) => row.opted_out_by = Some(OptOut::Owner.into()),
        Some(false) if row.opted_out_by()? == Some(OptOut::Record) => {
            return Err(AppError::conflict(
                "The domain is opted out by its own TXT record. Remove policy=none from that record.",
            ));
        }
        Some(false) => row.opted_out_by = None,
        None => {}
    }
    let mut data = json!({"contact": row.contact, "opt_out": row.opted_out_by});
    if let Some(enabled) = patch.endpoint_checks {
        set_endpoint_checks(&write, &row, enabled).await?;
        data["endpoint_checks"] = enabled.into();
    }
    change_set.add_event(EventKind::DomainUpdated, &row.name, &account.name, data);
    update_domain_ownership(
        context,
        &write,
        &mut change_set,
        &mut row,
        &followers,
        &account.name,
    )
    .await?;
    commit_and_await_index(context, write, change_set).await?;
    context.signals.visits.notify_one();
    domain_view(context, caller, row.id).await
}

/// Transfers a domain to another account. A record or file proves the domain only for the account that it names, so
/// the new owner must place its own. An owner vouch also names one account, and ends. A transfer decides a dispute:
/// the proofs of all other accounts end.
pub async fn domain_transfer(
    context: &AppContext,
    caller: &Caller,
    domain: &str,
    transfer: &Transfer,
) -> Result<DomainView> {
    let unlocked = find_visible_domain(context, caller, domain).await?;
    require_owner_or_curator(&context.store, caller, &unlocked, context.now()).await?;
    let (write, mut row, followers) = lock_domain_with_dependents(context, &unlocked).await?;
    // Another account may have proved the domain since, and a former owner must not end its proof.
    let account = require_owner_or_curator(&write, caller, &row, context.now()).await?;
    let new_owner = find_enabled_account(&write, &transfer.account).await?;
    let former_owner = row.domain_owner_at(context.now()).or(row.account_id);
    row.account_id = Some(new_owner.id);
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    let data = json!({"transferred_to": new_owner.name});
    change_set.add_event(EventKind::DomainUpdated, &row.name, &account.name, data);
    let accounts = (former_owner, new_owner.id);
    end_losing_proofs(&write, &mut change_set, &row, accounts, &account.name).await?;
    let why = (account.name.as_str(), TRANSFERRED);
    remove_credentials(&write, &mut change_set, &row, why, |_| true).await?;
    if row.can_be_proved() {
        insert_challenges(context, &write, &[row.id], new_owner.id).await?;
    }
    let has_other_owner = row.vouched_owner.is_some_and(|owner| owner != new_owner.id);
    let vouch_ended = has_other_owner
        && remove_owner_vouch(
            &write,
            &mut change_set,
            &mut row,
            &account.name,
            TRANSFERRED,
        )
        .await?;
    let changed = update_domain_ownership(
        context,
        &write,
        &mut change_set,
        &mut row,
        &followers,
        &account.name,
    )
    .await?;
    if vouch_ended && !changed {
        store_owner_vouch(context, &write, &mut change_set, &row).await?;
    }
    commit_and_await_index(context, write, change_set).await?;
    domain_view(context, caller, row.id).await
}

/// Ends the proofs of the former owner, or of the losers of a dispute: a record left in place does not claim the domain
/// again.
async fn end_losing_proofs(
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    row: &domain::Model,
    (former_owner, new_owner): (Option<Uuid>, Uuid),
    actor: &str,
) -> Result<()> {
    // Without an owner, every account with a proof is a party to a dispute, even while the domain has opted out.
    let is_disputed = row.owner_id.is_none();
    let mut losing_accounts: BTreeSet<Uuid> = former_owner.into_iter().collect();
    for mut proof in domains::valid_proofs_by_domain(write, &[row.id]).await? {
        let loses = |one: &Uuid| *one != new_owner && (is_disputed || Some(*one) == former_owner);
        if let Some(loser) = proof.account_id.filter(loses) {
            losing_accounts.insert(loser);
            proof.ended_at = Some(change_set.now().0);
            write.update_proof(&proof).await?;
            let data =
                json!({"method": proof.method, "account": proof.account_id, "reason": TRANSFERRED});
            change_set.add_event(EventKind::DomainProofEnded, &row.name, actor, data);
        }
    }
    for former in losing_accounts {
        write.delete_challenge(row.id, former).await?;
    }
    Ok(())
}

/// Parses a contact; `None` if it is empty.
fn parse_contact(text: &str) -> Result<Option<String>> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let fits = text.len() <= MAX_CONTACT_CHARS
        && Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "mailto" | "https"));
    if fits {
        Ok(Some(text.to_owned()))
    } else {
        Err(AppError::invalid(
            "/contact",
            format!(
                "A contact must be a mailto: or https: URL of at most {MAX_CONTACT_CHARS} characters."
            ),
        ))
    }
}
