//! Applies the result of a check to a domain: its proofs, state and owner, and the holds of its agents.

use std::collections::BTreeSet;

use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::identifiers::random_fraction;
use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_domain::ownership::{
    DomainOwnership, DomainState, Method, OptOut, OwnershipClaim, ProofOutcome,
    next_domain_check_time, resolve_ownership,
};
use a2a_registry_domain::timestamp::{HOUR, Timestamp};
use a2a_registry_store::entity::{domain, proof};
use a2a_registry_store::visit_queue::VisitRequest;
use a2a_registry_store::{WriteTransaction, agents, domains};
use serde_json::json;
use uuid::Uuid;

use crate::admission::coverage_updates::{
    DomainCoverageState, update_agent_coverage, update_domain_coverage,
};
use crate::commit::agent_state::load_agent_state;
use crate::commit::change_set::ChangeSet;
use crate::commit::committed_changes::CommittedChanges;
use crate::commit::decision_maker::SYSTEM_ACTOR;
use crate::commit::locks::lock_domain;
use crate::commit::publish::commit_and_publish;
use crate::context::AppContext;
use crate::error::Result;
use crate::ownership::proofs::update_proofs;
use crate::ownership::urn_authority::permitted_claims;
use crate::ownership::{DomainCheckResult, ProofResult};
use crate::secrets::source_credentials::remove_ended_credentials;
use crate::signatures::pins::pin_newest_keys;
use crate::visibility::is_catalog_authority;
use crate::visits::VISIT_SPACING;

/// The delay before a check is repeated that decided nothing because the circuit breaker was open: as for fetches of
/// cards, soon after the outage and not a day later.
const BREAKER_RECHECK_DELAY: i64 = HOUR;

/// Applies the result of a check that `actor` requested: begins and ends proofs, and updates the domain and its
/// agents. Returns whether the set of hosts that the proofs cover has changed.
pub async fn apply_check_result(
    context: &AppContext,
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    row: &mut domain::Model,
    followers: &[domain::Model],
    result: &DomainCheckResult,
    actor: &str,
) -> Result<bool> {
    let changes = update_proofs(write, change_set, row, result, actor).await?;
    update_opt_out(row, result);
    let next = next_domain_check_at(context, row, result, changes.in_doubt, change_set.now());
    // A check of one account's claim must not delay the check of the others.
    if result.all_claims {
        row.check_due_at = row.check_due_at.map(|_| next.0);
    }
    let changed =
        update_domain_ownership(context, write, change_set, row, followers, actor).await?;
    if changes.reach_changed && !changed {
        update_domain_coverage(context, write, change_set, row).await?;
        // By which URLs gateways may ask about them, every process has in memory and in its index.
        for agent in agents::live_agents_by_domain(write, &[row.id]).await? {
            let data = json!({"domain_reach": true});
            change_set.add_agent_event(EventKind::AgentUpdated, agent.id, SYSTEM_ACTOR, data);
        }
    }
    Ok(changes.reach_changed)
}

/// Requests checks of the unproved hosts that a newly found record covers too: those of the same account below the
/// record's name. Otherwise each of them would wait for its daily check.
pub async fn request_subdomain_checks(
    context: &AppContext,
    result: &DomainCheckResult,
) -> Result<()> {
    let held_proofs = result.proofs.iter();
    let held_proofs = held_proofs.filter(|proof| proof.outcome == ProofOutcome::Held);
    let zones: BTreeSet<(&str, Uuid)> = held_proofs
        .filter_map(|proof| Some((proof.zone.as_deref()?, proof.account)))
        .collect();
    if zones.is_empty() {
        return Ok(());
    }
    // A separate transaction: no other host may be locked together with the checked one.
    let write = context.store.begin_write().await?;
    for (zone, account) in zones {
        write
            .bring_zone_checks_forward(zone, account, context.now().0)
            .await?;
    }
    write.commit().await?;
    context.signals.checks.notify_one();
    Ok(())
}

