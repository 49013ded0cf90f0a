//! The check of a domain's proofs at a caller's request.

use a2a_registry_api::{ProofCheck, Verification};
use a2a_registry_domain::role::Permission;

use crate::caller::Caller;
use crate::context::Context;
use crate::domains::acts::domain_visible;
use crate::domains::view::domain_view;
use crate::error::{AppError, ErrorKind};
use crate::ownership::challenges::ensure_challenge;
use crate::ownership::is_provable;
use crate::ownership::verify::{check_attempts, check_request, record_check, run_check};

/// Checks the caller's proofs of a domain now; for a curator, those of all accounts.
///
/// # Errors
/// `NotFound`; `Conflict` for a domain that cannot be proved; `TooManyRequests` after five failed checks in an hour.
pub async fn domain_verify(
    context: &Context,
    caller: &Caller,
    domain: &str,
) -> Result<Verification, AppError> {
    let account = caller.demand(Permission::Register)?;
    let row = domain_visible(context, caller, domain).await?;
    if !is_provable(&row) {
        return Err(AppError::new(
            ErrorKind::Conflict,
            format!(
                "{} cannot be proved: only a host name on port 443 can. An admin can vouch for it.",
                row.name
            ),
        ));
    }
    check_attempts(context, account, &row).await?;
    // A curator checks what others have placed and claims nothing.
    if !caller.may(Permission::Curate) {
        let write = context.store.write().await?;
        ensure_challenge(context, &write, row.id, account.id).await?;
        write.commit().await?;
    }
    let request = check_request(context, &row, Some(caller)).await?;
    let mut result = run_check(context, &request).await?;
    record_check(context, &row, &mut result, &account.name).await?;
    let at = context.now();
    Ok(Verification {
        domain: domain_view(context, caller, row.id).await?,
        checks: result
            .proofs
            .into_iter()
            .map(|found| ProofCheck {
                at,
                method: found.method.into(),
                place: found.place,
                outcome: found.outcome.into(),
                detail: found.detail,
                wanted: found.wanted,
                found: found.found,
                aliased: found.aliased,
            })
            .collect(),
    })
}
