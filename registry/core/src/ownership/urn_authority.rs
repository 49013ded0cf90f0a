//! Authorities are reserved: only admins can prove the domain under which this registry names agents of hosts that
//! cannot be proved, so that nobody else gets names under it (docs/find/ard.md#agents-whose-host-cannot-be-proved).

use a2a_registry_domain::ownership::OwnershipClaim;
use a2a_registry_domain::role::Role;
use a2a_registry_store::entity::account;
use a2a_registry_store::urn_authorities::{accounts_proving_host, used_authorities};
use a2a_registry_store::{Executor, WriteTransaction, accounts};
use uuid::Uuid;

use crate::context::AppContext;
use crate::error::{AppError, Result};

/// Whether this registry names agents under this domain, or has done so: those names are permanent.
pub async fn is_urn_authority(
    context: &AppContext,
    db: &impl Executor,
    domain: &str,
) -> Result<bool> {
    if context.config().ard.authority == domain {
        return Ok(true);
    }
    Ok(!used_authorities(db, &[domain]).await?.is_empty())
}

/// The error for a caller who tries to prove an authority and is no admin.
pub fn reserved_authority_error(domain: &str) -> AppError {
    AppError::conflict(format!(
        "This registry names agents under {domain} ([ard] authority), so only an admin's account can prove it."
    ))
}

/// The claims on a domain that count: of an authority only an admin's vouch and the proofs of admins.
pub async fn permitted_claims(
    context: &AppContext,
    write: &WriteTransaction,
    domain: &str,
    claims: Vec<OwnershipClaim>,
) -> Result<Vec<OwnershipClaim>> {
    if !is_urn_authority(context, write, domain).await? {
        return Ok(claims);
    }
    let claimants: Vec<Uuid> = claims.iter().filter_map(|claim| claim.account).collect();
    let rejected = accounts_without_admin_role(write, &claimants).await?;
    let is_permitted = |claim: &OwnershipClaim| {
        let mut rejected = rejected.iter();
        !rejected.any(|account| claim.account == Some(account.id))
    };
    Ok(claims.into_iter().filter(is_permitted).collect())
}

/// The names of the accounts other than admins that have proved this host, by a proof of its own or of a parent for
/// all hosts below it.
pub async fn other_accounts_proving_host(db: &impl Executor, host: &str) -> Result<Vec<String>> {
    let proving = accounts_proving_host(db, host).await?;
    let others = accounts_without_admin_role(db, &proving).await?;
    let mut names: Vec<String> = others.into_iter().map(|account| account.name).collect();
    names.sort_unstable();
    Ok(names)
}

async fn accounts_without_admin_role(
    db: &impl Executor,
    ids: &[Uuid],
) -> Result<Vec<account::Model>> {
    let mut others = Vec::new();
    for row in accounts::accounts_by_ids(db, ids).await? {
        if !row.is_account_active() || !row.account_roles()?.contains(Role::Admin) {
            others.push(row);
        }
    }
    Ok(others)
}
