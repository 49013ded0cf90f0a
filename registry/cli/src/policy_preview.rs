//! Previews of policy sets: requested, followed until they are done, and cancelled with Ctrl-C.

use std::time::Duration;

use a2a_registry_api::{NewPolicies, PolicyPreview, PreviewJob};
use a2a_registry_domain::preview_state::PreviewState;
use tokio::time::Instant;

use super::client::Client;
use super::client_error::ClientError;
use super::command_error::CommandError;
use super::terminal;

const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Time between two lines about the progress.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

/// Makes a preview of these policies and waits for it.
pub async fn make_policy_preview(
    new: &NewPolicies,
    client: &Client,
) -> Result<PolicyPreview, CommandError> {
    let job = client.start_policy_preview(new).await?.value;
    let id = job.id.to_string();
    tokio::select! {
        preview = await_policy_preview(job, client) => preview,
        _ = tokio::signal::ctrl_c() => {
            client.cancel_policy_preview(&id).await?;
            Err(CommandError::Interrupted)
        }
    }
}

async fn await_policy_preview(
    mut job: PreviewJob,
    client: &Client,
) -> Result<PolicyPreview, CommandError> {
    let id = job.id.to_string();
    let (mut last_response, mut last_note) = (Instant::now(), Instant::now());
    loop {
        match (job.state.known_value(), job.preview) {
            (Some(PreviewState::Done), Some(preview)) => return Ok(preview),
            (Some(PreviewState::Waiting | PreviewState::Running), _) => {}
            _ => {
                let state = job.state.as_str();
                let problem = job
                    .problem
                    .map_or_else(String::new, |text| format!(": {text}"));
                return Err(CommandError::new(format!(
                    "the preview is {state}{problem}"
                )));
            }
        }
        if last_note.elapsed() >= PROGRESS_INTERVAL {
            last_note = Instant::now();
            terminal::eprint_note(&format!(
                "{} of {} agents evaluated",
                job.evaluated, job.agents
            ));
        }
        tokio::time::sleep(POLL_INTERVAL).await;
        job = loop {
            match client.policy_preview_job(&id).await {
                Ok(job) => {
                    last_response = Instant::now();
                    break job.value;
                }
                Err(error) if is_lasting(&error, last_response, client) => return Err(error.into()),
                Err(_) => tokio::time::sleep(POLL_INTERVAL).await,
            }
        };
    }
}

/// Whether waiting longer does not help: the preview is gone, or nothing has responded for too long.
fn is_lasting(error: &ClientError, last_response: Instant, client: &Client) -> bool {
    let passes = error.status().is_none_or(|status| status >= 500);
    !passes || last_response.elapsed() >= client.read_timeout()
}
