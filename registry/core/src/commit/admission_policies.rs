//! The policy set that decides admission and registration in a write.

use std::sync::Arc;

use a2a_registry_policy::PolicySet;
use a2a_registry_store::{Executor, policies};

use crate::context::AppContext;
use crate::error::AppError;
use crate::policy_sets::compile_stored_set;

/// Loads the set by which a write admits cards and registers domains: the newest one, even if this process does not
/// evaluate visibility by it yet. A set that this build cannot compile admits nothing.
pub async fn load_admission_policies(
    context: &AppContext,
    db: &impl Executor,
) -> Result<Arc<PolicySet>, AppError> {
    let number = u64::try_from(policies::newest_policy_set_number(db).await?).unwrap_or(0);
    let cached = context.policy_sets.newest_set();
    if cached.number() == number {
        return Ok(cached);
    }
    let row = policies::newest_policy_set(db).await?;
    loop {
        let rules = context.rules();
        let set = compile_stored_set(&context.policy_sets.compiled, row.clone(), &rules)
            .await
            .or_else(|error| {
                tracing::error!(
                    number,
                    error = error.internal.unwrap_or(error.public),
                    "nothing is admitted until the policies can be read"
                );
                PolicySet::compile(number, &[]).map_err(|_| {
                    AppError::internal("the empty policy set cannot be compiled".to_owned())
                })
            })?;
        let set = Arc::new(set);
        context.policy_sets.set_newest(Arc::clone(&set));
        // The shipped policies depend on the rules: a set of those before a reload must not decide after it.
        if Arc::ptr_eq(&rules, &context.rules()) {
            return Ok(set);
        }
    }
}
