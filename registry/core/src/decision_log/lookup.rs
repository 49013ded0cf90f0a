//! Looks up decisions, for their askers and for auditors.

use a2a_registry_api::RecordedDecision;
use a2a_registry_domain::role::Permission;
use a2a_registry_store::access_decisions::access_decision_by_id;
use uuid::Uuid;

use crate::context::AppContext;
use crate::decision_log::{DECISION_RETENTION, decision_asker, is_issued_to, issued_at};
use crate::error::{AppError, Result};
use crate::visibility::caller::Caller;

/// Loads the record of a decision.
///
/// # Errors
/// `NotFound` if it was made for another asker and the caller reads no events, if it does not exist, or if its record
/// was lost or deleted, which the asker and auditors are told.
pub async fn load_decision(
    context: &AppContext,
    caller: &Caller,
    id: Uuid,
) -> Result<RecordedDecision> {
    let asker = decision_asker(caller);
    let is_auditor = caller.has_permission(Permission::ReadEvents);
    let row = match context.pending_decisions.find(id) {
        Some(row) => Some(row),
        None => access_decision_by_id(&context.store, id).await?,
    };
    let oldest = context.now().plus_micros(-DECISION_RETENTION).0;
    let row = row.filter(|row| (row.asker == asker || is_auditor) && row.at >= oldest);
    let Some(row) = row else {
        let is_own = is_issued_to(context, id, &asker);
        return Err(missing_decision_error(id, oldest, is_own, is_auditor));
    };
    let mut record: RecordedDecision = serde_json::from_str(&row.record)
        .map_err(|error| AppError::internal(format!("decision {id} cannot be read: {error}")))?;
    let sees_policies = is_auditor
        || caller.has_permission(Permission::SeeAll)
        || caller.has_permission(Permission::Decide);
    if !sees_policies {
        record.decision.policies.clear();
    }
    Ok(record)
}

fn missing_decision_error(id: Uuid, oldest: i64, is_own: bool, is_auditor: bool) -> AppError {
    let days = DECISION_RETENTION / a2a_registry_domain::timestamp::DAY;
    let text = match () {
        () if is_own && issued_at(id) < oldest => {
            format!("Decision {id} is older than {days} days, and its record was deleted.")
        }
        () if is_own => format!(
            "Decision {id} was made, but its record was lost: a process ended before it was written, or you have \
             asked for more decisions than are kept. Ask again."
        ),
        () if is_auditor => format!(
            "Decision {id} is not recorded. If it was made in the last {days} days, its record was lost."
        ),
        () => return AppError::no_decision(id),
    };
    AppError::not_found(text)
}
