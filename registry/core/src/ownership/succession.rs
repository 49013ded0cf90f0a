//! Detects a new owner of a domain by its owner marks (docs/ownership.md#generations).

use std::collections::BTreeSet;

use a2a_registry_domain::coverage::CoverageLevel;
use a2a_registry_domain::ownership::ProofOutcome;
use a2a_registry_domain::succession::OwnerMarks;
use a2a_registry_store::entity::{self, domain};
use a2a_registry_store::{Write, agents, domains, ownership, versions};
use uuid::Uuid;

use crate::commit::approver::SYSTEM;
use crate::commit::touched::Touched;
use crate::context::Context;
use crate::error::Result;
use crate::ownership::generation::begin_generation;
use crate::ownership::{CheckResult, ProofResult};

const MAX_CARD_KEYS: usize = 64;
/// The reason for a generation that the system begins.
const CHANGED: &str =
    "its name servers, its TLS key and the keys of its cards have all changed since its last proof";

/// Begins a new generation of a domain if all its owner marks have changed since a proof of it was last found; proofs
/// found for accounts of the old generation then do not count. Stores the owner marks if a proof was found.
pub async fn follow_owner(
    context: &Context,
    write: &Write,
    row: &mut domain::Model,
    followers: &[domain::Model],
    result: &mut CheckResult,
) -> Result<Touched> {
    let stored = ownership::owner_marks_of(write, &[row.id]).await?.pop();
    let standing = domains::proofs_of(write, &[row.id]).await?;
    if stored.is_none() && standing.is_empty() && !result.has_proof() {
        return Ok(Touched::default());
    }
    let mut before = stored.as_ref().map(owner_marks).unwrap_or_default();
    let now = OwnerMarks {
        name_servers: result.name_servers.iter().cloned().collect(),
        tls_key: result.tls_key.clone(),
        card_keys: card_keys(write, row.id).await?,
    };
    let mut touched = Touched::default();
    if before.are_of_another_than(&now) {
        let past: Vec<Uuid> = standing.iter().filter_map(|row| row.account_id).collect();
        let newcomers = refuse_past_owners(result, &past);
        touched = begin_generation(
            context,
            write,
            row,
            followers,
            (SYSTEM, CHANGED),
            &newcomers,
        )
        .await?;
        before = OwnerMarks::default();
    } else if stored.is_some() && !result.has_proof() {
        return Ok(touched);
    }
    if touched.seq.is_none() || result.has_proof() {
        let seen_at = context.now().0;
        write
            .owner_marks_keep(model(row.id, &before.after(now), seen_at))
            .await?;
    }
    Ok(touched)
}

/// Turns the proofs found for accounts of the old generation into wrong ones; returns the accounts of the other proofs.
fn refuse_past_owners(result: &mut CheckResult, past: &[Uuid]) -> Vec<Uuid> {
    let mut newcomers = Vec::new();
    let held = |proof: &&mut ProofResult| proof.outcome == ProofOutcome::Held;
    for proof in result.proofs.iter_mut().filter(held) {
        if past.contains(&proof.account) {
            proof.outcome = ProofOutcome::Wrong;
            proof.detail = format!("it was found, but the domain has a new owner: {CHANGED}");
        } else {
            newcomers.push(proof.account);
        }
    }
    newcomers
}

/// The thumbprints of the keys that sign the newest versions of a domain's own cards.
async fn card_keys(write: &Write, domain: i64) -> Result<BTreeSet<String>> {
    let agents = agents::agents_of(write, &[domain]).await?;
    let newest: Vec<Uuid> = agents.iter().filter_map(|row| row.newest_version).collect();
    let keys = versions::version_keys(write, &newest).await?;
    let all: BTreeSet<&str> = keys
        .iter()
        // Cards that others have nominated say nothing about the domain's owner.
        .filter(|key| key.standing == CoverageLevel::Covered)
        .flat_map(|key| key.thumbprints.split_whitespace())
        .collect();
    Ok(all
        .into_iter()
        .take(MAX_CARD_KEYS)
        .map(str::to_owned)
        .collect())
}

pub fn owner_marks(row: &entity::owner_marks::Model) -> OwnerMarks {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
    OwnerMarks {
        name_servers: words(&row.name_servers),
        tls_key: row.tls_key.clone(),
        card_keys: words(&row.card_keys),
    }
}

fn model(domain_id: i64, marks: &OwnerMarks, seen_at: i64) -> entity::owner_marks::Model {
    let text = |words: &BTreeSet<String>| {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        words.join(" ")
    };
    entity::owner_marks::Model {
        domain_id,
        name_servers: text(&marks.name_servers),
        tls_key: marks.tls_key.clone(),
        card_keys: text(&marks.card_keys),
        seen_at,
    }
}
