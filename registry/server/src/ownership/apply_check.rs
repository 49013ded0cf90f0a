//! From what was found of a domain's proofs to its state and owner, and its agents' holds.

use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::ids::unit_random;
use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_domain::ownership::{
    Claim, DomainState, Look, Method, OptOut, Verdict, next_check, weigh,
};
use a2a_registry_domain::timestamp::{HOUR, Timestamp};
use a2a_registry_store::entity::{domain, proof};
use a2a_registry_store::{Write, agents, domains};
use serde_json::json;

use crate::admission::covering::{Covering, cover_agent, follow_coverage};
use crate::commit::ledger::{Ledger, SYSTEM, Touched};
use crate::commit::locks::domain_locked;
use crate::commit::pins::accept_keys;
use crate::commit::publish::after_write;
use crate::commit::state::state_of;
use crate::context::Context;
use crate::error::AppError;
use crate::ownership::proofs::{conclude, keep_checks};
use crate::ownership::{Found, Looked};
use crate::visits::SPACING;

/// A look that concluded nothing because the fault was likely ours is repeated after this, as the looks at cards are:
/// once it is over nothing shall stay in doubt for long.
const BRAKED_INTERVAL: i64 = HOUR;

/// Takes in what looking for a domain's proofs has found: keeps the looks, begins and ends proofs, and lets
/// the domain and its agents follow. `actor` asked for it.
pub(crate) async fn settle(
    context: &Context,
    write: &Write,
    ledger: &mut Ledger<'_>,
    row: &mut domain::Model,
    followers: &[domain::Model],
    looked: &Looked,
    actor: &str,
) -> Result<(), AppError> {
    keep_checks(write, row, looked, actor, ledger.now()).await?;
    let concluded = conclude(write, ledger, row, looked, actor).await?;
    follow_record(row, looked);
    let next = next_look(context, row, looked, concluded.in_doubt, ledger.now());
    // Who has looked for one claim must not put off the look for the others.
    if looked.everybody {
        row.check_due_at = row.check_due_at.map(|_| next.0);
    }
    let changed = follow_proofs(context, write, ledger, row, followers, actor).await?;
    if concluded.reach_changed && !changed {
        follow_coverage(context, write, ledger, row).await?;
    }
    Ok(())
}

/// Lets a domain be opted out as its own record says. What the owner has said, or somebody of whom only a later build
/// knows, the record does not take back.
fn follow_record(row: &mut domain::Model, looked: &Looked) {
    match looked.opted_out {
        Some(true) if row.opted_out_by.is_none() => {
            row.opted_out_by = Some(OptOut::Record.into());
        }
        Some(false) if !looked.braked => {
            let kept = row.opted_out_by.take();
            row.opted_out_by = kept.filter(|by| *by != OptOut::Record);
        }
        _ => {}
    }
}

/// When the proofs are looked for again: soon where this look leaves a question open, a day later otherwise.
fn next_look(
    context: &Context,
    row: &domain::Model,
    looked: &Looked,
    in_doubt: bool,
    now: Timestamp,
) -> Timestamp {
    let daily = next_check(now, unit_random(context.entropy.as_ref()));
    if in_doubt {
        now.plus(BRAKED_INTERVAL)
    } else if looked.host_rested {
        Timestamp(now.plus(SPACING).0.max(row.not_before)).min(daily)
    } else {
        daily
    }
}

/// Accepts the keys of a domain's agents after a look that has found its owner's own record in place: that
/// vouches for keys that came before it.
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

/// Lets a domain be what its proofs say, and its agents with it: a domain that lapsed, is disputed or has
/// opted out holds them, a proof lifts that and lets what waits be decided again. Says whether it is another one
/// now, or another's; its agents are left alone where it is not.
pub(crate) async fn follow_proofs(
    context: &Context,
    write: &Write,
    ledger: &mut Ledger<'_>,
    row: &mut domain::Model,
    followers: &[domain::Model],
    actor: &str,
) -> Result<bool, AppError> {
    let claims: Vec<Claim> = domains::proofs_of(write, &[row.id])
        .await?
        .iter()
        .filter_map(claim)
        .collect();
    let (before, owner) = (row.state()?, row.owner_id);
    let verdict = weigh_up(row, before, &claims, ledger.now());
    write.domain_update(row).await?;
    if (before, owner) == (verdict.state, verdict.owner) {
        return Ok(false);
    }
    let data = json!({"from": before, "to": verdict.state, "owner": verdict.owner});
    ledger.event(EventKind::DomainState, &row.name, actor, data);
    bring_agents_along(context, write, ledger, row, before, &verdict).await?;
    follow_redirects(context, write, ledger, followers).await?;
    if verdict.state == DomainState::OptedOut {
        write.domain_rest(row.id).await?;
    } else if before == DomainState::OptedOut {
        write
            .domain_make_visit_due(row.id, ledger.now().0.max(row.not_before))
            .await?;
    }
    Ok(true)
}

/// Sets a domain's state and owner to what the claims on it amount to.
fn weigh_up(
    row: &mut domain::Model,
    before: DomainState,
    claims: &[Claim],
    now: Timestamp,
) -> Verdict {
    row.lapsed_at = match (claims.is_empty(), before) {
        (true, DomainState::Verified | DomainState::Disputed) => row.lapsed_at.or(Some(now.0)),
        (true, _) => row.lapsed_at,
        (false, _) => None,
    };
    let verdict = weigh(claims, row.lapsed_at.is_some(), row.opted_out_by.is_some());
    row.state = verdict.state.into();
    row.owner_id = verdict.owner;
    row.dns_proved = claims.iter().any(|claim| {
        matches!(claim.method, Method::Dns | Method::DnsParent)
            && claim.account.is_some()
            && claim.account == verdict.owner
    });
    verdict
}

/// Lets the agents of a domain follow its new state and owner: whose they are, what holds them, and what is decided.
async fn bring_agents_along(
    context: &Context,
    write: &Write,
    ledger: &mut Ledger<'_>,
    row: &domain::Model,
    before: DomainState,
    verdict: &Verdict,
) -> Result<(), AppError> {
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
    Ok(())
}

/// Decides anew on what redirects of these domains have brought from another one, which is another's now: it is theirs
/// where the same account has proved both.
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

fn claim(row: &proof::Model) -> Option<Claim> {
    Some(Claim {
        method: row.method.known()?,
        account: row.account_id,
    })
}
