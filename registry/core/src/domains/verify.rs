//! The check of a domain's proofs at a caller's request.

use a2a_registry_api::Verification;
use a2a_registry_domain::role::Permission;

use crate::context::AppContext;
use crate::domains::actions::find_visible_domain;
use crate::domains::row_views::proof_check_view;
use crate::domains::view::domain_view;
use crate::error::{AppError, Result};
use crate::ownership::challenges::ensure_challenges;
use crate::ownership::is_provable_domain;
use crate::ownership::verify::{
    build_domain_check_request, enforce_failed_check_limit, record_domain_check, run_domain_check,
};
use crate::visibility::caller::Caller;

/// Checks the caller's proofs of a domain now, or for a curator those of all accounts. The request is refused after
/// five failed checks in an hour.
pub async fn domain_verify(
    context: &AppContext,
    caller: &Caller,
    domain: &str,
) -> Result<Verification> {
    let account = caller.require_permission(Permission::Register)?;
    let row = find_visible_domain(context, caller, domain).await?;
    if !is_provable_domain(&row) {
        return Err(AppError::conflict(format!(
            "{} cannot be proved: only a host name on port 443 can. An admin can vouch for it.",
            row.name
        )));
    }
    enforce_failed_check_limit(context, account, &row).await?;
    // A curator checks the proofs of others and makes no claim.
    if !caller.has_permission(Permission::Curate) {
        let write = context.store.begin_write().await?;
        ensure_challenges(context, &write, &[row.id], account.id).await?;
        write.commit().await?;
    }
    let request = build_domain_check_request(context, &row, Some(caller)).await?;
    let result = run_domain_check(context, &request).await?;
    let checks = record_domain_check(context, &row, result, &account.name).await?;
    Ok(Verification {
        domain: domain_view(context, caller, row.id).await?,
        checks: checks.iter().map(proof_check_view).collect(),
    })
}
