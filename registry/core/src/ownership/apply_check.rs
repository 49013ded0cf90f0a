//! Applies the result of a check to a domain: its proofs, state and owner, and the holds of its agents.

use std::collections::BTreeSet;

use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::ids::unit_random;
use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_domain::ownership::{
    Claim, DomainState, Method, OptOut, Ownership, ProofOutcome, next_check, resolve_ownership,
};
use a2a_registry_domain::timestamp::{HOUR, Timestamp};
use a2a_registry_store::entity::{domain, proof};
use a2a_registry_store::visit_turns::VisitRequest;
use a2a_registry_store::{Write, agents, domains};
use serde_json::json;
use uuid::Uuid;

use crate::admission::covering::{DomainCoverage, cover_agent, follow_coverage};
use crate::commit::approver::SYSTEM;
use crate::commit::ledger::Ledger;
use crate::commit::locks::domain_locked;
use crate::commit::publish::commit_written;
use crate::commit::state::state_of;
use crate::commit::touched::Touched;
use crate::context::Context;
use crate::error::Result;
use crate::ownership::proofs::update_proofs;
use crate::ownership::{CheckResult, ProofResult};
use crate::signatures::pins::accept_keys;
use crate::visibility::stands_behind_catalogs;
use crate::visits::SPACING;

/// A check that decided nothing because the circuit breaker was open is repeated after this, as fetches of cards are:
/// soon after the outage, and not a day later.
const BREAKER_INTERVAL: i64 = HOUR;

/// Applies the result of a check that `actor` asked for: begins and ends proofs, and updates the domain and its agents.
/// Returns whether the proofs cover other hosts than before.
pub async fn apply_check(
    context: &Context,
    write: &Write,
    ledger: &mut Ledger<'_>,
    row: &mut domain::Model,
    followers: &[domain::Model],
    result: &CheckResult,
    actor: &str,
) -> Result<bool> {
    let changes = update_proofs(write, ledger, row, result, actor).await?;
    follow_record(row, result);
    let next = next_check_at(context, row, result, changes.in_doubt, ledger.now());
    // A check of one account's claim must not delay the check of the others.
    if result.all_claims {
        row.check_due_at = row.check_due_at.map(|_| next.0);
    }
    let changed = follow_proofs(context, write, ledger, row, followers, actor).await?;
    if changes.reach_changed && !changed {
        follow_coverage(context, write, ledger, row).await?;
    }
    Ok(changes.reach_changed)
}

/// Has the unproved hosts checked again that a newly found record covers too: those of the same account below the
/// record's name. Each of them would otherwise wait for its daily check.
pub async fn check_hosts_below(context: &Context, result: &CheckResult) -> Result<()> {
    let found = result.proofs.iter();
    let found = found.filter(|proof| proof.outcome == ProofOutcome::Held);
    let zones: BTreeSet<(&str, Uuid)> = found
        .filter_map(|proof| Some((proof.zone.as_deref()?, proof.account)))
        .collect();
    if zones.is_empty() {
        return Ok(());
    }
    // A separate write: no other host may be locked while the checked one is.
    let write = context.store.write().await?;
    for (zone, account) in zones {
        write
            .checks_soon_below(zone, account, context.now().0)
            .await?;
    }
    write.commit().await?;
    context.wake.checks.notify_one();
    Ok(())
}

/// Sets or clears a domain's opt-out by its own record. An opt-out by the owner, or by a value that only a later build
/// knows, is not cleared by the record.
fn follow_record(row: &mut domain::Model, result: &CheckResult) {
    match result.opted_out {
        Some(true) if row.opted_out_by.is_none() => {
            row.opted_out_by = Some(OptOut::Record.into());
        }
        Some(false) if !result.breaker_open => {
            let kept = row.opted_out_by.take();
            row.opted_out_by = kept.filter(|by| *by != OptOut::Record);
        }
        _ => {}
    }
}

