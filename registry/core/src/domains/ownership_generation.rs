//! A new ownership generation of a domain, begun by an admin after a change of owner.

use a2a_registry_api::{DomainView, NewGeneration};
use a2a_registry_domain::role::Permission;

use crate::commit::decision_maker::check_reason;
use crate::commit::locks::lock_domain_with_dependents;
use crate::commit::publish::{await_searchable_agents, commit_and_publish};
use crate::context::AppContext;
use crate::domains::actions::find_visible_domain;
use crate::domains::view::domain_view;
use crate::error::Result;
use crate::ownership::generation::begin_ownership_generation;
use crate::visibility::caller::Caller;

/// Begins a new ownership generation of a domain: its proofs, challenges, keys and pins end, and every approval must
/// be given again.
pub async fn domain_new_generation(
    context: &AppContext,
    caller: &Caller,
    domain: &str,
    request: &NewGeneration,
) -> Result<DomainView> {
    let admin = caller.require_permission(Permission::Administer)?;
    check_reason(&request.reason)?;
    let unlocked = find_visible_domain(context, caller, domain).await?;
    let (write, mut row, followers) = lock_domain_with_dependents(context, &unlocked).await?;
    let why = (admin.name.as_str(), request.reason.as_str());
    let committed =
        begin_ownership_generation(context, &write, &mut row, &followers, why, &[]).await?;
    commit_and_publish(context, write, [&committed]).await?;
    await_searchable_agents(context, &[&committed]).await;
    context.signals.checks.notify_one();
    domain_view(context, caller, row.id).await
}
