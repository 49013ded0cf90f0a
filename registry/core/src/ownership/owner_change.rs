//! Detects a new owner of a domain by its owner fingerprint (docs/publish/prove.md#a-domain-changes-hands).

use std::collections::BTreeSet;

use a2a_registry_domain::coverage::CoverageLevel;
use a2a_registry_domain::owner_fingerprint::OwnerFingerprint;
use a2a_registry_domain::ownership::ProofOutcome;
use a2a_registry_store::entity::{self, domain};
use a2a_registry_store::{WriteTransaction, agents, domains, ownership, versions};
use uuid::Uuid;

use crate::commit::committed_changes::CommittedChanges;
use crate::commit::decision_maker::SYSTEM_ACTOR;
use crate::context::AppContext;
use crate::error::Result;
use crate::ownership::generation::begin_ownership_generation;
use crate::ownership::{DomainCheckResult, ProofResult};

const MAX_CARD_KEYS: usize = 64;
/// The reason for a new generation that the system begins.
const CHANGED: &str =
    "its name servers, its TLS key and the keys of its cards have all changed since its last proof";

/// Begins a new ownership generation of a domain if its whole owner fingerprint has changed since a proof was last
/// found; proofs found for accounts of the old generation then do not count. Stores the owner fingerprint if a proof
/// was found.
pub async fn apply_owner_change(
    context: &AppContext,
    write: &WriteTransaction,
    row: &mut domain::Model,
    followers: &[domain::Model],
    result: &mut DomainCheckResult,
) -> Result<CommittedChanges> {
    let stored = ownership::owner_fingerprints_by_domain(write, &[row.id])
        .await?
        .pop();
    let proofs = domains::valid_proofs_by_domain(write, &[row.id]).await?;
    if stored.is_none() && proofs.is_empty() && !result.has_proof() {
        return Ok(CommittedChanges::default());
    }
    let mut old_fingerprint = stored
        .as_ref()
        .map(parse_owner_fingerprint)
        .unwrap_or_default();
    let new_fingerprint = OwnerFingerprint {
        name_servers: result.name_servers.iter().cloned().collect(),
        tls_key: result.tls_key.clone(),
        card_keys: load_card_keys(write, row.id).await?,
    };
    let mut committed = CommittedChanges::default();
    if old_fingerprint.indicates_new_owner(&new_fingerprint) {
        let past: Vec<Uuid> = proofs.iter().filter_map(|row| row.account_id).collect();
        let newcomers = reject_past_owner_proofs(result, &past);
        committed = begin_ownership_generation(
            context,
            write,
            row,
            followers,
            (SYSTEM_ACTOR, CHANGED),
            &newcomers,
        )
        .await?;
        old_fingerprint = OwnerFingerprint::default();
    } else if stored.is_some() && !result.has_proof() {
        return Ok(committed);
    }
    if committed.last_seq.is_none() || result.has_proof() {
        let seen_at = context.now().0;
        write
            .upsert_owner_fingerprint(domain_fingerprint_row(
                row.id,
                &old_fingerprint.merge(new_fingerprint),
                seen_at,
            ))
            .await?;
    }
    Ok(committed)
}

/// Marks the proofs found for accounts of the old generation as wrong; returns the accounts of the other proofs.
fn reject_past_owner_proofs(result: &mut DomainCheckResult, past_owners: &[Uuid]) -> Vec<Uuid> {
    let mut newcomers = Vec::new();
    let is_held = |proof: &&mut ProofResult| proof.outcome == ProofOutcome::Held;
    for proof in result.proofs.iter_mut().filter(is_held) {
        if past_owners.contains(&proof.account) {
            proof.outcome = ProofOutcome::Wrong;
            proof.detail = format!("it was found, but the domain has a new owner: {CHANGED}");
        } else {
            newcomers.push(proof.account);
        }
    }
    newcomers
}

/// The thumbprints of the keys that sign the newest versions of a domain's own cards.
async fn load_card_keys(write: &WriteTransaction, domain: i64) -> Result<BTreeSet<String>> {
    let agents = agents::live_agents_by_domain(write, &[domain]).await?;
    let newest: Vec<Uuid> = agents.iter().filter_map(|row| row.newest_version).collect();
    let keys = versions::version_summaries(write, &newest).await?;
    let thumbprints: BTreeSet<&str> = keys
        .iter()
        // Cards that others have nominated say nothing about the domain's owner.
        .filter(|key| key.standing == CoverageLevel::Covered)
        .flat_map(|key| key.thumbprints.split_whitespace())
        .collect();
    Ok(thumbprints
        .into_iter()
        .take(MAX_CARD_KEYS)
        .map(str::to_owned)
        .collect())
}

pub fn parse_owner_fingerprint(row: &entity::owner_fingerprint::Model) -> OwnerFingerprint {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
    OwnerFingerprint {
        name_servers: words(&row.name_servers),
        tls_key: row.tls_key.clone(),
        card_keys: words(&row.card_keys),
    }
}

fn domain_fingerprint_row(
    domain_id: i64,
    fingerprint: &OwnerFingerprint,
    seen_at: i64,
) -> entity::owner_fingerprint::Model {
    let text = |words: &BTreeSet<String>| {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        words.join(" ")
    };
    entity::owner_fingerprint::Model {
        domain_id,
        name_servers: text(&fingerprint.name_servers),
        tls_key: fingerprint.tls_key.clone(),
        card_keys: text(&fingerprint.card_keys),
        seen_at,
    }
}
