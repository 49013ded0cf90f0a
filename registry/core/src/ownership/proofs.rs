//! The proofs of a domain after a check: which begin, which continue, and which end.

use std::collections::BTreeMap;

use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::ownership::{Method, ProofHistory, ProofOutcome};
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{domain, proof, proof_check};
use a2a_registry_store::{WriteTransaction, domains};
use serde_json::json;
use uuid::Uuid;

use crate::commit::change_set::ChangeSet;
use crate::commit::decision_maker::SYSTEM_ACTOR;
use crate::error::Result;
use crate::ownership::{DomainCheckResult, ProofResult};

/// Converts the results at each location to their stored form.
pub fn proof_check_rows(
    row: &domain::Model,
    result: &DomainCheckResult,
    actor: &str,
    now: Timestamp,
) -> Vec<proof_check::Model> {
    let found = result.proofs.iter();
    found
        .map(|found| proof_check_row(row.id, found, result.breaker_open, actor, now))
        .collect()
}

pub struct ProofUpdateResult {
    /// Whether the proofs now cover a different set of hosts.
    pub reach_changed: bool,
    /// Whether the check decided nothing because the circuit breaker was open.
    pub in_doubt: bool,
}

/// Begins, continues and ends proofs according to the result of a check.
pub async fn update_proofs(
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    row: &domain::Model,
    result: &DomainCheckResult,
    actor: &str,
) -> Result<ProofUpdateResult> {
    let mut proofs = domains::valid_proofs_by_domain(write, &[row.id]).await?;
    let mut changes = ProofUpdateResult {
        reach_changed: false,
        in_doubt: result.breaker_open && result.opted_out.is_none(),
    };
    for ((account, method), proof_result) in strongest_proof_results(&result.proofs) {
        let existing = proofs
            .iter_mut()
            .find(|proof| proof.account_id == Some(account) && proof.method == method);
        match existing {
            // While the circuit breaker is open, no proof ends and no check counts as missed.
            Some(_) if result.breaker_open && proof_result.outcome != ProofOutcome::Held => {
                changes.in_doubt = true
            }
            Some(proof) => {
                changes.reach_changed |=
                    update_proof(write, change_set, row, proof, proof_result).await?;
            }
            None if proof_result.outcome == ProofOutcome::Held => {
                let proof = new_proof(row.id, proof_result, actor, change_set.now());
                let data =
                    json!({"method": method, "place": proof_result.place, "account": account});
                change_set.add_event(EventKind::DomainProved, &row.name, actor, data);
                write.insert_proof(proof).await?;
                changes.reach_changed = true;
            }
            None => {}
        }
    }
    Ok(changes)
}

/// Applies a result to a proof; returns whether its covered hosts have changed.
async fn update_proof(
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    row: &domain::Model,
    proof: &mut proof::Model,
    proof_result: &ProofResult,
) -> Result<bool> {
    let now = change_set.now();
    let old_zone = proof.zone.clone();
    let history = ProofHistory {
        last_found_at: Timestamp(proof.held_at),
        absent_since: proof.absent_since.map(Timestamp),
        absent_checks: proof.absent_looks,
    };
    match history.after_check(proof_result.outcome, now) {
        Ok(after) => {
            proof.held_at = after.last_found_at.0;
            proof.absent_since = after.absent_since.map(|since| since.0);
            proof.absent_looks = after.absent_checks;
            if proof_result.outcome == ProofOutcome::Held {
                proof.place = Some(proof_result.place.clone());
                proof.nonce.clone_from(&proof_result.nonce);
                proof.zone.clone_from(&proof_result.zone);
            }
        }
        Err(reason) => {
            proof.ended_at = Some(now.0);
            let data =
                json!({"method": proof.method, "account": proof.account_id, "reason": reason});
            change_set.add_event(EventKind::DomainProofEnded, &row.name, SYSTEM_ACTOR, data);
        }
    }
    write.update_proof(proof).await?;
    Ok(proof.ended_at.is_some() || proof.zone != old_zone)
}

/// Selects the deciding result for each account and method: a proof found anywhere, else a failed check, else a wrong
/// or missing value.
fn strongest_proof_results(results: &[ProofResult]) -> BTreeMap<(Uuid, Method), &ProofResult> {
    let weight = |outcome: ProofOutcome| match outcome {
        ProofOutcome::Held => 4,
        ProofOutcome::Bogus => 3,
        ProofOutcome::Unknown => 2,
        ProofOutcome::Wrong => 1,
        ProofOutcome::Absent => 0,
    };
    let mut strongest: BTreeMap<(Uuid, Method), &ProofResult> = BTreeMap::new();
    for candidate in results {
        strongest
            .entry((candidate.account, candidate.method))
            .and_modify(|known| {
                if weight(candidate.outcome) > weight(known.outcome) {
                    *known = candidate;
                }
            })
            .or_insert(candidate);
    }
    strongest
}

fn new_proof(domain: i64, proof_result: &ProofResult, actor: &str, now: Timestamp) -> proof::Model {
    proof::Model {
        id: 0,
        domain_id: domain,
        method: proof_result.method.into(),
        actor: actor.into(),
        account_id: Some(proof_result.account),
        place: Some(proof_result.place.clone()),
        nonce: proof_result.nonce.clone(),
        reason: None,
        proved_at: now.0,
        held_at: now.0,
        absent_since: None,
        absent_looks: 0,
        ended_at: None,
        zone: proof_result.zone.clone(),
        vouched_account: None,
    }
}

fn proof_check_row(
    domain: i64,
    proof_result: &ProofResult,
    breaker_open: bool,
    actor: &str,
    now: Timestamp,
) -> proof_check::Model {
    let mut detail = proof_result.detail.clone();
    if breaker_open && proof_result.outcome != ProofOutcome::Held {
        detail.push_str(
            "; many fetches are failing, probably because of the registry's own network, so proofs keep their state",
        );
    }
    proof_check::Model {
        id: 0,
        domain_id: domain,
        account_id: Some(proof_result.account),
        actor: actor.into(),
        at: now.0,
        method: proof_result.method.into(),
        place: proof_result.place.clone(),
        outcome: proof_result.outcome.into(),
        detail,
        wanted: proof_result.wanted.clone(),
        found: (!proof_result.found.is_empty()).then(|| json!(proof_result.found).to_string()),
        aliased: proof_result.aliased,
    }
}
