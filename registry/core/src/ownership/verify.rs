//! Checks of domain proofs: at an account's request, and once a day.

use a2a_registry_domain::ids::random_number;
use a2a_registry_domain::ownership::FAILED_CHECKS;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::{HOUR, MINUTE, SECOND, Timestamp};
use a2a_registry_store::check_leases::{CheckLeaseRequest, DueCheck};
use a2a_registry_store::entity::{domain, proof, proof_check};
use a2a_registry_store::{domains, ownership};
use uuid::Uuid;

use crate::commit::approver::SYSTEM;
use crate::commit::ledger::Ledger;
use crate::commit::locks::write_with_followers;
use crate::commit::publish::{commit_written, searchable};
use crate::commit::touched::Touched;
use crate::context::Context;
use crate::error::{AppError, ErrorKind, Result};
use crate::ownership::apply_check::{accept_keys_of, apply_check, check_hosts_below};
use crate::ownership::challenges::{account_uri, registry_host};
use crate::ownership::first_check::is_patience_over;
use crate::ownership::owner_vouches::end_superseded;
use crate::ownership::proofs::check_rows;
use crate::ownership::succession::follow_owner;
use crate::ownership::{CheckRequest, CheckResult, Claimant, domain_check, is_provable};
use crate::sources::{host_of, https_origin};
use crate::visibility::caller::{Account, Caller};
use crate::visits::SPACING;
use crate::visits::outage::is_breaker_open;

/// The lease of a check: until it ends no other worker checks that domain.
const LEASED_FOR: i64 = 10 * MINUTE;
/// Accounts checked at once for one domain, the oldest claims first. An account with a proof is checked in any case: a
/// proof that is never checked would never end.
const MAX_CLAIMANTS: usize = 5;
/// Nonces of one account that are checked at once: those of its proofs, and the newest challenges.
const MAX_NONCES: usize = 3;

/// Leases a domain whose check is due; `None` if none is due that may be checked now.
pub async fn check_lease(context: &Context) -> Result<Option<DueCheck>> {
    let now = context.now();
    let request = CheckLeaseRequest {
        now: now.0,
        leased_until: now.plus(LEASED_FOR).0,
        lease: random_number(context.entropy.as_ref()).cast_signed(),
        registered_before: now.plus(-SPACING).0,
        overdue_since: now.plus(-LEASED_FOR).0,
    };
    Ok(context.store.check_lease(&request).await?)
}

/// Runs a leased check. If the database fails, the caller gives the lease back.
pub async fn check_run(context: &Context, check: &DueCheck) -> Result<()> {
    let request = CheckRequest {
        may_contact_host: check.may_contact_host,
        ..check_request(context, &check.domain, None).await?
    };
    let result = run_check(context, &request).await?;
    let (contacted_host, retry_after) = (result.contacted_host, result.retry_after);
    record_check(context, &check.domain, result, SYSTEM).await?;
    check_end(context, check, contacted_host, retry_after).await
}

/// Gives back a check that was not run, or was cancelled; it is due again minutes later. If the database fails, the
/// lease expires by itself.
pub async fn check_give_back(context: &Context, check: &DueCheck) -> Result<()> {
    check_end(context, check, check.may_contact_host, 0).await
}

/// Ends the lease of a check. A host that was contacted is left alone for the spacing of visits, and for its
/// `Retry-After`.
async fn check_end(
    context: &Context,
    check: &DueCheck,
    asked: bool,
    retry_after: u32,
) -> Result<()> {
    if !check.may_contact_host {
        return Ok(());
    }
    let now = context.now();
    let wished = now.plus(i64::from(retry_after) * SECOND).0;
    let spaced = wished.max(now.plus(if asked { SPACING } else { 0 }).0);
    // If some networks are exempt from spacing, a host whose address block is unknown counts as one in an exempt
    // network.
    let exempt = !context.config.crawler.allow_networks.is_empty();
    let unknown = if exempt { wished } else { spaced };
    let write = context.store.write().await?;
    write.check_end(&check.domain, spaced, unknown).await?;
    write.commit().await?;
    context.wake.visits.notify_one();
    Ok(())
}

pub async fn run_check(context: &Context, request: &CheckRequest) -> Result<CheckResult> {
    let shared = context.network.fetcher.as_ref();
    let own = https_origin(&request.host).map(|origin| shared.for_visit(&origin));
    let fetcher = own.as_ref().unwrap_or(shared);
    let now = context.clock.now();
    let result = domain_check::check_domain(fetcher, &registry_host(context), request, now).await;
    Ok(CheckResult {
        breaker_open: is_breaker_open(context).await?,
        ..result
    })
}

