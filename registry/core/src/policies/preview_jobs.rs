//! Previews as jobs: requested, shown with their progress and cancelled by any process, and made one after another by
//! the process that was asked.

use std::sync::Arc;
use std::time::Duration;

use a2a_registry_api::{NewPolicies, PolicyPreview, PreviewJob};
use a2a_registry_domain::identifiers::new_uuid;
use a2a_registry_domain::preview_state::PreviewState;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::{SECOND, Timestamp};
use a2a_registry_policy::PolicyText;
use a2a_registry_store::entity::policy_preview;
use a2a_registry_store::{agents, events, policies, policy_previews};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::context::AppContext;
use crate::error::{AppError, Result};
use crate::policies::preview::make_preview;
use crate::policies::set_checks::{PREVIEW_LIFETIME, policies_digest, sign_preview_token};
use crate::policies::sets::{check_new_policies_fields, compile_requested_set, to_policy_text};
use crate::visibility::caller::Caller;

/// Maximum number of stored previews; older ones are deleted.
const MAX_STORED_PREVIEWS: u64 = 20;
/// The interval at which progress is stored.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);
/// How long after its last sign of life a preview counts as given up.
const MAX_SILENCE: i64 = 60 * SECOND;
/// How long a page waits for a preview.
const MAX_PAGE_WAIT: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Requests a preview. One of the same policies, compared with the same set, is not made again while it is in progress
/// or nothing has happened since.
pub async fn policy_preview_start(
    context: &AppContext,
    caller: &Caller,
    new: &NewPolicies,
) -> Result<PreviewJob> {
    caller.require_permission(Permission::Administer)?;
    check_new_policies_fields(new)?;
    let texts: Vec<PolicyText> = new.policies.iter().map(to_policy_text).collect();
    // Mistakes are told at once.
    compile_requested_set(context, &texts, context.now()).await?;
    let digest = policies_digest(&texts)?;
    let newest = policies::newest_policy_set_number(&context.store).await?;
    let last_event = events::highest_event_seq(&context.store).await?;
    let compared = format!("{digest} {newest} ");
    let subject = format!("{compared}{last_event}");
    let now = context.now();
    let oldest = now.plus_micros(-PREVIEW_LIFETIME).0;
    let write = context.store.begin_write().await?;
    let same = policy_previews::newest_policy_preview(&write, &compared, oldest).await?;
    if let Some(same) = same.filter(|row| is_usable(row, &subject, now)) {
        return job_view(context, caller, same);
    }
    let times = policy_previews::policy_preview_times(&write, MAX_STORED_PREVIEWS).await?;
    let is_full = times.len() as u64 == MAX_STORED_PREVIEWS;
    let last_kept = times.last().filter(|_| is_full).copied();
    write
        .delete_old_policy_previews(last_kept.map_or(oldest, |last| oldest.max(last + 1)))
        .await?;
    let row = policy_preview::Model {
        id: new_uuid(now, context.entropy.as_ref()),
        subject,
        digest,
        state: PreviewState::Waiting.into(),
        evaluated: 0,
        agents: i64::try_from(agents::indexed_agent_count(&write).await?).unwrap_or(i64::MAX),
        result: None,
        problem: None,
        made_at: now.0,
        seen_at: now.0,
    };
    write.insert_policy_preview(row.clone()).await?;
    write.commit().await?;
    // After the commit: the job takes a preview that is not stored yet for a cancelled one.
    if !context.policy_sets.queue_preview(row.id, texts) {
        let problem = "Too many previews are waiting; try again when one is done.";
        let told = Some(problem.to_owned());
        end_preview(context, row.id, PreviewState::Failed, None, told).await?;
        return Err(AppError::unavailable(problem, 5));
    }
    context.policy_sets.preview_signal.notify_one();
    job_view(context, caller, row)
}