/// Sets or clears a domain's opt-out by its own record. An opt-out by the owner, or by a value that only a later build
/// knows, is not cleared by the record.
fn update_opt_out(row: &mut domain::Model, result: &DomainCheckResult) {
    match result.opted_out {
        Some(true) if row.opted_out_by.is_none() => {
            row.opted_out_by = Some(OptOut::Record.into());
        }
        Some(false) if !result.breaker_open => {
            let previous = row.opted_out_by.take();
            row.opted_out_by = previous.filter(|by| *by != OptOut::Record);
        }
        _ => {}
    }
}

/// The time of the next check: soon if this one left something undecided, else a day later.
fn next_domain_check_at(
    context: &AppContext,
    row: &domain::Model,
    result: &DomainCheckResult,
    in_doubt: bool,
    now: Timestamp,
) -> Timestamp {
    let daily = next_domain_check_time(now, random_fraction(context.entropy.as_ref()));
    if in_doubt {
        now.plus_micros(BREAKER_RECHECK_DELAY)
    } else if result.host_deferred {
        Timestamp(now.plus_micros(VISIT_SPACING).0.max(row.not_before)).min(daily)
    } else {
        daily
    }
}

/// Accepts the keys of a domain's agents after a check that found its owner's own DNS record, which vouches for the
/// keys used before.
pub async fn pin_domain_keys(
    context: &AppContext,
    row: &domain::Model,
    result: &DomainCheckResult,
) -> Result<CommittedChanges> {
    let is_owner_record = |found: &ProofResult| {
        found.outcome == ProofOutcome::Held
            && found.method == Method::Dns
            && Some(found.account) == row.owner_id
    };
    if !result.proofs.iter().any(is_owner_record) {
        return Ok(CommittedChanges::default());
    }
    let write = context.store.begin_write().await?;
    lock_domain(&write, row).await?;
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    for agent in agents::live_agents_by_domain(&write, &[row.id]).await? {
        let mut state = load_agent_state(&write, agent.id).await?;
        pin_newest_keys(&write, &mut change_set, &mut state).await?;
    }
    let committed = change_set.write(&write).await?;
    commit_and_publish(context, write, [&committed]).await?;
    Ok(committed)
}

/// Updates a domain's state and owner from its proofs, and its agents with it: they are put on hold if it has lapsed,
/// is disputed or has opted out; a proof lifts that hold and makes the rules decide again on pending cards. Returns
/// whether state, owner or proof methods changed; if not, the agents are not touched.
pub async fn update_domain_ownership(
    context: &AppContext,
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    row: &mut domain::Model,
    followers: &[domain::Model],
    actor: &str,
) -> Result<bool> {
    let claims: Vec<OwnershipClaim> = domains::valid_proofs_by_domain(write, &[row.id])
        .await?
        .iter()
        .filter_map(to_ownership_claim)
        .collect();
    let claims = permitted_claims(context, write, &row.name, claims).await?;
    let (old_state, owner) = (row.state()?, row.owner_id);
    let methods = row.proof_methods.clone();
    let ownership = set_ownership(row, old_state, &claims, change_set.now());
    if row.owner_id.is_some() && row.scheme != "https" {
        // A proof is of the host name on port 443. What an admin said about endpoints was about plain http.
        if write.end_endpoint_vouch(row).await? {
            let data = json!({"origin": row.domain_origin()});
            change_set.add_event(EventKind::DomainEndpointsVouchEnded, &row.name, actor, data);
        }
        row.scheme = "https".to_owned();
    }
    write.set_domain_ownership(row).await?;
    let is_same = (old_state, owner) == (ownership.state, ownership.owner);
    if is_same && methods == row.proof_methods {
        return Ok(false);
    }
    if !is_same {
        let data = json!({"from": old_state, "to": ownership.state, "owner": ownership.owner});
        change_set.add_event(EventKind::DomainState, &row.name, actor, data);
        remove_ended_credentials(write, change_set, row, actor).await?;
    }
    update_domain_agents(context, write, change_set, row, old_state).await?;
    if is_catalog_authority(row) {
        schedule_full_catalog_fetches(write, row, change_set.now()).await?;
    }
    redecide_redirected_cards(context, write, change_set, followers).await?;
    if ownership.state == DomainState::OptedOut {
        write.pause_visits(row.id).await?;
    } else if old_state == DomainState::OptedOut {
        let request = VisitRequest::by_registry(row);
        write.assign_visit_turn(row.id, &request).await?;
        write
            .bring_visit_forward(row.id, change_set.now().0.max(row.not_before))
            .await?;
    }
    Ok(true)
}

