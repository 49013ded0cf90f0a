//! Acts on domains: list, show, vouch and recrawl.

use a2a_registry_api::{DomainList, DomainView, Recrawl, RecrawlAccepted, Vouch};
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::ownership::Method;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_search::sees;
use a2a_registry_store::entity::{account, agent, domain, proof};
use a2a_registry_store::{Write, accounts, agents, coverage, domains, ownership};
use serde_json::json;
use uuid::Uuid;

use crate::admission::covering::follow_coverage;
use crate::agents::policy_facts::{labels_or_decoy, rows_decide};
use crate::commit::approver::check_reason;
use crate::commit::ledger::Ledger;
use crate::commit::locks::{domain_locked, write_with_followers};
use crate::commit::publish::{commit_act, commit_ledger};
use crate::context::Context;
use crate::domains::view::{domain_view, domain_views};
use crate::error::{AppError, ErrorKind, Result};
use crate::ownership::apply_check::follow_proofs;
use crate::ownership::is_party;
use crate::paging::{ListPage, PageRequest};
use crate::visibility::caller::{Account, Caller};
use crate::visibility::{Openness, visible_to};
use crate::visits::visit_request;

/// Lists live domains by name: all for a caller with [`Permission::SeeAll`], else the caller's own.
pub async fn domain_list(
    context: &Context,
    caller: &Caller,
    page: &PageRequest,
) -> Result<DomainList> {
    let account = caller.demand(Permission::Read)?;
    let own = (!caller.may(Permission::SeeAll)).then_some(account.id);
    let list = ListPage::new(&context.signer, caller, "domains", page)?;
    let after: Option<String> = list.start()?;
    let mut rows = domains::domain_page(
        &context.store,
        own,
        context.now(),
        after.as_deref(),
        list.limit(),
    )
    .await?;
    let next_page_token = list.cut(&mut rows, |last| last.name.clone());
    Ok(DomainList {
        domains: domain_views(context, caller, rows).await?,
        next_page_token,
    })
}

/// Maximum number of domains that [`domains_own`] returns.
const OWN: u64 = 100;

/// The first domains by name that the caller has registered or proved, whatever else it may see.
pub async fn domains_own(context: &Context, caller: &Caller) -> Result<Vec<DomainView>> {
    let account = caller.demand(Permission::Read)?;
    let rows =
        domains::domain_page(&context.store, Some(account.id), context.now(), None, OWN).await?;
    domain_views(context, caller, rows).await
}

pub async fn domain_show(context: &Context, caller: &Caller, domain: &str) -> Result<DomainView> {
    let row = domain_visible(context, caller, domain).await?;
    domain_view(context, caller, row.id).await
}

/// Records an admin's vouch for a host, and for a registrant of it, which makes the domain verified. It gives the host
/// no owner: that is [`owner_vouch_set`](crate::domains::owner_vouch::owner_vouch_set).
pub async fn domain_vouch(
    context: &Context,
    caller: &Caller,
    domain: &str,
    vouch: &Vouch,
) -> Result<DomainView> {
    let admin = caller.demand(Permission::Administer)?;
    check_reason(&vouch.reason)?;
    let row = domain_visible(context, caller, domain).await?;
    let now = context.now();
    let (write, mut row, followers) = write_with_followers(context, &row).await?;
    let named = account_named(&write, vouch).await?;
    if store_vouch(&write, row.id, admin, vouch, named, now).await? {
        let mut ledger = Ledger::new(now, context.entropy.as_ref());
        let data = json!({"reason": vouch.reason, "account": vouch.account});
        ledger.event(EventKind::DomainVouched, &row.name, &admin.name, data);
        let changed = follow_proofs(
            context,
            &write,
            &mut ledger,
            &mut row,
            &followers,
            &admin.name,
        )
        .await?;
        if !changed {
            follow_coverage(context, &write, &mut ledger, &row).await?;
        }
        commit_act(context, write, ledger).await?;
    }
    domain_view(context, caller, row.id).await
}

async fn account_named(write: &Write, vouch: &Vouch) -> Result<Option<Uuid>> {
    let Some(name) = &vouch.account else {
        return Ok(None);
    };
    Ok(Some(usable_account(write, name).await?.id))
}

/// The account with this name, which must be enabled.
pub async fn usable_account(write: &Write, name: &str) -> Result<account::Model> {
    let account = accounts::account_by_name(write, name).await?;
    let account = account.filter(account::Model::may_be_used);
    account.ok_or_else(|| {
        let detail = format!("No enabled account has the name {name}.");
        AppError::invalid("/account", detail)
    })
}

/// Stores an admin's vouch as the one proof of its method; returns whether it is new. The same vouch for the same
/// account is not written again.
async fn store_vouch(
    write: &Write,
    domain: i64,
    admin: &Account,
    vouch: &Vouch,
    named: Option<Uuid>,
    now: Timestamp,
) -> Result<bool> {
    let standing = domains::proofs_of(write, &[domain]).await?;
    let known = standing
        .into_iter()
        .find(|proof| proof.method == Method::Operator);
    match known {
        Some(known) if known.vouched_account == named => return Ok(false),
        Some(known) => {
            write
                .proof_update(&proof::Model {
                    vouched_account: named,
                    reason: Some(vouch.reason.clone()),
                    ..known
                })
                .await?;
        }
        None => {
            let word = vouch_row(domain, admin, vouch, named, now);
            write.proof_insert(word).await?;
        }
    }
    Ok(true)
}

