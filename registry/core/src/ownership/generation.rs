//! A new generation of a domain, for a new owner: proofs, keys, pins and approvals of the old one end.

use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_domain::ownership::DomainState;
use a2a_registry_store::entity::domain;
use a2a_registry_store::{Write, agents, domains, ownership};
use serde_json::json;
use uuid::Uuid;

use crate::admission::covering::{DomainCoverage, cover_agent};
use crate::admission::decision::revoke_approval;
use crate::commit::ledger::Ledger;
use crate::commit::state::state_of;
use crate::commit::touched::Touched;
use crate::context::Context;
use crate::error::Result;
use crate::ownership::apply_check::follow_redirects;
use crate::ownership::owner_vouches::remove_owner_vouch;

/// Begins a new generation of a domain, by `actor` and for that reason; only the challenges of `newcomers` stay. Its
/// agents and those of its followers are written before this returns, so that the caller's next step reads them
/// updated.
pub async fn begin_generation(
    context: &Context,
    write: &Write,
    row: &mut domain::Model,
    followers: &[domain::Model],
    (actor, reason): (&str, &str),
    newcomers: &[Uuid],
) -> Result<Touched> {
    let now = context.now();
    for mut proof in domains::proofs_of(write, &[row.id]).await? {
        proof.ended_at = Some(now.0);
        write.proof_update(&proof).await?;
    }
    for challenge in ownership::challenges_of(write, &[row.id]).await? {
        if !newcomers.contains(&challenge.account_id) {
            write.challenge_end(row.id, challenge.account_id).await?;
        }
    }
    for key in ownership::enrolled_of(write, &[row.id]).await? {
        write.key_withdraw(row.id, &key.kid).await?;
    }
    write.owner_marks_end(row.id).await?;
    write.sources_approve_as_nobody(row.id).await?;
    row.generation += 1;
    row.generation_since = now.0;
    row.state = DomainState::Unverified.into();
    row.owner_id = None;
    row.dns_proved = false;
    row.proof_methods = None;
    row.contact = None;
    row.lapsed_at = None;
    row.check_due_at = row.check_due_at.map(|_| now.0);
    let mut ledger = Ledger::new(now, context.entropy.as_ref());
    remove_owner_vouch(write, &mut ledger, row, actor, "a new generation began").await?;
    write.domain_update(row).await?;
    let data = json!({"generation": row.generation, "reason": reason});
    ledger.event(EventKind::DomainGeneration, &row.name, actor, data);
    write.peer_candidates_delete(row.id).await?;
    let mut covering = DomainCoverage::load(write, row, now).await?;
    for agent in agents::agents_of(write, &[row.id]).await? {
        let mut state = state_of(write, agent.id).await?;
        state.agent.pins.clear();
        state.agent.owner_id = state.agent.claimed_by;
        for hold in [Hold::DomainLapsed, Hold::Disputed, Hold::KeyChanged] {
            ledger.lift(&mut state, hold, actor, "a new generation began");
        }
        ledger.touch(&mut state);
        cover_agent(context, write, &mut ledger, &mut covering, &mut state).await?;
        revoke_approval(context, write, &mut ledger, &mut state, actor).await?;
    }
    drop(covering);
    follow_redirects(context, write, &mut ledger, followers).await?;
    ledger.write(write).await
}