/// Forces a full fetch of the catalogs of a newly proved domain, because parts of their lists were not stored before.
async fn schedule_full_catalog_fetches(
    write: &WriteTransaction,
    row: &domain::Model,
    now: Timestamp,
) -> Result<()> {
    let at = now.0.max(row.not_before);
    if write.force_full_catalog_fetch(row.id, at).await? {
        let request = VisitRequest::by_registry(row);
        write.assign_visit_turn(row.id, &request).await?;
        write.bring_visit_forward(row.id, at).await?;
        // A visit that began before the proof may be about to store results without it.
        if row.lease.is_some() {
            write.request_followup_visit(row.id, now.0).await?;
        }
    }
    Ok(())
}

fn set_ownership(
    row: &mut domain::Model,
    old_state: DomainState,
    claims: &[OwnershipClaim],
    now: Timestamp,
) -> DomainOwnership {
    row.lapsed_at = match (claims.is_empty(), old_state) {
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
pub async fn update_domain_agents(
    context: &AppContext,
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    row: &domain::Model,
    old_state: DomainState,
) -> Result<()> {
    let (new_state, owner) = (row.state()?, row.domain_owner_at(change_set.now()));
    let (old_hold, new_hold) = (
        hold_for_domain_state(old_state),
        hold_for_domain_state(new_state),
    );
    let mut coverage_state = DomainCoverageState::load(write, row, change_set.now()).await?;
    for agent in agents::live_agents_by_domain(write, &[row.id]).await? {
        let mut state = load_agent_state(write, agent.id).await?;
        if let Some(hold) = old_hold.filter(|_| old_hold != new_hold) {
            change_set.lift_hold(&mut state, hold, SYSTEM_ACTOR, "the domain's state changed");
        }
        state.agent.owner_id = owner.or(state.agent.claimed_by);
        change_set.mark_agent_changed(&mut state);
        if let Some(hold) = new_hold {
            change_set.place_hold(
                &mut state,
                hold,
                SYSTEM_ACTOR,
                domain_hold_reason(new_state),
            );
        }
        // Every agent of the domain shows the domain's state, whatever the decision.
        let data = json!({"domain_verified": new_state == DomainState::Verified});
        change_set.add_agent_event(EventKind::AgentUpdated, agent.id, SYSTEM_ACTOR, data);
        // After the holds: the decision depends on them.
        update_agent_coverage(context, write, change_set, &mut coverage_state, &mut state).await?;
    }
    Ok(())
}

/// Decides again on cards that these domains fetch through redirects to a domain whose owner has changed. Such a card
/// is covered only while the same account has proved both domains.
pub async fn redecide_redirected_cards(
    context: &AppContext,
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    followers: &[domain::Model],
) -> Result<()> {
    for follower in followers {
        update_domain_coverage(context, write, change_set, follower).await?;
    }
    Ok(())
}

/// Returns the hold on a domain's agents while the domain is in this state.
fn hold_for_domain_state(state: DomainState) -> Option<Hold> {
    match state {
        DomainState::Lapsed => Some(Hold::DomainLapsed),
        DomainState::Disputed => Some(Hold::Disputed),
        DomainState::OptedOut => Some(Hold::OptedOut),
        DomainState::Unverified | DomainState::Verified => None,
    }
}

fn domain_hold_reason(state: DomainState) -> &'static str {
    match state {
        DomainState::Lapsed => "the domain no longer has a proof",
        DomainState::Disputed => "two accounts have proved the domain",
        _ => "the domain has opted out of being listed",
    }
}

fn to_ownership_claim(row: &proof::Model) -> Option<OwnershipClaim> {
    Some(OwnershipClaim {
        method: row.method.known_value()?,
        account: row.account_id,
    })
}