/// Requests a preview for a page, and waits for it.
///
/// # Errors
/// `Unavailable` with the progress where it takes longer: who asks again goes on waiting for the same preview.
pub async fn policy_preview_await(
    context: &AppContext,
    caller: &Caller,
    new: &NewPolicies,
) -> Result<PolicyPreview> {
    let mut job = policy_preview_start(context, caller, new).await?;
    let begun_at = context.monotonic_time();
    loop {
        if let Some(preview) = job.preview {
            return Ok(preview);
        }
        let waited = context.monotonic_time().saturating_sub(begun_at);
        let is_open = job.state.known_value().is_some_and(PreviewState::is_open);
        if !is_open || waited >= MAX_PAGE_WAIT {
            let text = job.problem.unwrap_or_else(|| {
                format!(
                    "The preview is {}: {} of {} agents are evaluated. Request it again to wait for it.",
                    job.state.as_str(),
                    job.evaluated,
                    job.agents
                )
            });
            return Err(AppError::unavailable(text, 1));
        }
        tokio::time::sleep(POLL_INTERVAL).await;
        job = policy_preview_show(context, caller, job.id).await?;
    }
}

/// Shows a preview with its progress or result.
pub async fn policy_preview_show(
    context: &AppContext,
    caller: &Caller,
    id: Uuid,
) -> Result<PreviewJob> {
    caller.require_permission(Permission::Administer)?;
    let row = policy_previews::policy_preview_by_id(&context.store, id).await?;
    let oldest = context.now().plus_micros(-PREVIEW_LIFETIME).0;
    let row = row.filter(|row| row.made_at >= oldest);
    job_view(
        context,
        caller,
        row.ok_or_else(|| AppError::no_preview(id))?,
    )
}

/// Cancels a preview, if it has not ended yet.
pub async fn policy_preview_cancel(context: &AppContext, caller: &Caller, id: Uuid) -> Result<()> {
    caller.require_permission(Permission::Administer)?;
    let row = policy_previews::policy_preview_by_id(&context.store, id).await?;
    row.ok_or_else(|| AppError::no_preview(id))?;
    end_preview(context, id, PreviewState::Cancelled, None, None).await?;
    Ok(())
}

/// Whether a request may be answered with an earlier preview.
fn is_usable(row: &policy_preview::Model, subject: &str, now: Timestamp) -> bool {
    match row.state.known_value() {
        Some(PreviewState::Done) => row.subject == subject,
        Some(state) => state.is_open() && !is_given_up(row, now),
        None => false,
    }
}

/// Whether the process that should make a preview seems to have stopped.
fn is_given_up(row: &policy_preview::Model, now: Timestamp) -> bool {
    row.seen_at < now.plus_micros(-MAX_SILENCE).0
}

fn job_view(
    context: &AppContext,
    caller: &Caller,
    row: policy_preview::Model,
) -> Result<PreviewJob> {
    let is_open = row.state.known_value().is_some_and(PreviewState::is_open);
    let (state, problem) = match is_open && is_given_up(&row, context.now()) {
        true => (
            PreviewState::Failed.into(),
            Some("The process that was making it has stopped. Request it again.".to_owned()),
        ),
        false => ((*row.state).clone(), row.problem),
    };
    let preview = match &row.result {
        Some(result) => {
            let preview: PolicyPreview = serde_json::from_str(result).map_err(|error| {
                AppError::internal(format!("preview {} cannot be read: {error}", row.id))
            })?;
            let made_at = Timestamp(row.made_at);
            let number = preview.number;
            let token = sign_preview_token(context, caller, number, row.digest, made_at)?;
            Some(PolicyPreview { token, ..preview })
        }
        None => None,
    };
    Ok(PreviewJob {
        id: row.id,
        state,
        evaluated: u64::try_from(row.evaluated).unwrap_or(0),
        agents: u64::try_from(row.agents).unwrap_or(0),
        made_at: Timestamp(row.made_at),
        preview,
        problem,
    })
}

async fn end_preview(
    context: &AppContext,
    id: Uuid,
    state: PreviewState,
    result: Option<String>,
    problem: Option<String>,
) -> Result<()> {
    let write = context.store.begin_write().await?;
    write.end_policy_preview(id, state, result, problem).await?;
    Ok(write.commit().await?)
}

