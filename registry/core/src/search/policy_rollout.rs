//! Puts a newer policy set in force: every agent in the index is evaluated under it while the old set still decides,
//! then the new set decides.

use std::sync::Arc;

use a2a_registry_policy::Action;

use crate::agents::documents::{REBUILD_BATCH, load_agent_documents_after};
use crate::context::AppContext;
use crate::policy_sets::load_newest_policy_set;
use crate::search::indexing::{IndexingError, apply_next_events, run_blocking_index_work};
use crate::visibility::policy_labels::evaluated_set_label;

/// Puts the newest policy set in force, if it is not yet; returns whether it is. Events are applied in the meantime,
/// so that searches follow changes of agents. `false` means that it was cancelled. If this fails, the old set stays in
/// force.
pub async fn roll_out_newest_policies(
    context: &AppContext,
    cancelled: impl Fn() -> bool,
) -> Result<bool, IndexingError> {
    let sets = &context.policy_sets;
    let newest = loop {
        let rules = context.rules();
        let newest = load_newest_policy_set(&sets.compiled, &context.store, &rules).await?;
        let newest = Arc::new(newest);
        sets.set_newest(Arc::clone(&newest));
        // The shipped policies depend on the rules: a set of those before a reload must not decide after it.
        if Arc::ptr_eq(&rules, &context.rules()) {
            break newest;
        }
    };
    context.policy_sets.queue_all_agents();
    if newest.is_independent_of_resource(Action::Discover) {
        context.policy_sets.enforce(newest);
        return Ok(true);
    }
    let marker = evaluated_set_label(&newest);
    let is_new = newest.number() != context.policy_sets.enforced_set().number();
    if !is_new && context.index.all_agents_have_label(&marker)? {
        return Ok(true);
    }
    if is_new {
        context.policy_sets.set_pending(Arc::clone(&newest));
    }
    tracing::info!(
        number = newest.number(),
        "evaluating all agents under new policies"
    );
    let mut cursor = None;
    loop {
        let (documents, last) = load_agent_documents_after(context, cursor, REBUILD_BATCH).await?;
        let Some(last) = last else { break };
        let (index, seq) = (context.index.clone(), context.index.applied_seq());
        run_blocking_index_work(move || index.apply_changes(documents, &[], seq)).await?;
        // In this order and one after the other, so that data read before an event is never written after it.
        while apply_next_events(context).await? {}
        if cancelled() {
            return Ok(false);
        }
        cursor = Some(last);
    }
    tracing::info!(number = newest.number(), "new policies are in force");
    context.policy_sets.enforce(newest);
    Ok(true)
}
