//! Actions on domains: list, show, vouch and recrawl.

use a2a_registry_api::{DomainList, DomainView, Recrawl, RecrawlAccepted, Vouch};
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::ownership::Method;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_search::is_visible_to;
use a2a_registry_store::entity::{account, agent, domain, proof};
use a2a_registry_store::{WriteTransaction, accounts, agents, domains, ownership, registrants};
use serde_json::json;
use uuid::Uuid;

use crate::admission::coverage_updates::update_domain_coverage;
use crate::agents::policy_attributes::{is_visibility_policy_free, visibility_labels_or_decoy};
use crate::commit::change_set::ChangeSet;
use crate::commit::decision_maker::check_reason;
use crate::commit::locks::{lock_domain, lock_domain_with_dependents};
use crate::commit::publish::{commit_and_await_index, commit_changes};
use crate::context::AppContext;
use crate::domains::view::{domain_view, domain_views};
use crate::error::{AppError, ErrorKind, Result};
use crate::ownership::apply_check::update_domain_ownership;
use crate::ownership::is_dispute_party;
use crate::paging::{ListPage, PageRequest};
use crate::visibility::caller::{Caller, CallerAccount};
use crate::visibility::{ListingState, visibility_labels};
use crate::visits::visit_request;

/// Lists live domains by name: all for a caller with [`Permission::SeeAll`], else the caller's own.
pub async fn domain_list(
    context: &AppContext,
    caller: &Caller,
    page: &PageRequest,
) -> Result<DomainList> {
    let account = caller.require_permission(Permission::Read)?;
    let account_filter = (!caller.has_permission(Permission::SeeAll)).then_some(account.id);
    let list = ListPage::new(&context.page_token_signer, caller, "domains", page)?;
    let after: Option<String> = list.start_position()?;
    let mut rows = domains::live_domains_page(
        &context.store,
        account_filter,
        context.now(),
        after.as_deref(),
        list.row_limit(),
    )
    .await?;
    let next_page_token = list.truncate_rows(&mut rows, |last| last.name.clone());
    Ok(DomainList {
        domains: domain_views(context, caller, rows).await?,
        next_page_token,
    })
}

/// Maximum number of domains that [`load_own_domains`] returns.
const MAX_OWN_DOMAINS: u64 = 100;

/// Loads the first domains, by name, that the caller has registered or proved, even if it may see others.
pub async fn load_own_domains(context: &AppContext, caller: &Caller) -> Result<Vec<DomainView>> {
    let account = caller.require_permission(Permission::Read)?;
    let rows = domains::live_domains_page(
        &context.store,
        Some(account.id),
        context.now(),
        None,
        MAX_OWN_DOMAINS,
    )
    .await?;
    domain_views(context, caller, rows).await
}

pub async fn domain_show(
    context: &AppContext,
    caller: &Caller,
    domain: &str,
) -> Result<DomainView> {
    let row = find_visible_domain(context, caller, domain).await?;
    domain_view(context, caller, row.id).await
}

/// Records an admin's vouch for a host and one of its registrants, which makes the domain verified. The host gets no
/// owner by it; an owner is vouched for with
/// [`vouch_for_domain_owner`](crate::domains::owner_vouch::vouch_for_domain_owner).
pub async fn vouch_for_domain(
    context: &AppContext,
    caller: &Caller,
    domain: &str,
    vouch: &Vouch,
) -> Result<DomainView> {
    let admin = caller.require_permission(Permission::Administer)?;
    check_reason(&vouch.reason)?;
    let row = find_visible_domain(context, caller, domain).await?;
    let now = context.now();
    let (write, mut row, followers) = lock_domain_with_dependents(context, &row).await?;
    let named = find_vouched_account(&write, vouch).await?;
    if store_domain_vouch(&write, row.id, admin, vouch, named, now).await? {
        let mut change_set = ChangeSet::new(now, context.entropy.as_ref());
        let data = json!({"reason": vouch.reason, "account": vouch.account});
        change_set.add_event(EventKind::DomainVouched, &row.name, &admin.name, data);
        let changed = update_domain_ownership(
            context,
            &write,
            &mut change_set,
            &mut row,
            &followers,
            &admin.name,
        )
        .await?;
        if !changed {
            update_domain_coverage(context, &write, &mut change_set, &row).await?;
        }
        commit_and_await_index(context, write, change_set).await?;
    }
    domain_view(context, caller, row.id).await
}

