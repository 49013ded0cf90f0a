//! Reload of the configuration in a running process, with its admission rules.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use a2a_registry_policy::PolicySet;

use crate::admission::rule_changes::hide_forbidden_agents_with_retries;
use crate::config::Config;
use crate::context::AppContext;
use crate::error::AppError;
use crate::policy_sets::load_newest_policy_set;

/// Takes over the keys of `new` that a running process can replace. If the admission rules have changed, the agents
/// that they may forbid are on hold when this returns; the decisions, and the index, follow in the background.
///
/// # Errors
/// If the database fails; then the old configuration stays.
pub async fn reload_config(context: &AppContext, new: &Config) -> Result<(), AppError> {
    let (old, old_rules) = (context.config(), context.rules());
    let merged = old.with_reloadable_keys(new);
    let new_rules = merged.admission_rules();
    let is_uncertain = &context.rules_progress.has_uncertain_reload;
    let is_unchanged = new_rules.to_string() == old_rules.to_string();
    if is_unchanged && !is_uncertain.load(Ordering::Acquire) {
        context.network.replace_lists(&merged);
        context.active_config.replace(merged);
        return Ok(());
    }
    let sets = &context.policy_sets;
    let old_set = sets.newest_set();
    // The shipped policies depend on the rules.
    let new_set = load_newest_policy_set(&sets.compiled, &context.store, &new_rules).await?;
    context.active_config.replace(merged);
    use_policy_set(context, Arc::new(new_set));
    if let Err(error) = hide_forbidden_agents_with_retries(context).await {
        context.active_config.replace((*old).clone());
        use_policy_set(context, old_set);
        is_uncertain.store(true, Ordering::Release);
        return Err(error);
    }
    is_uncertain.store(false, Ordering::Release);
    context.network.replace_lists(&context.config());
    context.signals.rules.notify_one();
    Ok(())
}

/// Makes this set decide admissions. If it has the number of the set in force, it replaces that too: the two differ
/// only in shipped policies about admission.
fn use_policy_set(context: &AppContext, set: Arc<PolicySet>) {
    let sets = &context.policy_sets;
    if sets.enforced_set().number() == set.number() {
        sets.enforce(Arc::clone(&set));
    }
    sets.set_newest(set);
}
