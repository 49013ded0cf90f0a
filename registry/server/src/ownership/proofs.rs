//! What follows for the proofs of a domain from what was found: which begin, which go on, and which end.

use std::collections::BTreeMap;

use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::ownership::{Look, Method, Standing};
use a2a_registry_domain::timestamp::{HOUR, Timestamp};
use a2a_registry_store::entity::{domain, proof, proof_check};
use a2a_registry_store::{Write, domains};
use serde_json::json;
use uuid::Uuid;

use crate::commit::ledger::{Ledger, SYSTEM};
use crate::error::AppError;
use crate::ownership::{Found, Looked};

/// Keeps what was found at each place, for the owner to see.
pub(crate) async fn keep_checks(
    write: &Write,
    row: &domain::Model,
    looked: &Looked,
    actor: &str,
    now: Timestamp,
) -> Result<(), AppError> {
    let found = looked.found.iter();
    let checks = found.map(|found| check(row.id, found, looked.braked, actor, now));
    let hour_ago = now.plus(-HOUR).0;
    Ok(write
        .checks_insert(row.id, checks.collect(), hour_ago)
        .await?)
}

/// What a look has come to.
pub(crate) struct Concluded {
    /// Whether the proofs cover other hosts now.
    pub(crate) reach_changed: bool,
    /// Whether a question is open because the fault was likely ours.
    pub(crate) in_doubt: bool,
}

/// Begins, keeps and ends proofs by what was found for each.
pub(crate) async fn conclude(
    write: &Write,
    ledger: &mut Ledger<'_>,
    row: &domain::Model,
    looked: &Looked,
    actor: &str,
) -> Result<Concluded, AppError> {
    let mut standing = domains::proofs_of(write, &[row.id]).await?;
    let mut concluded = Concluded {
        reach_changed: false,
        in_doubt: looked.braked && looked.opted_out.is_none(),
    };
    for ((account, method), found) in strongest(&looked.found) {
        let known = standing
            .iter_mut()
            .find(|proof| proof.account_id == Some(account) && proof.method == method);
        match known {
            // While so much fails that the fault is likely ours nothing ends, and no day of it counts as missed.
            Some(_) if looked.braked && found.look != Look::Held => concluded.in_doubt = true,
            Some(proof) => {
                concluded.reach_changed |= look_again(write, ledger, row, proof, found).await?;
            }
            None if found.look == Look::Held => {
                let proof = new_proof(row.id, found, actor, ledger.now());
                let data = json!({"method": method, "place": found.place, "account": account});
                ledger.event(EventKind::DomainProved, &row.name, actor, data);
                write.proof_insert(proof).await?;
                concluded.reach_changed = true;
            }
            None => {}
        }
    }
    Ok(concluded)
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
        outcome: found.look.into(),
        detail,
        wanted: found.wanted.clone(),
        found: (!found.instead.is_empty()).then(|| json!(found.instead).to_string()),
        aliased: found.aliased,
    }
}
