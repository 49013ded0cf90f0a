//! The check of a domain's proofs at a caller's request.

use a2a_registry_api::Verification;
use a2a_registry_domain::role::Permission;
use a2a_registry_store::domains::live_sources_by_domain;
use a2a_registry_store::entity::domain;

use crate::context::AppContext;
use crate::domains::actions::find_visible_domain;
use crate::domains::row_views::proof_check_view;
use crate::domains::view::domain_view;
use crate::error::{AppError, Result};
use crate::ownership::challenges::{challenge_unavailable_reason, ensure_challenges};
use crate::ownership::urn_authority::{is_urn_authority, reserved_authority_error};
use crate::ownership::verify::{
    build_domain_check_request, enforce_failed_check_limit, record_domain_check, run_domain_check,
};
use crate::sources::https_origin;
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
    if let Some(reason) = challenge_unavailable_reason(&row)
        && !is_served_over_tls(context, &row).await?
    {
        return Err(AppError::conflict(reason));
    }
    if !caller.has_permission(Permission::Curate)
        && is_urn_authority(context, &context.store, &row.name).await?
    {
        return Err(reserved_authority_error(&row.name));
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

/// Whether a host name that was registered over plain http has been registered over https too. A proof makes it a
/// domain of port 443, and what it serves over plain http a nomination.
async fn is_served_over_tls(context: &AppContext, row: &domain::Model) -> Result<bool> {
    if !row.has_plain_host_name() {
        return Ok(false);
    }
    let origin = https_origin(&row.name).map(String::from);
    let sources = live_sources_by_domain(&context.store, &[row.id]).await?;
    let mut sources = sources.iter();
    Ok(origin.is_some_and(|origin| sources.any(|source| source.url.starts_with(&origin))))
}
