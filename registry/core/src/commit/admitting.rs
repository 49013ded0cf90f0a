//! The policy set by which a write admits and registers.

use std::sync::Arc;

use a2a_registry_policy::PolicySet;
use a2a_registry_store::{Handle, policies};

use crate::context::Context;
use crate::error::AppError;
use crate::policy_sets::compiled;

/// The set by which cards are admitted and domains registered in a write: the newest of all, also where this process does not
/// show agents by it yet. One that this version of the program cannot compile admits nothing.
pub async fn admitting_set(
    context: &Context,
    on: &impl Handle,
) -> Result<Arc<PolicySet>, AppError> {
    let number = u64::try_from(policies::policy_set_number(on).await?).unwrap_or(0);
    let known = context.policies.admitting();
    if known.number() == number {
        return Ok(known);
    }
    let row = policies::policy_set_newest(on).await?;
    let set = compiled(&context.policies.compiled, row, &context.rules)
        .await
        .or_else(|error| {
            tracing::error!(
                number,
                error = error.internal.unwrap_or(error.public),
                "nothing is admitted until the policies can be read"
            );
            PolicySet::compile(number, &[])
                .map_err(|_| AppError::internal("no policies".to_owned()))
        })?;
    let set = Arc::new(set);
    context.policies.admit_by(Arc::clone(&set));
    Ok(set)
}
