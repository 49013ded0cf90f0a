//! From what was found to proofs, the domain's state and owner, and its agents' holds.

use std::collections::BTreeMap;

use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::ids::unit_random;
use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_domain::ownership::{
    Claim, DomainState, Look, Method, OptOut, Standing, next_check, weigh,
};
use a2a_registry_domain::timestamp::{HOUR, Timestamp};
use a2a_registry_store::entity::{domain, proof, proof_check};
use a2a_registry_store::{Write, agents, domains};
use serde_json::json;
use uuid::Uuid;

use crate::admission::covering::{Covering, cover_agent, follow_coverage};
use crate::commit::ledger::{Ledger, SYSTEM, Touched};
use crate::commit::locks::domain_locked;
use crate::commit::pins::accept_keys;
use crate::commit::shown::after_write;
use crate::commit::state::state_of;
use crate::context::Context;
use crate::error::AppError;
use crate::ownership::{Found, Looked};
use crate::visits::SPACING;

/// A look that concluded nothing because the fault was likely ours is repeated after this, as the looks at cards are:
/// once it is over nothing shall stay in doubt for long.
const BRAKED_INTERVAL: i64 = HOUR;

/// Takes in what looking for a domain's proofs has found: keeps the looks, begins and ends proofs, and lets
/// the domain and its agents follow. `actor` asked for it.
///
/// # Errors
/// Where the database fails.
pub(crate) async fn settle(
    context: &Context,
    write: &Write,
    ledger: &mut Ledger<'_>,
    row: &mut domain::Model,
    followers: &[domain::Model],
    looked: &Looked,
    actor: &str,
) -> Result<(), AppError> {
    let now = ledger.now();
    let checks = looked
        .found
        .iter()
        .map(|found| check(row.id, found, looked.braked, actor, now));
    let hour_ago = now.plus(-HOUR).0;
    write
        .checks_insert(row.id, checks.collect(), hour_ago)
        .await?;
    let mut standing = domains::proofs_of(write, &[row.id]).await?;
    let mut reach_changed = false;
    let mut in_doubt = looked.braked && looked.opted_out.is_none();
    for ((account, method), found) in strongest(&looked.found) {
        let known = standing
            .iter_mut()
            .find(|proof| proof.account_id == Some(account) && proof.method == method);
        match known {
            // While so much fails that the fault is likely ours nothing ends, and no day of it counts as missed.
            Some(_) if looked.braked && found.look != Look::Held => in_doubt = true,
            Some(proof) => {
                reach_changed |= look_again(write, ledger, row, proof, found).await?;
            }
            None if found.look == Look::Held => {
                let proof = new_proof(row.id, found, actor, now);
                let data = json!({"method": method, "place": found.place, "account": account});
                ledger.event(EventKind::DomainProved, &row.name, actor, data);
                write.proof_insert(proof).await?;
                reach_changed = true;
            }
            None => {}
        }
    }
    match looked.opted_out {
        Some(true) if row.opted_out_by.is_none() => {
            row.opted_out_by = Some(OptOut::Record.into());
        }
        Some(false) if !looked.braked => {
            // What the owner has said, or somebody of whom only a later build knows, the record does not take back.
            let kept = row.opted_out_by.take();
            row.opted_out_by = kept.filter(|by| *by != OptOut::Record);
        }
        _ => {}
    }
    let daily = next_check(now, unit_random(context.entropy.as_ref()));
    let next = if in_doubt {
        now.plus(BRAKED_INTERVAL)
    } else if looked.host_rested {
        Timestamp(now.plus(SPACING).0.max(row.not_before)).min(daily)
    } else {
        daily
    };
    // Who has looked for one claim must not put off the look for the others.
    if looked.everybody {
        row.check_due_at = row.check_due_at.map(|_| next.0);
    }
    let changed = follow_proofs(context, write, ledger, row, followers, actor).await?;
    if reach_changed && !changed {
        follow_coverage(context, write, ledger, row).await?;
    }
    Ok(())
}