/// The time of the next check: soon if this one left something undecided, else a day later.
fn next_check_at(
    context: &Context,
    row: &domain::Model,
    result: &CheckResult,
    in_doubt: bool,
    now: Timestamp,
) -> Timestamp {
    let daily = next_check(now, unit_random(context.entropy.as_ref()));
    if in_doubt {
        now.plus(BREAKER_INTERVAL)
    } else if result.host_deferred {
        Timestamp(now.plus(SPACING).0.max(row.not_before)).min(daily)
    } else {
        daily
    }
}

/// Accepts the keys of a domain's agents after a check that found its owner's own DNS record: the record vouches for
/// keys that existed before it.
pub async fn accept_keys_of(
    context: &Context,
    row: &domain::Model,
    result: &CheckResult,
) -> Result<Touched> {
    let recorded = |found: &ProofResult| {
        found.outcome == ProofOutcome::Held
            && found.method == Method::Dns
            && Some(found.account) == row.owner_id
    };
    if !result.proofs.iter().any(recorded) {
        return Ok(Touched::default());
    }
    let write = context.store.write().await?;
    domain_locked(&write, row).await?;
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    for agent in agents::agents_of(&write, &[row.id]).await? {
        let mut state = state_of(&write, agent.id).await?;
        accept_keys(&write, &mut ledger, &mut state).await?;
    }
    let touched = ledger.write(&write).await?;
    commit_written(context, write, [&touched]).await?;
    Ok(touched)
}

/// Updates a domain's state and owner from its proofs, and its agents with it: they are put on hold if it lapsed, is
/// disputed or has opted out; a proof lifts that hold and has waiting cards decided again. Returns whether state, owner
/// or the methods of its proofs changed; if not, the agents are left as they are.
pub async fn follow_proofs(
    context: &Context,
    write: &Write,
    ledger: &mut Ledger<'_>,
    row: &mut domain::Model,
    followers: &[domain::Model],
    actor: &str,
) -> Result<bool> {
    let claims: Vec<Claim> = domains::proofs_of(write, &[row.id])
        .await?
        .iter()
        .filter_map(claim)
        .collect();
    let (before, owner) = (row.state()?, row.owner_id);
    let methods = row.proof_methods.clone();
    let ownership = set_ownership(row, before, &claims, ledger.now());
    write.domain_update(row).await?;
    let is_same = (before, owner) == (ownership.state, ownership.owner);
    if is_same && methods == row.proof_methods {
        return Ok(false);
    }
    if !is_same {
        let data = json!({"from": before, "to": ownership.state, "owner": ownership.owner});
        ledger.event(EventKind::DomainState, &row.name, actor, data);
    }
    update_agents(context, write, ledger, row, before).await?;
    if stands_behind_catalogs(row) {
        fetch_catalogs_in_full(write, row, ledger.now()).await?;
    }
    follow_redirects(context, write, ledger, followers).await?;
    if ownership.state == DomainState::OptedOut {
        write.domain_rest(row.id).await?;
    } else if before == DomainState::OptedOut {
        let request = VisitRequest::of_registry(row);
        write.visit_turn_take(row.id, &request).await?;
        write
            .domain_make_visit_due(row.id, ledger.now().0.max(row.not_before))
            .await?;
    }
    Ok(true)
}

/// Has the catalogs of a newly proved domain fetched in full, because parts of their lists were not stored before.
async fn fetch_catalogs_in_full(write: &Write, row: &domain::Model, now: Timestamp) -> Result<()> {
    let at = now.0.max(row.not_before);
    if write.catalogs_want_full(row.id, at).await? {
        let request = VisitRequest::of_registry(row);
        write.visit_turn_take(row.id, &request).await?;
        write.domain_make_visit_due(row.id, at).await?;
        // A visit that began before the proof may be about to store what it read without it.
        if row.lease.is_some() {
            write.domain_want(row.id, now.0).await?;
        }
    }
    Ok(())
}

