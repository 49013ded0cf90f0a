//! Prevents the start with an authority for URNs (`[ard] authority`) that another account has proved: its names would
//! be those of another publisher.

use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::{AppError, StartError};
use a2a_registry_core::ownership::urn_authority::other_accounts_proving_host;
use a2a_registry_store::urn_authorities::used_authorities;

/// Once agents are named under an authority, proofs of it by others do not count, so a later one prevents no start.
pub(crate) async fn check_urn_authority(context: &AppContext) -> Result<(), StartError> {
    let config = context.config();
    let authority = config.ard.authority.as_str();
    if authority.is_empty() {
        return Ok(());
    }
    let others = other_accounts_proving_host(&context.store, authority).await;
    let others = others.map_err(|error: AppError| StartError(error.log_message().to_owned()))?;
    let Some(account) = others.first() else {
        return Ok(());
    };
    let text = format!(
        "the account {account} has proved ard.authority = \"{authority}\", or a parent of it for all hosts below"
    );
    if used_authorities(&context.store, &[authority])
        .await?
        .is_empty()
    {
        return Err(StartError(format!(
            "{text}: set a domain of your own that no account but an admin's has proved"
        )));
    }
    tracing::warn!(
        "{text}; that proof does not count for {authority}, under which agents are named already"
    );
    Ok(())
}