/// Accepts the keys of a domain's agents after a look that has found its owner's own record in place: that
/// vouches for keys that came before it.
///
/// # Errors
/// Where the database fails.
pub(crate) async fn accept_keys_of(
    context: &Context,
    row: &domain::Model,
    looked: &Looked,
) -> Result<Touched, AppError> {
    let recorded = |found: &Found| {
        found.look == Look::Held
            && found.method == Method::Dns
            && Some(found.account) == row.owner_id
    };
    if !looked.found.iter().any(recorded) {
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
    write.commit().await?;
    after_write(context, &touched);
    Ok(touched)
}

/// One more look for a proof that stands; says whether it covers other hosts now, or none.
async fn look_again(
    write: &Write,
    ledger: &mut Ledger<'_>,
    row: &domain::Model,
    proof: &mut proof::Model,
    found: &Found,
) -> Result<bool, AppError> {
    let now = ledger.now();
    let reached = proof.zone.clone();
    let before = Standing {
        held_at: Timestamp(proof.held_at),
        absent_since: proof.absent_since.map(Timestamp),
        absent_looks: proof.absent_looks,
    };
    match before.after(found.look, now) {
        Ok(after) => {
            proof.held_at = after.held_at.0;
            proof.absent_since = after.absent_since.map(|since| since.0);
            proof.absent_looks = after.absent_looks;
            if found.look == Look::Held {
                proof.place = Some(found.place.clone());
                proof.nonce.clone_from(&found.nonce);
                proof.zone.clone_from(&found.zone);
            }
        }
        Err(reason) => {
            proof.ended_at = Some(now.0);
            let data =
                json!({"method": proof.method, "account": proof.account_id, "reason": reason});
            ledger.event(EventKind::DomainProofEnded, &row.name, SYSTEM, data);
        }
    }
    write.proof_update(proof).await?;
    Ok(proof.ended_at.is_some() || proof.zone != reached)
}

/// Lets a domain be what its proofs say, and its agents with it: a domain that lapsed, is disputed or has
/// opted out holds them, a proof lifts that and lets what waits be decided again. Says whether it is another one
/// now, or another's; its agents are left alone where it is not.
///
/// # Errors
/// Where the database fails.
pub(crate) async fn follow_proofs(
    context: &Context,
    write: &Write,
    ledger: &mut Ledger<'_>,
    row: &mut domain::Model,
    followers: &[domain::Model],
    actor: &str,
) -> Result<bool, AppError> {
    let now = ledger.now();
    let claims: Vec<Claim> = domains::proofs_of(write, &[row.id])
        .await?
        .iter()
        .filter_map(claim)
        .collect();
    let before = row.state()?;
    row.lapsed_at = match (claims.is_empty(), before) {
        (true, DomainState::Verified | DomainState::Disputed) => row.lapsed_at.or(Some(now.0)),
        (true, _) => row.lapsed_at,
        (false, _) => None,
    };
    let verdict = weigh(&claims, row.lapsed_at.is_some(), row.opted_out_by.is_some());
    let changed = (before, row.owner_id) != (verdict.state, verdict.owner);
    row.state = verdict.state.into();
    row.owner_id = verdict.owner;
    row.dns_proved = claims.iter().any(|claim| {
        matches!(claim.method, Method::Dns | Method::DnsParent)
            && claim.account.is_some()
            && claim.account == verdict.owner
    });
    write.domain_update(row).await?;
    if !changed {
        return Ok(false);
    }
    let data = json!({"from": before, "to": verdict.state, "owner": verdict.owner});
    ledger.event(EventKind::DomainState, &row.name, actor, data);
    let (ended, begun) = (hold_of(before), hold_of(verdict.state));
    let mut covering = Covering::load(write, row).await?;
    for agent in agents::agents_of(write, &[row.id]).await? {
        let mut state = state_of(write, agent.id).await?;
        if let Some(hold) = ended.filter(|_| ended != begun) {
            ledger.lift(&mut state, hold, SYSTEM, "the domain is no longer so");
        }
        state.agent.owner_id = verdict.owner.or(state.agent.claimed_by);
        ledger.touch(&mut state);
        if let Some(hold) = begun {
            ledger.hold(&mut state, hold, SYSTEM, why(verdict.state));
        }
        // The domain's state is shown with every agent of it, whatever is decided.
        let data = json!({"domain_verified": verdict.state == DomainState::Verified});
        ledger.agent_event(EventKind::AgentUpdated, agent.id, SYSTEM, data);
        // Holds first: what is decided now is decided on the agent as it stands now.
        cover_agent(context, write, ledger, &mut covering, &mut state).await?;
    }
    drop(covering);
    follow_redirects(context, write, ledger, followers).await?;
    if verdict.state == DomainState::OptedOut {
        write.domain_rest(row.id).await?;
    } else if before == DomainState::OptedOut {
        write
            .domain_make_visit_due(row.id, now.0.max(row.not_before))
            .await?;
    }
    Ok(true)
}

/// Decides anew on what redirects of these domains have brought from another one, which is another's now: it is theirs
/// where the same account has proved both.
///
/// # Errors
/// Where the database fails.
pub(crate) async fn follow_redirects(
    context: &Context,
    write: &Write,
    ledger: &mut Ledger<'_>,
    followers: &[domain::Model],
) -> Result<(), AppError> {
    for follower in followers {
        follow_coverage(context, write, ledger, follower).await?;
    }
    Ok(())
}

/// The hold that a domain's state puts on its agents.
fn hold_of(state: DomainState) -> Option<Hold> {
    match state {
        DomainState::Lapsed => Some(Hold::DomainLapsed),
        DomainState::Disputed => Some(Hold::Disputed),
        DomainState::OptedOut => Some(Hold::OptedOut),
        DomainState::Unverified | DomainState::Verified => None,
    }
}

fn why(state: DomainState) -> &'static str {
    match state {
        DomainState::Lapsed => "no proof of the domain holds any more",
        DomainState::Disputed => "two accounts have proved the domain",
        _ => "the domain wants not to be listed",
    }
}

