//! Endpoint checks as callers see them: the word and the day, and the details for owner, curators and auditors.

use a2a_crawler::endpoint_check::EndpointForm;
use a2a_registry_api::{EndpointDayView, EndpointDetails, EndpointSummary, EndpointView};
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::{DAY, Timestamp};
use a2a_registry_store::endpoint_checks::{endpoint_checks_by_ids, endpoint_days};
use a2a_registry_store::entity::{agent, endpoint_check, endpoint_day};

use crate::agents::views::{caller_owns_agent, require_visible_agent};
use crate::context::AppContext;
use crate::error::Result;
use crate::visibility::caller::Caller;

/// Whether an agent answers; the caller must be allowed to see the agent.
pub async fn agent_endpoint(
    context: &AppContext,
    caller: &Caller,
    agent: &str,
) -> Result<EndpointView> {
    let row = require_visible_agent(context, caller, agent).await?;
    Ok(EndpointView {
        summary: EndpointSummary {
            state: row.endpoint.0.clone(),
            checked_on: row.endpoint_checked_at.map(|at| Timestamp(at).day_text()),
        },
        details: load_endpoint_details(context, caller, &row).await?,
    })
}

/// The details of an agent's checks; `None` for callers who may not see them, and without a checked address.
pub async fn load_endpoint_details(
    context: &AppContext,
    caller: &Caller,
    row: &agent::Model,
) -> Result<Option<EndpointDetails>> {
    let sees_details = caller.has_permission(Permission::SeeAll)
        || caller_owns_agent(context, caller, row).await?;
    let Some(id) = row.endpoint_check_id.filter(|_| sees_details) else {
        return Ok(None);
    };
    let Some(check) = endpoint_checks_by_ids(&context.store, &[id]).await?.pop() else {
        return Ok(None);
    };
    let days = endpoint_days(&context.store, id).await?;
    Ok(Some(endpoint_details(check, &days)))
}

fn endpoint_details(check: endpoint_check::Model, days: &[endpoint_day::Model]) -> EndpointDetails {
    let form = EndpointForm::from_name(&check.form);
    EndpointDetails {
        url: check.url,
        binding: form.map_or(check.form, |form| form.binding().to_owned()),
        reason: check.reason,
        auth_scheme: check.auth_scheme,
        status: check.status.and_then(|status| u16::try_from(status).ok()),
        elapsed_ms: check.elapsed_ms.map(unsigned_milliseconds),
        checked_at: check.checked_at.map(Timestamp),
        answered_at: check.answered_at.map(Timestamp),
        next_due: Timestamp(check.due_at),
        days: days.iter().map(day_view).collect(),
    }
}

fn day_view(row: &endpoint_day::Model) -> EndpointDayView {
    EndpointDayView {
        day: Timestamp(i64::from(row.day).saturating_mul(DAY)).day_text(),
        state: row.state.0.clone(),
        elapsed_ms: unsigned_milliseconds(row.elapsed_ms),
    }
}

fn unsigned_milliseconds(stored: i32) -> u32 {
    u32::try_from(stored).unwrap_or(0)
}