fn set_ownership(
    row: &mut domain::Model,
    before: DomainState,
    claims: &[Claim],
    now: Timestamp,
) -> Ownership {
    row.lapsed_at = match (claims.is_empty(), before) {
        (true, DomainState::Verified | DomainState::Disputed) => row.lapsed_at.or(Some(now.0)),
        (true, _) => row.lapsed_at,
        (false, _) => None,
    };
    let ownership = resolve_ownership(claims, row.lapsed_at.is_some(), row.opted_out_by.is_some());
    row.state = ownership.state.into();
    row.owner_id = ownership.owner;
    row.dns_proved = claims.iter().any(|claim| {
        matches!(claim.method, Method::Dns | Method::DnsParent)
            && claim.account.is_some()
            && claim.account == ownership.owner
    });
    let counting = claims
        .iter()
        .filter(|claim| claim.account.is_none() || claim.account == ownership.owner);
    let methods: BTreeSet<&str> = counting.map(|claim| claim.method.as_str()).collect();
    let methods: Vec<&str> = methods.into_iter().collect();
    row.proof_methods = (ownership.state == DomainState::Verified).then(|| methods.join(" "));
    ownership
}

/// Updates the agents of a domain for its new state and owner: their owner, holds and decisions.
pub async fn update_agents(
    context: &Context,
    write: &Write,
    ledger: &mut Ledger<'_>,
    row: &domain::Model,
    before: DomainState,
) -> Result<()> {
    let (state_now, owner) = (row.state()?, row.owner_at(ledger.now()));
    let (ended, begun) = (hold_of(before), hold_of(state_now));
    let mut covering = DomainCoverage::load(write, row, ledger.now()).await?;
    for agent in agents::agents_of(write, &[row.id]).await? {
        let mut state = state_of(write, agent.id).await?;
        if let Some(hold) = ended.filter(|_| ended != begun) {
            ledger.lift(&mut state, hold, SYSTEM, "the domain's state changed");
        }
        state.agent.owner_id = owner.or(state.agent.claimed_by);
        ledger.touch(&mut state);
        if let Some(hold) = begun {
            ledger.hold(&mut state, hold, SYSTEM, hold_reason(state_now));
        }
        // The domain's state is shown with every agent of it, whatever is decided.
        let data = json!({"domain_verified": state_now == DomainState::Verified});
        ledger.agent_event(EventKind::AgentUpdated, agent.id, SYSTEM, data);
        // After the holds: the decision depends on them.
        cover_agent(context, write, ledger, &mut covering, &mut state).await?;
    }
    Ok(())
}

/// Decides again on the cards that these domains' redirects fetch from a domain whose owner has changed: such a card is
/// covered only while the same account has proved both domains.
pub async fn follow_redirects(
    context: &Context,
    write: &Write,
    ledger: &mut Ledger<'_>,
    followers: &[domain::Model],
) -> Result<()> {
    for follower in followers {
        follow_coverage(context, write, ledger, follower).await?;
    }
    Ok(())
}

/// The hold on a domain's agents while it is in this state.
fn hold_of(state: DomainState) -> Option<Hold> {
    match state {
        DomainState::Lapsed => Some(Hold::DomainLapsed),
        DomainState::Disputed => Some(Hold::Disputed),
        DomainState::OptedOut => Some(Hold::OptedOut),
        DomainState::Unverified | DomainState::Verified => None,
    }
}

fn hold_reason(state: DomainState) -> &'static str {
    match state {
        DomainState::Lapsed => "the domain has no proof any more",
        DomainState::Disputed => "two accounts have proved the domain",
        _ => "the domain has opted out of being listed",
    }
}

fn claim(row: &proof::Model) -> Option<Claim> {
    Some(Claim {
        method: row.method.known()?,
        account: row.account_id,
    })
}