/// For each account and method what counts of all that was found: the proof where it was anywhere, then what
/// leaves the question open, then what denies it.
fn strongest(found: &[Found]) -> BTreeMap<(Uuid, Method), &Found> {
    let weight = |look: Look| match look {
        Look::Held => 4,
        Look::Bogus => 3,
        Look::Unknown => 2,
        Look::Wrong => 1,
        Look::Absent => 0,
    };
    let mut counts: BTreeMap<(Uuid, Method), &Found> = BTreeMap::new();
    for one in found {
        counts
            .entry((one.account, one.method))
            .and_modify(|known| {
                if weight(one.look) > weight(known.look) {
                    *known = one;
                }
            })
            .or_insert(one);
    }
    counts
}

fn claim(row: &proof::Model) -> Option<Claim> {
    Some(Claim {
        method: row.method.known()?,
        account: row.account_id,
    })
}

fn new_proof(domain: i64, found: &Found, actor: &str, now: Timestamp) -> proof::Model {
    proof::Model {
        id: 0,
        domain_id: domain,
        method: found.method.into(),
        actor: actor.into(),
        account_id: Some(found.account),
        place: Some(found.place.clone()),
        nonce: found.nonce.clone(),
        reason: None,
        proved_at: now.0,
        held_at: now.0,
        absent_since: None,
        absent_looks: 0,
        ended_at: None,
        zone: found.zone.clone(),
        vouched_account: None,
    }
}

fn check(
    domain: i64,
    found: &Found,
    braked: bool,
    actor: &str,
    now: Timestamp,
) -> proof_check::Model {
    let mut detail = found.detail.clone();
    if braked && found.look != Look::Held {
        detail.push_str(
            "; so many fetches of this registry fail at once that the fault is likely its own, so nothing follows",
        );
    }
    proof_check::Model {
        id: 0,
        domain_id: domain,
        account_id: Some(found.account),
        actor: actor.into(),
        at: now.0,
        method: found.method.into(),
        place: found.place.clone(),
        outcome: found.look.into(),
        detail,
        wanted: found.wanted.clone(),
        found: (!found.instead.is_empty()).then(|| json!(found.instead).to_string()),
        aliased: found.aliased,
    }
}
