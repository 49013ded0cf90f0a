//! Checks of domain proofs: at an account's request, and once a day.

use a2a_registry_domain::identifiers::random_u64;
use a2a_registry_domain::ownership::MAX_FAILED_CHECKS;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::{HOUR, MINUTE, SECOND, Timestamp};
use a2a_registry_store::check_leases::{CheckLeaseRequest, DueCheck};
use a2a_registry_store::entity::{domain, proof, proof_check};
use a2a_registry_store::{domains, ownership};
use uuid::Uuid;

use crate::commit::change_set::ChangeSet;
use crate::commit::committed_changes::CommittedChanges;
use crate::commit::decision_maker::SYSTEM_ACTOR;
use crate::commit::locks::lock_domain_with_dependents;
use crate::commit::publish::{await_searchable_agents, commit_and_publish};
use crate::context::AppContext;
use crate::error::{AppError, ErrorKind, Result};
use crate::ownership::apply_check::{
    apply_check_result, pin_domain_keys, request_subdomain_checks,
};
use crate::ownership::challenges::{account_uri, registry_host};
use crate::ownership::opt_out_lookup::is_opt_out_wait_over;
use crate::ownership::owner_change::apply_owner_change;
use crate::ownership::owner_vouches::end_superseded_vouches;
use crate::ownership::proofs::proof_check_rows;
use crate::ownership::{Claimant, DomainCheckRequest, DomainCheckResult, domain_check};
use crate::sources::{domain_host, https_origin};
use crate::visibility::caller::{Caller, CallerAccount};
use crate::visits::VISIT_SPACING;
use crate::visits::outage::is_breaker_open_anywhere;

/// The duration of a check's lease, during which no other worker checks the domain.
const CHECK_LEASE_DURATION: i64 = 10 * MINUTE;
/// Maximum number of accounts in one check of a domain, oldest claims first. An account with a proof is always
/// checked: a proof that is never checked would never end.
const MAX_CLAIMANTS: usize = 5;
/// Maximum number of nonces of one account in a check: those of its proofs, and the newest challenges.
const MAX_NONCES: usize = 3;

/// Leases a domain whose check is due and permitted now; `None` if there is none.
pub async fn lease_due_domain_check(context: &AppContext) -> Result<Option<DueCheck>> {
    let now = context.now();
    let request = CheckLeaseRequest {
        now: now.0,
        leased_until: now.plus_micros(CHECK_LEASE_DURATION).0,
        lease: random_u64(context.entropy.as_ref()).cast_signed(),
        registered_before: now.plus_micros(-VISIT_SPACING).0,
        overdue_since: now.plus_micros(-CHECK_LEASE_DURATION).0,
    };
    Ok(context.store.lease_due_check(&request).await?)
}

/// Runs a leased check. If the database fails, the caller gives the lease back.
pub async fn run_leased_domain_check(context: &AppContext, check: &DueCheck) -> Result<()> {
    let request = DomainCheckRequest {
        may_contact_host: check.may_contact_host,
        ..build_domain_check_request(context, &check.domain, None).await?
    };
    let result = run_domain_check(context, &request).await?;
    let (contacted_host, retry_after) = (result.contacted_host, result.retry_after);
    record_domain_check(context, &check.domain, result, SYSTEM_ACTOR).await?;
    end_domain_check_lease(context, check, contacted_host, retry_after).await
}

/// Gives back a check that was not run or was cancelled; it is due again minutes later. If the database fails, the
/// lease expires.
pub async fn release_domain_check(context: &AppContext, check: &DueCheck) -> Result<()> {
    end_domain_check_lease(context, check, check.may_contact_host, 0).await
}

/// Ends the lease of a check. A host that was contacted gets no further request until the spacing of visits and its
/// `Retry-After` have passed.
async fn end_domain_check_lease(
    context: &AppContext,
    check: &DueCheck,
    contacted_host: bool,
    retry_after: u32,
) -> Result<()> {
    if !check.may_contact_host {
        return Ok(());
    }
    let now = context.now();
    let retry_at = now.plus_micros(i64::from(retry_after) * SECOND).0;
    let next_request_at = retry_at.max(
        now.plus_micros(if contacted_host { VISIT_SPACING } else { 0 })
            .0,
    );
    // If some networks are exempt from spacing, a host with an unknown address block counts as exempt too.
    let exempt = !context.config().crawler.allow_networks.is_empty();
    let unknown = if exempt { retry_at } else { next_request_at };
    let write = context.store.begin_write().await?;
    write
        .end_check_lease(&check.domain, next_request_at, unknown)
        .await?;
    write.commit().await?;
    context.signals.visits.notify_one();
    Ok(())
}

pub async fn run_domain_check(
    context: &AppContext,
    request: &DomainCheckRequest,
) -> Result<DomainCheckResult> {
    let shared = context.network.fetcher.as_ref();
    let own = https_origin(&request.host).map(|origin| shared.for_visit(&origin));
    let fetcher = own.as_ref().unwrap_or(shared);
    let now = context.clock.now();
    let result = domain_check::check_domain(fetcher, &registry_host(context), request, now).await;
    Ok(DomainCheckResult {
        breaker_open: is_breaker_open_anywhere(context).await?,
        ..result
    })
}