async fn find_vouched_account(write: &WriteTransaction, vouch: &Vouch) -> Result<Option<Uuid>> {
    let Some(name) = &vouch.account else {
        return Ok(None);
    };
    Ok(Some(find_enabled_account(write, name).await?.id))
}

/// Loads the enabled account with this name.
pub async fn find_enabled_account(write: &WriteTransaction, name: &str) -> Result<account::Model> {
    let account = accounts::account_by_name(write, name).await?;
    let account = account.filter(account::Model::is_account_active);
    account.ok_or_else(|| {
        let detail = format!("No enabled account has the name {name}.");
        AppError::invalid("/account", detail)
    })
}

/// Stores an admin's vouch as the only proof of its method; returns whether it is new. The same vouch for the same
/// account is not written again.
async fn store_domain_vouch(
    write: &WriteTransaction,
    domain: i64,
    admin: &CallerAccount,
    vouch: &Vouch,
    vouched_account: Option<Uuid>,
    now: Timestamp,
) -> Result<bool> {
    let proofs = domains::valid_proofs_by_domain(write, &[domain]).await?;
    let existing = proofs
        .into_iter()
        .find(|proof| proof.method == Method::Operator);
    match existing {
        Some(known) if known.vouched_account == vouched_account => return Ok(false),
        Some(known) => {
            write
                .update_proof(&proof::Model {
                    vouched_account,
                    reason: Some(vouch.reason.clone()),
                    ..known
                })
                .await?;
        }
        None => {
            let new_vouch = domain_vouch_proof(domain, admin, vouch, vouched_account, now);
            write.insert_proof(new_vouch).await?;
        }
    }
    Ok(true)
}

/// Whether a visit at that time is already requested.
fn is_visit_requested(row: &domain::Model, due: i64) -> bool {
    match row.lease {
        Some(_) => row.wanted_at.is_some(),
        None => row.visit_interval_us.is_none() && row.visit_due_at == Some(due),
    }
}

/// Schedules the next visit at the earliest time that the spacing allows. A second request before that visit gets the
/// same response.
pub async fn domain_recrawl(
    context: &AppContext,
    caller: &Caller,
    domain: &str,
    recrawl: &Recrawl,
) -> Result<RecrawlAccepted> {
    let unlocked = find_visible_domain(context, caller, domain).await?;
    reject_opted_out(&unlocked)?;
    let now = context.now().0;
    let write = context.store.begin_write().await?;
    let row = lock_domain(&write, &unlocked).await?;
    let id = row.id;
    let is_under_way = row.lease.is_some() && row.leased_until.is_some_and(|until| until > now);
    let earliest = now.max(row.not_before);
    let due = match row.visit_due_at {
        // An earlier scheduled visit stays, so that a repeated request changes nothing.
        Some(waiting) if !is_under_way => waiting.min(earliest),
        _ => earliest,
    };
    let newly_full = recrawl.full && write.force_full_fetch(id).await? > 0;
    let accepted = RecrawlAccepted {
        domain: row.name.clone(),
        next_due: Timestamp(due),
    };
    let is_repeated = is_visit_requested(&row, due) && !newly_full;
    // A visit that is queued with a bulk registration moves forward even then.
    if !is_repeated || (row.lease.is_none() && row.visit_turn >= 0) {
        let request = visit_request(caller, false);
        write.assign_visit_turn(id, &request).await?;
    }
    // Repeated requests write nothing else: there is at most one event per visit.
    if is_repeated {
        write.commit().await?;
        return Ok(accepted);
    }
    // A visit whose lease has expired may still finish, unless another worker has made it.
    if row.lease.is_some() {
        write.request_followup_visit(id, now).await?;
    }
    if !is_under_way {
        write.make_domain_due(id, due).await?;
    }
    let actor = caller
        .account
        .as_ref()
        .map_or("anyone", |account| account.name.as_str());
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    let data = json!({"full": recrawl.full});
    change_set.add_event(EventKind::DomainRecrawl, &row.name, actor, data);
    commit_changes(context, write, change_set).await?;
    context.signals.visits.notify_one();
    Ok(accepted)
}