/// Records a check's result and applies it to the domain; returns the result at each place, in its stored form. If the
/// result shows a new owner, the proofs found for accounts of the old generation do not count.
pub async fn record_check(
    context: &Context,
    checked: &domain::Model,
    mut result: CheckResult,
    actor: &str,
) -> Result<Vec<proof_check::Model>> {
    let (write, mut row, followers) = write_with_followers(context, checked).await?;
    // A new owner ends proofs too, and is detected on port 443 alone.
    let succeeded = if result.breaker_open || !is_provable(&row) {
        Touched::default()
    } else {
        follow_owner(context, &write, &mut row, &followers, &mut result).await?
    };
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    let now = ledger.now();
    let checks = check_rows(&row, &result, actor, now);
    write
        .checks_insert(row.id, checks.clone(), now.plus(-HOUR).0)
        .await?;
    let reach_changed = apply_check(
        context,
        &write,
        &mut ledger,
        &mut row,
        &followers,
        &result,
        actor,
    )
    .await?;
    let touched = ledger.write(&write).await?;
    // After the agents of the followers were written, which it reads from the database.
    let ended = if row.owner_id.is_some() {
        end_superseded(context, &write, &followers).await?
    } else {
        Touched::default()
    };
    commit_written(context, write, [&succeeded, &touched, &ended]).await?;
    context.wake.visits.notify_one();
    if reach_changed {
        check_hosts_below(context, &result).await?;
    }
    let accepted = accept_keys_of(context, &row, &result).await?;
    searchable(context, &[&succeeded, &touched, &ended, &accepted]).await;
    Ok(checks)
}

/// The check to run for a domain: of the caller's claims, or of all accounts with a proof or an open challenge.
pub async fn check_request(
    context: &Context,
    row: &domain::Model,
    caller: Option<&Caller>,
) -> Result<CheckRequest> {
    let now = context.now();
    let challenges = ownership::challenges_of(&context.store, &[row.id]).await?;
    let proofs = domains::proofs_of(&context.store, &[row.id]).await?;
    let mut claimants: Vec<Claimant> = Vec::new();
    let standing = proofs.iter().filter_map(standing_claim);
    let open = challenges
        .iter()
        .filter(|challenge| challenge.expires_at > now.0)
        .map(|challenge| (challenge.account_id, Some(challenge.nonce.clone()), false));
    // Filtered before the limits below apply: the claims of others must not crowd out the caller's.
    let only = caller.filter(|caller| !caller.may(Permission::Curate));
    let asked_for = |account| only.is_none_or(|caller| caller.is(Some(account)));
    let claims = standing.chain(open).filter(|claim| asked_for(claim.0));
    for (account, nonce, stands) in claims {
        let known = claimants.iter_mut().find(|known| known.account == account);
        if let Some(known) = known {
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
    let marks = ownership::owner_marks_of(&context.store, &[row.id]).await?;
    Ok(CheckRequest {
        host: host_of(&row.name).unwrap_or(&row.name).to_owned(),
        claimants,
        proved_before: is_provable(row) && !(proofs.is_empty() && marks.is_empty()),
        all_claims: only.is_none(),
        may_contact_host: true,
        contact_if_unknown: is_patience_over(row, now),
    })
}

/// Refuses another check of a domain after [`FAILED_CHECKS`] failed ones of the account within an hour.
pub async fn check_attempts(
    context: &Context,
    account: &Account,
    row: &domain::Model,
) -> Result<()> {
    let now = context.now();
    // Checks dated in the future, by a clock that was ahead, are not counted: they would count for too long.
    let hour = now.plus(-HOUR)..=now;
    let failed = ownership::failed_checks(&context.store, row.id, &account.name, hour).await?;
    if (failed.len() as u64) < FAILED_CHECKS {
        return Ok(());
    }
    let again = failed.first().copied().unwrap_or(now.0) + HOUR;
    let seconds = (again - now.0).max(0) / SECOND + 1;
    Err(AppError {
        retry_after: u32::try_from(seconds).ok(),
        ..AppError::new(
            ErrorKind::TooManyRequests,
            format!(
                "{FAILED_CHECKS} checks of {} have failed within an hour; the next one is possible at {}.",
                row.name,
                Timestamp(again).to_rfc3339()
            ),
        )
    })
}

/// The account and nonce of a proof; `true` marks it as a proof and not a challenge.
fn standing_claim(row: &proof::Model) -> Option<(Uuid, Option<String>, bool)> {
    Some((row.account_id?, row.nonce.clone(), true))
}