/// Whether a visit at that time is already requested.
fn is_requested(row: &domain::Model, due: i64) -> bool {
    match row.lease {
        Some(_) => row.wanted_at.is_some(),
        None => row.visit_interval_us.is_none() && row.visit_due_at == Some(due),
    }
}

/// Makes the next visit due at the earliest time that the spacing allows. A second request before that visit gets the
/// same response.
pub async fn domain_recrawl(
    context: &Context,
    caller: &Caller,
    domain: &str,
    wish: &Recrawl,
) -> Result<RecrawlAccepted> {
    let seen = domain_visible(context, caller, domain).await?;
    refuse_opted_out(&seen)?;
    let now = context.now().0;
    let write = context.store.write().await?;
    let row = domain_locked(&write, &seen).await?;
    let id = row.id;
    let under_way = row.lease.is_some() && row.leased_until.is_some_and(|until| until > now);
    let earliest = now.max(row.not_before);
    let due = match row.visit_due_at {
        // A planned earlier visit stays, so that a repeated request changes nothing.
        Some(waiting) if !under_way => waiting.min(earliest),
        _ => earliest,
    };
    let more = wish.full && write.sources_want_full(id).await? > 0;
    let accepted = RecrawlAccepted {
        domain: row.name.clone(),
        next_due: Timestamp(due),
    };
    let is_repeated = is_requested(&row, due) && !more;
    // A visit that waits in a bulk is made sooner all the same.
    if !is_repeated || (row.lease.is_none() && row.visit_turn >= 0) {
        let request = visit_request(caller, false);
        write.visit_turn_take(id, &request).await?;
    }
    // Repeated requests write nothing else: there is at most one event per visit.
    if is_repeated {
        write.commit().await?;
        return Ok(accepted);
    }
    // A visit with an expired lease may still end, if no other worker has made it.
    if row.lease.is_some() {
        write.domain_want(id, now).await?;
    }
    if !under_way {
        write.domain_make_due(id, due).await?;
    }
    let actor = caller
        .account
        .as_ref()
        .map_or("anyone", |account| account.name.as_str());
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    let data = json!({"full": wish.full});
    ledger.event(EventKind::DomainRecrawl, &row.name, actor, data);
    commit_ledger(context, write, ledger).await?;
    context.wake.visits.notify_one();
    Ok(accepted)
}

/// The row of a domain, if the caller may see it. The reads for this decision are the same for a missing domain, so
/// that the response time does not tell the two apart.
pub async fn domain_visible(
    context: &Context,
    caller: &Caller,
    name: &str,
) -> Result<domain::Model> {
    let name = name.trim_end_matches('.').to_lowercase();
    let store = &context.store;
    let row = domains::domain_by_name(store, &name).await?;
    // No row has this key.
    let id = row.as_ref().map_or(0, |row| row.id);
    if let Some(row) = &row {
        // While it has no owner, the account that registered it manages it.
        let keeper = row.owner_at(context.now()).or(row.account_id);
        if caller.may(Permission::SeeAll) || caller.is(keeper) {
            return Ok(row.clone());
        }
    }
    let mut is_known = false;
    if let Some(account) = &caller.account {
        let proofs = domains::proofs_of(store, &[id]).await?;
        is_known |= row
            .as_ref()
            .is_some_and(|row| is_party(row, &proofs, account.id));
        is_known |= coverage::has_registered(store, id, account.id).await?;
        let claims = ownership::challenges_of(store, &[id]).await?;
        is_known |= claims.iter().any(|claim| claim.account_id == account.id);
    }
    is_known |= has_listed_agent(context, caller, id).await?;
    row.filter(|_| is_known)
        .ok_or_else(|| AppError::no_domain(&name))
}

async fn has_listed_agent(context: &Context, caller: &Caller, id: i64) -> Result<bool> {
    let restricted = caller.account.is_some();
    let rows = agents::agents_listed_of(&context.store, &[id], restricted).await?;
    let labels = caller.labels(&context.policies.in_force());
    if rows_decide(context) {
        let seen =
            |row: &agent::Model| sees(&labels, &visible_to(row, Openness::Listed, None, &[]));
        return Ok(rows.iter().any(seen));
    }
    let ids: Vec<Uuid> = rows.iter().map(|row| row.id).collect();
    let carried = labels_or_decoy(context, &context.store, rows).await?;
    let seen = |id: &Uuid| carried.get(id).is_some_and(|one| sees(&labels, one));
    Ok(ids.iter().any(seen))
}

/// The proof row for an admin's vouch for a domain, and for the sources of the account that it names.
fn vouch_row(
    domain: i64,
    admin: &Account,
    vouch: &Vouch,
    named: Option<Uuid>,
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
        vouched_account: named,
    }
}

/// Refuses a domain that has opted out, which is not visited either.
pub fn refuse_opted_out(row: &domain::Model) -> Result<()> {
    if row.opted_out_by.is_none() {
        return Ok(());
    }
    Err(AppError::new(
        ErrorKind::DomainDenied,
        format!("{} has opted out of being listed.", row.name),
    ))
}
