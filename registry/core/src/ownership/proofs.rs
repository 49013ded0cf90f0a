//! The proofs of a domain after a check: which begin, which continue, and which end.

use std::collections::BTreeMap;

use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::ownership::{Method, ProofHistory, ProofOutcome};
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{domain, proof, proof_check};
use a2a_registry_store::{Write, domains};
use serde_json::json;
use uuid::Uuid;

use crate::commit::approver::SYSTEM;
use crate::commit::ledger::Ledger;
use crate::error::Result;
use crate::ownership::{CheckResult, ProofResult};

/// The result at each place, in its stored form.
pub fn check_rows(
    row: &domain::Model,
    result: &CheckResult,
    actor: &str,
    now: Timestamp,
) -> Vec<proof_check::Model> {
    let found = result.proofs.iter();
    found
        .map(|found| check_row(row.id, found, result.breaker_open, actor, now))
        .collect()
}

pub struct ProofChanges {
    /// Whether the proofs cover a different set of hosts now.
    pub reach_changed: bool,
    /// Whether the check decided nothing because the circuit breaker was open.
    pub in_doubt: bool,
}

/// Begins, continues and ends proofs by the result of a check.
pub async fn update_proofs(
    write: &Write,
    ledger: &mut Ledger<'_>,
    row: &domain::Model,
    result: &CheckResult,
    actor: &str,
) -> Result<ProofChanges> {
    let mut standing = domains::proofs_of(write, &[row.id]).await?;
    let mut changes = ProofChanges {
        reach_changed: false,
        in_doubt: result.breaker_open && result.opted_out.is_none(),
    };
    for ((account, method), found) in strongest(&result.proofs) {
        let known = standing
            .iter_mut()
            .find(|proof| proof.account_id == Some(account) && proof.method == method);
        match known {
            // While the circuit breaker is open no proof ends, and no check counts as a missed one.
            Some(_) if result.breaker_open && found.outcome != ProofOutcome::Held => {
                changes.in_doubt = true
            }
            Some(proof) => {
                changes.reach_changed |= recheck_proof(write, ledger, row, proof, found).await?;
            }
            None if found.outcome == ProofOutcome::Held => {
                let proof = new_proof(row.id, found, actor, ledger.now());
                let data = json!({"method": method, "place": found.place, "account": account});
                ledger.event(EventKind::DomainProved, &row.name, actor, data);
                write.proof_insert(proof).await?;
                changes.reach_changed = true;
            }
            None => {}
        }
    }
    Ok(changes)
}

/// Applies a result to a proof; returns whether the hosts that it covers have changed.
async fn recheck_proof(
    write: &Write,
    ledger: &mut Ledger<'_>,
    row: &domain::Model,
    proof: &mut proof::Model,
    found: &ProofResult,
) -> Result<bool> {
    let now = ledger.now();
    let reached = proof.zone.clone();
    let before = ProofHistory {
        held_at: Timestamp(proof.held_at),
        absent_since: proof.absent_since.map(Timestamp),
        absent_checks: proof.absent_looks,
    };
    match before.after(found.outcome, now) {
        Ok(after) => {
            proof.held_at = after.held_at.0;
            proof.absent_since = after.absent_since.map(|since| since.0);
            proof.absent_looks = after.absent_checks;
            if found.outcome == ProofOutcome::Held {
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

/// The deciding result for each account and method: a proof found anywhere, else a failed check, else a wrong or
/// missing value.
fn strongest(found: &[ProofResult]) -> BTreeMap<(Uuid, Method), &ProofResult> {
    let weight = |outcome: ProofOutcome| match outcome {
        ProofOutcome::Held => 4,
        ProofOutcome::Bogus => 3,
        ProofOutcome::Unknown => 2,
        ProofOutcome::Wrong => 1,
        ProofOutcome::Absent => 0,
    };
    let mut counts: BTreeMap<(Uuid, Method), &ProofResult> = BTreeMap::new();
    for one in found {
        counts
            .entry((one.account, one.method))
            .and_modify(|known| {
                if weight(one.outcome) > weight(known.outcome) {
                    *known = one;
                }
            })
            .or_insert(one);
    }
    counts
}

fn new_proof(domain: i64, found: &ProofResult, actor: &str, now: Timestamp) -> proof::Model {
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

fn check_row(
    domain: i64,
    found: &ProofResult,
    breaker_open: bool,
    actor: &str,
    now: Timestamp,
) -> proof_check::Model {
    let mut detail = found.detail.clone();
    if breaker_open && found.outcome != ProofOutcome::Held {
        detail.push_str(
            "; many fetches are failing, probably because of the registry's own network, so proofs keep their state",
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
        outcome: found.outcome.into(),
        detail,
        wanted: found.wanted.clone(),
        found: (!found.found.is_empty()).then(|| json!(found.found).to_string()),
        aliased: found.aliased,
    }
}
