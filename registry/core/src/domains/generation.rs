//! A new generation of a domain, begun by an admin after a change of owner.

use a2a_registry_api::{DomainView, NewGeneration};
use a2a_registry_domain::role::Permission;

use crate::commit::approver::check_reason;
use crate::commit::locks::write_with_followers;
use crate::commit::publish::{commit_written, searchable};
use crate::context::Context;
use crate::domains::acts::domain_visible;
use crate::domains::view::domain_view;
use crate::error::Result;
use crate::ownership::generation::begin_generation;
use crate::visibility::caller::Caller;

/// Begins a new generation of a domain: its proofs, challenges, keys and pins end, and every approval must be given
/// again.
pub async fn domain_new_generation(
    context: &Context,
    caller: &Caller,
    domain: &str,
    why: &NewGeneration,
) -> Result<DomainView> {
    let admin = caller.demand(Permission::Administer)?;
    check_reason(&why.reason)?;
    let seen = domain_visible(context, caller, domain).await?;
    let (write, mut row, followers) = write_with_followers(context, &seen).await?;
    let why = (admin.name.as_str(), why.reason.as_str());
    let touched = begin_generation(context, &write, &mut row, &followers, why, &[]).await?;
    commit_written(context, write, [&touched]).await?;
    searchable(context, &[&touched]).await;
    context.wake.checks.notify_one();
    domain_view(context, caller, row.id).await
}
