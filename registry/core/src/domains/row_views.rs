//! The views of a domain's rows (proofs, checks and sources), limited to what the caller may see.

use a2a_crawler::AttemptOutcome;
use a2a_registry_api::{AttemptView, KnownValidators, Proof, ProofCheck, SourceDay, SourceView};
use a2a_registry_domain::coverage::Coverage;
use a2a_registry_domain::timestamp::{DAY, Timestamp};
use a2a_registry_store::entity::{fetch_attempt, proof, proof_check, source, source_day};
use time::OffsetDateTime;

use crate::domains::domain_access::DomainAccess;
use crate::sources::source_card_url;

/// The view of a proof; callers who see the domain's details also get the reason why the proof is missing.
pub fn proof_view(row: &proof::Model, access: DomainAccess) -> Proof {
    Proof {
        method: row.method.0.clone(),
        at: Timestamp(row.proved_at),
        seen: Timestamp(row.held_at),
        missing_since: row.absent_since.map(Timestamp),
        reason: row.reason.clone().filter(|_| access.sees_details()),
    }
}

pub fn proof_check_view(row: &proof_check::Model) -> ProofCheck {
    ProofCheck {
        at: Timestamp(row.at),
        method: row.method.0.clone(),
        place: row.place.clone(),
        outcome: row.outcome.0.clone(),
        detail: row.detail.clone(),
        wanted: row.wanted.clone(),
        found: row
            .found
            .as_deref()
            .and_then(|found| serde_json::from_str(found).ok())
            .unwrap_or_default(),
        aliased: row.aliased,
    }
}

pub fn source_day_view(row: &source_day::Model) -> SourceDay {
    let at = OffsetDateTime::from(Timestamp(i64::from(row.day).saturating_mul(DAY)));
    SourceDay {
        day: at.date().to_string(),
        looks: u32::try_from(row.looks).unwrap_or(0),
        good: u32::try_from(row.good).unwrap_or(0),
    }
}

/// The view of a source without its credential; its `id` is empty until the caller sets its
/// [`public_source_id`](crate::sources::public_source_id).
pub fn source_view(
    row: &source::Model,
    attempts: Option<Vec<fetch_attempt::Model>>,
    access: DomainAccess,
) -> SourceView {
    let mut attempts: Vec<AttemptView> = attempts
        .unwrap_or_default()
        .into_iter()
        .map(|row| AttemptView {
            at: Timestamp(row.at),
            cache: attempt_cache_use(&row).map(str::to_owned),
            elapsed_ms: u32::try_from(row.elapsed_ms).unwrap_or(0),
            outcome: row.outcome,
            status: row.status.and_then(|status| u16::try_from(status).ok()),
            address: row.address.filter(|_| access == DomainAccess::Curator),
            detail: row.detail,
            url: row.url,
        })
        .collect();
    if !access.sees_details() {
        attempts.clear();
    }
    let last_attempt = (!attempts.is_empty()).then(|| attempts.remove(0));
    SourceView {
        id: String::new(),
        url: row.url.clone(),
        kind: row.kind.0.clone(),
        state: row.liveness.0.clone(),
        agent: None,
        coverage: Coverage::Nomination.into(),
        own: false,
        limit_met: row.limit_met.clone(),
        card_url: (source_card_url(row) != row.url).then(|| source_card_url(row).to_owned()),
        credential: None,
        last_attempt,
        attempts,
        next_due: Some(Timestamp(row.next_due_at)),
        validators: access.sees_details().then(|| known_http_validators(row)),
        max_age: row
            .max_age
            .filter(|_| access.sees_details())
            .and_then(|seconds| u32::try_from(seconds).ok()),
        vary: row.vary.clone().filter(|_| access.sees_details()),
        days: Vec::new(),
    }
}

/// Describes how an attempt used the cached copy.
fn attempt_cache_use(row: &fetch_attempt::Model) -> Option<&'static str> {
    match AttemptOutcome::from_name(&row.outcome)? {
        AttemptOutcome::NotModified => Some("revalidated"),
        AttemptOutcome::Card | AttemptOutcome::Catalog if row.conditional => Some("replaced"),
        AttemptOutcome::Card | AttemptOutcome::Catalog => Some("whole"),
        _ => None,
    }
}

/// Which validators the next conditional request can send; they are sent only to the URL that returned them.
fn known_http_validators(row: &source::Model) -> KnownValidators {
    let usable = row.validator_url.is_some();
    KnownValidators {
        etag: usable && row.etag.is_some(),
        last_modified: usable && row.last_modified.is_some(),
    }
}