/// Stores the progress of a preview, and learns whether it is still wanted.
#[derive(Debug)]
pub(super) struct PreviewReporter {
    id: Uuid,
    agents: i64,
    last_report: Option<Duration>,
}

impl PreviewReporter {
    /// Returns `false` if the preview was cancelled.
    pub(super) async fn record(&mut self, context: &AppContext, evaluated: u64) -> Result<bool> {
        let now = context.monotonic_time();
        let is_due = |last: Duration| now.saturating_sub(last) >= PROGRESS_INTERVAL;
        if !self.last_report.is_none_or(is_due) {
            return Ok(true);
        }
        self.last_report = Some(now);
        let (seen_at, waiting) = (context.now().0, context.policy_sets.queued_previews());
        let evaluated = i64::try_from(evaluated).unwrap_or(i64::MAX);
        let write = context.store.begin_write().await?;
        write.touch_policy_previews(&waiting, seen_at).await?;
        let is_wanted = write
            .record_preview_progress(self.id, evaluated, self.agents, seen_at)
            .await?;
        write.commit().await?;
        Ok(is_wanted)
    }
}

/// Starts to make the previews that this process is asked for.
pub fn start_preview_job(context: &Arc<AppContext>, cancel: CancellationToken) -> JoinHandle<()> {
    let context = Arc::clone(context);
    tokio::spawn(async move {
        while !cancel.is_cancelled() {
            if let Some((id, texts)) = context.policy_sets.take_queued_preview() {
                let made = tokio::select! {
                    made = make_and_store_preview(&context, id, &texts) => made,
                    () = cancel.cancelled() => {
                        let problem = "The process was stopped. Request it again.".to_owned();
                        end_preview(&context, id, PreviewState::Failed, None, Some(problem)).await
                    }
                };
                if let Err(error) = made {
                    tracing::error!(error = error.log_message(), %id, "cannot store a preview");
                }
                continue;
            }
            tokio::select! {
                () = cancel.cancelled() => {}
                () = context.policy_sets.preview_signal.notified() => {}
            }
        }
    })
}

/// Makes the preview that waits longest; returns whether there was one.
pub async fn make_next_preview(context: &AppContext) -> Result<bool> {
    match context.policy_sets.take_queued_preview() {
        Some((id, texts)) => make_and_store_preview(context, id, &texts)
            .await
            .map(|()| true),
        None => Ok(false),
    }
}

async fn make_and_store_preview(
    context: &AppContext,
    id: Uuid,
    texts: &[PolicyText],
) -> Result<()> {
    let made = try_make_preview(context, id, texts).await;
    let (state, result, problem) = match made {
        // It was cancelled.
        Ok(None) => return Ok(()),
        Ok(Some(preview)) => {
            let json = serde_json::to_string(&preview);
            let json = json.map_err(|error| AppError::internal(error.to_string()))?;
            (PreviewState::Done, Some(json), None)
        }
        Err(error) => {
            tracing::warn!(error = error.log_message(), %id, "a preview has failed");
            (PreviewState::Failed, None, Some(error.public))
        }
    };
    end_preview(context, id, state, result, problem).await
}

async fn try_make_preview(
    context: &AppContext,
    id: Uuid,
    texts: &[PolicyText],
) -> Result<Option<PolicyPreview>> {
    let permit = context.policy_sets.preview_permit.acquire().await;
    let _permit = permit
        .map_err(|_| AppError::unavailable("The registry is shutting down. Try again.", 5))?;
    let agents = agents::indexed_agent_count(&context.store).await?;
    let mut reporter = PreviewReporter {
        id,
        agents: i64::try_from(agents).unwrap_or(i64::MAX),
        last_report: None,
    };
    if !reporter.record(context, 0).await? {
        return Ok(None);
    }
    let after = compile_requested_set(context, texts, context.now()).await?;
    make_preview(context, after, reporter).await
}