/// The spelling of a host name under which its domain is stored.
pub(super) fn normalize_host_name(name: &str) -> String {
    name.trim_end_matches('.').to_lowercase()
}

/// Finds a domain that the caller may see. A missing domain takes the same reads as a hidden one, so that the response
/// time does not reveal which it is.
pub async fn find_visible_domain(
    context: &AppContext,
    caller: &Caller,
    name: &str,
) -> Result<domain::Model> {
    let name = normalize_host_name(name);
    let store = &context.store;
    let row = domains::domain_by_name(store, &name).await?;
    // No row has the key 0.
    let id = row.as_ref().map_or(0, |row| row.id);
    if let Some(row) = &row {
        // While the domain has no owner, the account that registered it manages it.
        let keeper = row.domain_owner_at(context.now()).or(row.account_id);
        if caller.has_permission(Permission::SeeAll) || caller.is_account(keeper) {
            return Ok(row.clone());
        }
    }
    let mut is_visible = false;
    if let Some(account) = &caller.account {
        let proofs = domains::valid_proofs_by_domain(store, &[id]).await?;
        is_visible |= row
            .as_ref()
            .is_some_and(|row| is_dispute_party(row, &proofs, account.id));
        is_visible |= registrants::has_registered_source(store, id, account.id).await?;
        let claims = ownership::challenges_by_domain(store, &[id]).await?;
        is_visible |= claims.iter().any(|claim| claim.account_id == account.id);
    }
    is_visible |= has_visible_agent(context, caller, id).await?;
    row.filter(|_| is_visible)
        .ok_or_else(|| AppError::no_domain(&name))
}

async fn has_visible_agent(context: &AppContext, caller: &Caller, id: i64) -> Result<bool> {
    let restricted = caller.account.is_some();
    let rows = agents::listed_agents_by_domain(&context.store, &[id], restricted).await?;
    let labels = caller.labels(&context.policy_sets.enforced_set());
    if is_visibility_policy_free(context) {
        let is_visible = |row: &agent::Model| {
            is_visible_to(
                &labels,
                &visibility_labels(row, ListingState::Listed, None, &[]),
            )
        };
        return Ok(rows.iter().any(is_visible));
    }
    let ids: Vec<Uuid> = rows.iter().map(|row| row.id).collect();
    let carried = visibility_labels_or_decoy(context, &context.store, rows).await?;
    let is_visible = |id: &Uuid| {
        carried
            .get(id)
            .is_some_and(|one| is_visible_to(&labels, one))
    };
    Ok(ids.iter().any(is_visible))
}

/// The proof row for an admin's vouch for a domain, and for the sources of the account that it names.
fn domain_vouch_proof(
    domain: i64,
    admin: &CallerAccount,
    vouch: &Vouch,
    vouched_account: Option<Uuid>,
    now: Timestamp,
) -> proof::Model {
    proof::Model {
        id: 0,
        domain_id: domain,
        method: Method::Operator.into(),
        actor: admin.name.clone(),
        account_id: None,
        place: None,
        nonce: None,
        reason: Some(vouch.reason.clone()),
        proved_at: now.0,
        held_at: now.0,
        absent_since: None,
        absent_looks: 0,
        ended_at: None,
        zone: None,
        vouched_account,
    }
}

/// Refuses a domain that has opted out: such domains are not visited.
pub fn reject_opted_out(row: &domain::Model) -> Result<()> {
    if row.opted_out_by.is_none() {
        return Ok(());
    }
    Err(AppError::new(
        ErrorKind::DomainDenied,
        format!("{} has opted out of being listed.", row.name),
    ))
}
