//! Puts a newer policy set in force: every agent in the index is evaluated under it while the old one decides, then it
//! decides.

use std::sync::Arc;

use a2a_registry_policy::Action;

use crate::agents::documents::{WALK, documents_walk};
use crate::context::Context;
use crate::policy_sets::newest_set;
use crate::search::indexing::{IndexingError, blocking, index_next};
use crate::visibility::policy_labels::evaluated;

/// Puts the newest policy set in force, if it is not; returns whether it is. Events are applied in the meantime, so
/// that searches follow changes of agents. `false` means that it was cancelled. If this fails, the old set stays in
/// force.
pub async fn follow_newest(
    context: &Context,
    cancelled: impl Fn() -> bool,
) -> Result<bool, IndexingError> {
    let newest =
        Arc::new(newest_set(&context.policies.compiled, &context.store, &context.rules).await?);
    context.policies.admit_by(Arc::clone(&newest));
    context.policies.note_all_changed();
    if newest.is_plain(Action::Discover) {
        context.policies.enforce(newest);
        return Ok(true);
    }
    let marker = evaluated(&newest);
    let is_new = newest.number() != context.policies.in_force().number();
    if !is_new && context.index.all_carry(&marker)? {
        return Ok(true);
    }
    if is_new {
        context.policies.prepare(Arc::clone(&newest));
    }
    tracing::info!(
        number = newest.number(),
        "evaluating all agents under new policies"
    );
    let mut after = None;
    loop {
        let (documents, last) = documents_walk(context, after, WALK).await?;
        let Some(last) = last else { break };
        let (index, seq) = (context.index.clone(), context.index.applied_seq());
        blocking(move || index.apply(documents, &[], seq)).await?;
        // In this order and one after the other: what was read before an event is never written after it.
        while index_next(context).await? {}
        if cancelled() {
            return Ok(false);
        }
        after = Some(last);
    }
    tracing::info!(number = newest.number(), "new policies are in force");
    context.policies.enforce(newest);
    Ok(true)
}
