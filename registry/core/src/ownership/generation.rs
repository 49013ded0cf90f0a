//! A new ownership generation of a domain: proofs, keys, pins and approvals of the previous owner end.

use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_domain::ownership::DomainState;
use a2a_registry_store::entity::domain;
use a2a_registry_store::{WriteTransaction, agents, domains, ownership};
use serde_json::json;
use uuid::Uuid;

use crate::admission::coverage_updates::{DomainCoverageState, update_agent_coverage};
use crate::admission::decision::revoke_approval;
use crate::commit::agent_state::load_agent_state;
use crate::commit::change_set::ChangeSet;
use crate::commit::committed_changes::CommittedChanges;
use crate::context::AppContext;
use crate::error::Result;
use crate::ownership::apply_check::redecide_redirected_cards;
use crate::ownership::owner_vouches::remove_owner_vouch;
use crate::secrets::source_credentials::remove_ended_credentials;

/// Begins a new ownership generation of a domain, by `actor` and for the given reason; only the challenges of
/// `newcomers` stay. The agents of the domain and of its followers are written before this returns, so that the
/// caller's next step reads the updated rows.
pub async fn begin_ownership_generation(
    context: &AppContext,
    write: &WriteTransaction,
    row: &mut domain::Model,
    followers: &[domain::Model],
    (actor, reason): (&str, &str),
    newcomers: &[Uuid],
) -> Result<CommittedChanges> {
    let now = context.now();
    for mut proof in domains::valid_proofs_by_domain(write, &[row.id]).await? {
        proof.ended_at = Some(now.0);
        write.update_proof(&proof).await?;
    }
    for challenge in ownership::challenges_by_domain(write, &[row.id]).await? {
        if !newcomers.contains(&challenge.account_id) {
            write.delete_challenge(row.id, challenge.account_id).await?;
        }
    }
    for key in ownership::enrolled_keys_by_domain(write, &[row.id]).await? {
        write.withdraw_key(row.id, &key.kid).await?;
    }
    write.delete_owner_fingerprint(row.id).await?;
    write.clear_preapprovals(row.id).await?;
    row.generation += 1;
    row.generation_since = now.0;
    row.state = DomainState::Unverified.into();
    row.owner_id = None;
    row.dns_proved = false;
    row.proof_methods = None;
    row.contact = None;
    row.lapsed_at = None;
    row.check_due_at = row.check_due_at.map(|_| now.0);
    let mut change_set = ChangeSet::new(now, context.entropy.as_ref());
    remove_owner_vouch(write, &mut change_set, row, actor, "a new generation began").await?;
    write.set_domain_ownership(row).await?;
    remove_ended_credentials(write, &mut change_set, row, actor).await?;
    let data = json!({"generation": row.generation, "reason": reason});
    change_set.add_event(EventKind::DomainGeneration, &row.name, actor, data);
    write.delete_peer_candidates(row.id).await?;
    let mut coverage_state = DomainCoverageState::load(write, row, now).await?;
    for agent in agents::live_agents_by_domain(write, &[row.id]).await? {
        let mut state = load_agent_state(write, agent.id).await?;
        state.agent.pins.clear();
        state.agent.owner_id = state.agent.claimed_by;
        for hold in [Hold::DomainLapsed, Hold::Disputed, Hold::KeyChanged] {
            change_set.lift_hold(&mut state, hold, actor, "a new generation began");
        }
        change_set.mark_agent_changed(&mut state);
        update_agent_coverage(
            context,
            write,
            &mut change_set,
            &mut coverage_state,
            &mut state,
        )
        .await?;
        revoke_approval(context, write, &mut change_set, &mut state, actor).await?;
    }
    drop(coverage_state);
    redecide_redirected_cards(context, write, &mut change_set, followers).await?;
    change_set.write(write).await
}
