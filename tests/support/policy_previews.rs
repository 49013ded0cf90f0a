//! Previews of policy sets that a test waits for.

use a2a_registry_api::{NewPolicies, PolicyPreview};
use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::AppError;
use a2a_registry_core::policies::preview_jobs::{
    make_next_preview, policy_preview_show, policy_preview_start,
};
use a2a_registry_core::visibility::caller::Caller;

/// Requests a preview of these policies and makes it at once.
pub async fn policies_preview(
    app: &AppContext,
    caller: &Caller,
    new: &NewPolicies,
) -> Result<PolicyPreview, AppError> {
    let job = policy_preview_start(app, caller, new).await?;
    while make_next_preview(app).await? {}
    let job = policy_preview_show(app, caller, job.id).await?;
    Ok(job.preview.expect("a preview that was made"))
}
