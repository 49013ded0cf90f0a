//! Looking for proofs: when an account asks for it, and once a day.

use a2a_registry_domain::ids::random_number;
use a2a_registry_domain::ownership::FAILED_CHECKS;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::{HOUR, MINUTE, SECOND, Timestamp};
use a2a_registry_store::checks::{CheckWish, DueCheck};
use a2a_registry_store::entity::{domain, proof};
use a2a_registry_store::{domains, ownership};
use uuid::Uuid;

use crate::caller::{Account, Caller};
use crate::commit::ledger::{Ledger, SYSTEM, Touched};
use crate::commit::locks::write_with_followers;
use crate::commit::publish::{after_write, searchable};
use crate::context::Context;
use crate::error::{AppError, ErrorKind};
use crate::ownership::apply_check::{accept_keys_of, settle};
use crate::ownership::challenges::{account_uri, registry_host};
use crate::ownership::first_check::is_patience_over;
use crate::ownership::succession::follow_owner;
use crate::ownership::{Claimant, Looked, Question, domain_check, is_provable};
use crate::sources::host_of;
use crate::visits::SPACING;
use crate::visits::outage::is_braked;

/// For this long a domain that was taken for a look is nobody else's to look at.
const TAKEN_FOR: i64 = 10 * MINUTE;
/// Accounts whose proofs of one domain are looked for at once, the oldest claims first. Whose proof stands is looked
/// for in any case: a proof that nobody looks for would never end.
const MAX_CLAIMANTS: usize = 5;
/// Challenges of one account that are looked for at once: those that were proved by, and the newest.
const MAX_NONCES: usize = 3;

/// Takes a domain whose look for proofs is due; `None` where none is that may be looked at now.
pub async fn check_lease(context: &Context) -> Result<Option<DueCheck>, AppError> {
    let now = context.now();
    let wish = CheckWish {
        now: now.0,
        leased_until: now.plus(TAKEN_FOR).0,
        lease: random_number(context.entropy.as_ref()).cast_signed(),
        registered_before: now.plus(-SPACING).0,
        overdue_since: now.plus(-TAKEN_FOR).0,
    };
    Ok(context.store.check_lease(&wish).await?)
}

/// Makes a look that was leased.
///
/// # Errors
/// Where the database fails; the lease is to be given back then.
pub async fn check_make(context: &Context, check: &DueCheck) -> Result<(), AppError> {
    let question = Question {
        may_ask_host: check.may_ask_host,
        ..question(context, &check.domain, None).await?
    };
    let mut looked = look(context, &question).await?;
    take_in(context, &check.domain, &mut looked, SYSTEM).await?;
    check_end(context, check, looked.asked_host, looked.retry_after).await
}

/// Gives back a look that was not made, or broken off; it is due again minutes later.
///
/// # Errors
/// Where the database fails; the lease runs out by itself then.
pub async fn check_give_back(context: &Context, check: &DueCheck) -> Result<(), AppError> {
    check_end(context, check, check.may_ask_host, 0).await
}

/// Ends the lease of a look; a host that was asked rests, as after a visit, and for as many seconds as it wants to.
async fn check_end(
    context: &Context,
    check: &DueCheck,
    asked: bool,
    retry_after: u32,
) -> Result<(), AppError> {
    if !check.may_ask_host {
        return Ok(());
    }
    let now = context.now();
    let wished = now.plus(i64::from(retry_after) * SECOND).0;
    let spaced = wished.max(now.plus(if asked { SPACING } else { 0 }).0);
    // Where some networks are exempt a host of no known block lies in one of them.
    let exempt = !context.config.crawler.allow_networks.is_empty();
    let unknown = if exempt { wished } else { spaced };
    let write = context.store.write().await?;
    write.check_end(&check.domain, spaced, unknown).await?;
    write.commit().await?;
    context.wake.visits.notify_one();
    Ok(())
}

pub(crate) async fn look(context: &Context, question: &Question) -> Result<Looked, AppError> {
    let fetcher = &context.network.fetcher;
    let now = context.clock.now();
    let looked = domain_check::look(fetcher, &registry_host(context), question, now).await;
    Ok(Looked {
        braked: is_braked(context).await?,
        ..looked
    })
}

/// Takes in what was found; where that shows another owner, nothing that was found for the one before counts.
pub(crate) async fn take_in(
    context: &Context,
    seen: &domain::Model,
    looked: &mut Looked,
    actor: &str,
) -> Result<(), AppError> {
    let (write, mut row, followers) = write_with_followers(context, seen).await?;
    // Another owner ends proofs too, and shows on port 443 alone.
    let succeeded = if looked.braked || !is_provable(&row) {
        Touched::default()
    } else {
        follow_owner(context, &write, &mut row, &followers, looked).await?
    };
    let mut ledger = Ledger::new(context.now(), context.entropy.as_ref());
    settle(
        context,
        &write,
        &mut ledger,
        &mut row,
        &followers,
        looked,
        actor,
    )
    .await?;
    let touched = ledger.write(&write).await?;
    write.commit().await?;
    after_write(context, &succeeded);
    after_write(context, &touched);
    context.wake.visits.notify_one();
    let accepted = accept_keys_of(context, &row, looked).await?;
    searchable(context, &[&succeeded, &touched, &accepted]).await;
    Ok(())
}

/// Whose proofs to look for: the caller's, or everybody's whose proof stands or may be given.
pub(crate) async fn question(
    context: &Context,
    row: &domain::Model,
    caller: Option<&Caller>,
) -> Result<Question, AppError> {
    let now = context.now();
    let challenges = ownership::challenges_of(&context.store, &[row.id]).await?;
    let proofs = domains::proofs_of(&context.store, &[row.id]).await?;
    let mut claimants: Vec<Claimant> = Vec::new();
    let standing = proofs.iter().filter_map(standing_claim);
    let open = challenges
        .iter()
        .filter(|challenge| challenge.expires_at > now.0)
        .map(|challenge| (challenge.account_id, Some(challenge.nonce.clone()), false));
    // Before any are left out: the claims of others must not crowd out those that are asked for.
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
    Ok(Question {
        host: host_of(&row.name).unwrap_or(&row.name).to_owned(),
        claimants,
        proved_before: is_provable(row) && !(proofs.is_empty() && marks.is_empty()),
        everybody: only.is_none(),
        may_ask_host: true,
        asks_in_doubt: is_patience_over(row, now),
    })
}

/// Whether the account may have a domain checked once more.
pub(crate) async fn check_attempts(
    context: &Context,
    account: &Account,
    row: &domain::Model,
) -> Result<(), AppError> {
    let now = context.now();
    // Not those that a clock which was ahead has dated beyond the present: they would count for as long as it was.
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

/// Whose claim a proof is, with what was placed for it; it stands.
fn standing_claim(row: &proof::Model) -> Option<(Uuid, Option<String>, bool)> {
    Some((row.account_id?, row.nonce.clone(), true))
}
