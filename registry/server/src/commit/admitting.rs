//! The policy set by which a write admits and registers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use a2a_registry_policy::{Action, AgentFacts, Matches, PolicySet};
use a2a_registry_store::{Handle, policies};

use crate::context::Context;
use crate::error::AppError;
use crate::policy_sets::compiled;

/// The set by which cards are admitted and domains registered in a write: the newest of all, also where this process does not
/// show agents by it yet. One that this version of the program cannot compile admits nothing.
///
/// # Errors
/// Where the database fails.
pub(crate) async fn admitting_set(
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

/// The facts that the shipped policies ask for: whether the domain is verified and on `allow_domains`, whether the card is
/// covered and has an error, and the class of its change.
type ShippedFacts = (bool, bool, bool, bool, String);

/// The policies that match cards where only shipped ones are about admitting. They are evaluated once for each combination of
/// the facts that they ask for, and not for each card of a group.
#[derive(Debug, Default)]
pub(crate) struct ShippedMatches(Mutex<BTreeMap<ShippedFacts, Matches>>);

impl ShippedMatches {
    /// The policies of this set, always the same one, that match a card with these facts.
    pub(crate) fn evaluate(&self, set: &PolicySet, facts: &AgentFacts) -> Matches {
        let asked = (
            facts.verified,
            facts.allow_listed,
            facts.covered,
            facts.has_error,
            facts.change.clone(),
        );
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let matches = known.entry(asked);
        matches
            .or_insert_with(|| set.matches(Action::Admit, facts))
            .clone()
    }
}