/// Records a check's result and applies it to the domain; returns the result at each location, in its stored form. If
/// the result shows a new owner, proofs found for accounts of the old generation do not count.
pub async fn record_domain_check(
    context: &AppContext,
    checked: &domain::Model,
    mut result: DomainCheckResult,
    actor: &str,
) -> Result<Vec<proof_check::Model>> {
    let (write, mut row, followers) = lock_domain_with_dependents(context, checked).await?;
    // A new owner ends proofs too; it can only be detected on port 443.
    let owner_changes = if result.breaker_open || !row.can_be_proved() {
        CommittedChanges::default()
    } else {
        apply_owner_change(context, &write, &mut row, &followers, &mut result).await?
    };
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    let now = change_set.now();
    let checks = proof_check_rows(&row, &result, actor, now);
    write
        .insert_and_trim_checks(row.id, checks.clone(), now.plus_micros(-HOUR).0)
        .await?;
    let reach_changed = apply_check_result(
        context,
        &write,
        &mut change_set,
        &mut row,
        &followers,
        &result,
        actor,
    )
    .await?;
    let proof_changes = change_set.write(&write).await?;
    // Runs after the agents of the followers were written, because it reads them from the database.
    let vouch_changes = if row.owner_id.is_some() {
        end_superseded_vouches(context, &write, &followers).await?
    } else {
        CommittedChanges::default()
    };
    commit_and_publish(
        context,
        write,
        [&owner_changes, &proof_changes, &vouch_changes],
    )
    .await?;
    context.signals.visits.notify_one();
    if reach_changed {
        request_subdomain_checks(context, &result).await?;
    }
    let accepted = pin_domain_keys(context, &row, &result).await?;
    await_searchable_agents(
        context,
        &[&owner_changes, &proof_changes, &vouch_changes, &accepted],
    )
    .await;
    Ok(checks)
}

/// Builds the check of a domain: for the caller's claims, or for all accounts with a proof or an open challenge.
pub async fn build_domain_check_request(
    context: &AppContext,
    row: &domain::Model,
    caller: Option<&Caller>,
) -> Result<DomainCheckRequest> {
    let now = context.now();
    let challenges = ownership::challenges_by_domain(&context.store, &[row.id]).await?;
    let proofs = domains::valid_proofs_by_domain(&context.store, &[row.id]).await?;
    let mut claimants: Vec<Claimant> = Vec::new();
    let proof_claims = proofs.iter().filter_map(proof_account_and_nonce);
    let challenge_claims = challenges
        .iter()
        .filter(|challenge| challenge.expires_at > now.0)
        .map(|challenge| (challenge.account_id, Some(challenge.nonce.clone()), false));
    // Filtered before the limits below apply: the claims of others must not crowd out the caller's.
    let only_caller = caller.filter(|caller| !caller.has_permission(Permission::Curate));
    let asked_for = |account| only_caller.is_none_or(|caller| caller.is_account(Some(account)));
    let claims = proof_claims
        .chain(challenge_claims)
        .filter(|claim| asked_for(claim.0));
    for (account, nonce, stands) in claims {
        let existing = claimants.iter_mut().find(|known| known.account == account);
        if let Some(known) = existing {
            known.nonces.extend(nonce);
        } else if stands || claimants.len() < MAX_CLAIMANTS {
            claimants.push(Claimant {
                account,
                uri: account_uri(context, account),
                nonces: nonce.into_iter().collect(),
            });
        }
    }
    for claimant in &mut claimants {
        claimant.nonces.sort_unstable();
        claimant.nonces.dedup();
        claimant.nonces.truncate(MAX_NONCES);
    }
    let marks = ownership::owner_fingerprints_by_domain(&context.store, &[row.id]).await?;
    Ok(DomainCheckRequest {
        host: domain_host(&row.name).unwrap_or(&row.name).to_owned(),
        claimants,
        proved_before: row.can_be_proved() && !(proofs.is_empty() && marks.is_empty()),
        all_claims: only_caller.is_none(),
        may_contact_host: true,
        contact_if_unknown: is_opt_out_wait_over(row, now),
    })
}

/// Refuses another check of a domain after [`MAX_FAILED_CHECKS`] failed ones of the account within an hour.
pub async fn enforce_failed_check_limit(
    context: &AppContext,
    account: &CallerAccount,
    row: &domain::Model,
) -> Result<()> {
    let now = context.now();
    // Checks dated in the future by a clock that was ahead are not counted, because they would count for too long.
    let hour = now.plus_micros(-HOUR)..=now;
    let failed = ownership::failed_check_times(&context.store, row.id, &account.name, hour).await?;
    if (failed.len() as u64) < MAX_FAILED_CHECKS {
        return Ok(());
    }
    let next_allowed_at = failed.first().copied().unwrap_or(now.0) + HOUR;
    let seconds = (next_allowed_at - now.0).max(0) / SECOND + 1;
    Err(AppError {
        retry_after: u32::try_from(seconds).ok(),
        ..AppError::new(
            ErrorKind::TooManyRequests,
            format!(
                "{MAX_FAILED_CHECKS} checks of {} have failed within an hour; the next one is possible at {}.",
                row.name,
                Timestamp(next_allowed_at).to_rfc3339()
            ),
        )
    })
}

/// The account and nonce of a proof; `true` marks it as a proof and not a challenge.
fn proof_account_and_nonce(row: &proof::Model) -> Option<(Uuid, Option<String>, bool)> {
    Some((row.account_id?, row.nonce.clone(), true))
}
