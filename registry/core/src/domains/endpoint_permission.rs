//! What the owner of a domain and an admin say about checks of its endpoints (docs/publish/endpoint-check.md).

use a2a_registry_api::{DomainView, NewEndpointVouch};
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::role::Permission;
use a2a_registry_store::entity::{domain, endpoint_permission};
use a2a_registry_store::{WriteTransaction, endpoint_checks};
use serde_json::json;

use crate::commit::change_set::ChangeSet;
use crate::commit::decision_maker::check_reason;
use crate::commit::locks::lock_domain;
use crate::commit::publish::commit_changes;
use crate::context::AppContext;
use crate::domains::actions::find_visible_domain;
use crate::domains::view::domain_view;
use crate::error::{AppError, Result};
use crate::visibility::caller::Caller;

/// Permits checks of the endpoints on exactly this scheme, host and port. Repeating it replaces the reason.
pub async fn vouch_for_endpoints(
    context: &AppContext,
    caller: &Caller,
    domain: &str,
    vouch: &NewEndpointVouch,
) -> Result<DomainView> {
    let admin = caller.require_permission(Permission::Administer)?;
    check_reason(&vouch.reason)?;
    let unlocked = find_visible_domain(context, caller, domain).await?;
    let write = context.store.begin_write().await?;
    let row = lock_domain(&write, &unlocked).await?;
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    let permission = endpoint_permission::Model {
        vouched_generation: Some(row.generation),
        vouched_by: Some(admin.name.clone()),
        vouched_at: Some(change_set.now().0),
        vouched_reason: Some(vouch.reason.clone()),
        ..endpoint_checks::endpoint_permission(&write, row.id).await?
    };
    write.set_endpoint_permission(permission).await?;
    let data = json!({"origin": row.domain_origin(), "reason": vouch.reason});
    change_set.add_event(
        EventKind::DomainEndpointsVouched,
        &row.name,
        &admin.name,
        data,
    );
    commit_changes(context, write, change_set).await?;
    domain_view(context, caller, row.id).await
}

/// Ends the vouch for the endpoints of a host. They are not checked any more, unless a proof permits it.
pub async fn withdraw_endpoint_vouch(
    context: &AppContext,
    caller: &Caller,
    domain: &str,
) -> Result<()> {
    let admin = caller.require_permission(Permission::Administer)?;
    let unlocked = find_visible_domain(context, caller, domain).await?;
    let write = context.store.begin_write().await?;
    let row = lock_domain(&write, &unlocked).await?;
    if !write.end_endpoint_vouch(&row).await? {
        let detail = format!("{} has no vouch for its endpoints.", row.name);
        return Err(AppError::not_found(detail));
    }
    let mut change_set = ChangeSet::new(context.now(), context.entropy.as_ref());
    let data = json!({"origin": row.domain_origin()});
    change_set.add_event(
        EventKind::DomainEndpointsVouchEnded,
        &row.name,
        &admin.name,
        data,
    );
    commit_changes(context, write, change_set).await
}

/// Stores whether the owner of a domain has turned checks of its agents and endpoints off; the caller appends the
/// event.
pub async fn set_endpoint_checks(
    write: &WriteTransaction,
    row: &domain::Model,
    enabled: bool,
) -> Result<()> {
    let permission = endpoint_checks::endpoint_permission(write, row.id).await?;
    if permission.checks_off != enabled {
        return Ok(());
    }
    let permission = endpoint_permission::Model {
        checks_off: !enabled,
        ..permission
    };
    Ok(write.set_endpoint_permission(permission).await?)
}
