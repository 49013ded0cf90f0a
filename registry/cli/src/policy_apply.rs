//! `policy apply` and `rollback`: policies are compared with the set in force, and the user is asked for confirmation
//! if some are removed or every agent is hidden.

use std::path::PathBuf;
use std::time::Duration;

use a2a_registry_api::{
    NewPolicies, Policies, PoliciesAccepted, PolicyChange, PolicyPreview, PolicyReplica,
};
use clap::Args;
use serde_json::json;
use tokio::time::Instant;

use super::client::Client;
use super::client_error::ClientError;
use super::command_error::{CommandError, CommandOutcome, CommandResult};
use super::confirm::confirm_consequence;
use super::console::Console;
use super::policy_files::{compare_policies, custom_policies, policy_texts};
use super::policy_preview::make_policy_preview;
use super::terminal;

/// Time between two checks whether a new set is in force.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Time between two lines about the progress.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

/// Arguments of `policy apply`.
#[derive(Args, Debug, Clone)]
pub struct ApplyPoliciesArgs {
    /// Files named *.cedar, or folders of them
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Reason, for the log
    #[arg(long, value_name = "TEXT", required_unless_present = "dry_run")]
    pub reason: Option<String>,
    /// Only show what would change; the exit code is 1 if anything would
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub options: PolicyApplyOptions,
}

/// Options of commands that put policies in force.
#[derive(Args, Debug, Clone, Default)]
pub struct PolicyApplyOptions {
    /// Wait until the new set is in force in every running process of the registry; the exit code is 1 if that takes
    /// longer than SECONDS
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, default_missing_value = "600",
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    wait: Option<u64>,
    /// Apply without confirmation, even if policies are removed or every agent is hidden
    #[arg(long, short)]
    yes: bool,
    /// Apply policies of which none permits `discover`, so that no one finds any agent
    #[arg(long)]
    allow_no_permit: bool,
}

/// Puts policies in force. The outcome is negative if `dry_run` shows changes.
pub async fn apply_policies(
    new: NewPolicies,
    options: &PolicyApplyOptions,
    dry_run: bool,
    client: &Client,
    console: &Console,
) -> CommandResult {
    let current = client.fetch_policy_set(None).await?.value;
    let number_before = current.number;
    let before = policy_texts(custom_policies(current));
    let changes = compare_policies(&before, &policy_texts(new.policies.iter().cloned()));
    if changes.is_empty() || dry_run {
        let document = json!({"number": number_before, "changes": changes});
        console.print_result(&document, || {
            print_policy_changes(&changes, console)?;
            match changes.is_empty() {
                true => {
                    console.print_line(&format!("set {number_before} already has these policies"))
                }
                false => Ok(()),
            }
        })?;
        return Ok(CommandOutcome::done_if(changes.is_empty()));
    }
    let new = NewPolicies {
        allow_no_permit: options.allow_no_permit,
        ..new
    };
    let removed_ids: Vec<&str> = changes
        .iter()
        .filter(|change| change.what == "remove")
        .map(|change| change.id.as_str())
        .collect();
    let accepted = submit_policy_set(new, number_before, &removed_ids, options.yes, client).await?;
    for warning in &accepted.warnings {
        terminal::eprint_note(&format!("warning: {warning}"));
    }
    let in_force = match options.wait {
        Some(seconds) => await_policies_in_force(client, accepted.number, seconds).await?,
        None => accepted.in_force,
    };
    let number = accepted.number;
    let document = json!({"number": number, "in_force": in_force, "changes": changes});
    console.print_result(&document, || {
        print_policy_changes(&changes, console)?;
        console.print_line(&match in_force == number {
            true => format!("set {number} is in force"),
            false => format!(
                "set {number} is accepted; set {in_force} remains in force until all agents are evaluated"
            ),
        })
    })
}

fn print_policy_changes(changes: &[PolicyChange], console: &Console) -> Result<(), CommandError> {
    for change in changes {
        console.print_line(&format!("{} {}", change.what, change.id))?;
    }
    Ok(())
}

/// Creates the set; if policies are removed or every agent is hidden, only after confirmation.
async fn submit_policy_set(
    mut new: NewPolicies,
    base_number: u64,
    removed_ids: &[&str],
    yes: bool,
    client: &Client,
) -> Result<PoliciesAccepted, CommandError> {
    if removed_ids.is_empty() {
        match client.put_policy_set(&new, base_number).await {
            Err(error) if error.is_problem_of_kind("preview-needed") => {}
            Err(error) => return Err(policy_submit_error(error, base_number)),
            Ok(accepted) => return Ok(accepted.value),
        }
    }
    let preview = make_policy_preview(&new, client).await?;
    if preview.number != base_number {
        return Err(CommandError::new(format!(
            "set {} was created in the meantime, so nothing was changed; compare with it and apply again",
            preview.number
        )));
    }
    if preview.permits_nothing && !new.allow_no_permit {
        return Err(no_permit_error(removed_ids));
    }
    print_access_losses(&preview);
    let rollback_hint = format!("`policy rollback {base_number}` restores the present set");
    confirm_consequence(
        &describe_policy_consequences(&preview, removed_ids),
        &rollback_hint,
        yes,
    )?;
    new.preview = Some(preview.token);
    let accepted = client.put_policy_set(&new, base_number).await;
    accepted
        .map(|accepted| accepted.value)
        .map_err(|error| policy_submit_error(error, base_number))
}

/// Consequences to confirm, in words.
fn describe_policy_consequences(preview: &PolicyPreview, removed_ids: &[&str]) -> String {
    let mut text = match removed_ids.is_empty() {
        true => "applying these policies".to_owned(),
        false => format!(
            "applying these policies removes {} of set {}",
            removed_ids.join(", "),
            preview.number
        ),
    };
    if preview.hides_every_agent {
        let joined = if removed_ids.is_empty() { "" } else { " and" };
        text.push_str(&format!(
            "{joined} hides every agent from everyone but owners, curators, auditors and admins"
        ));
    }
    text
}

/// Prints on standard error who loses access to what, and the warnings about the set.
fn print_access_losses(preview: &PolicyPreview) {
    for change in preview.changes.iter().filter(|change| change.lost > 0) {
        terminal::eprint_note(&format!(
            "{} loses {} of {} agents ({})",
            change.caller, change.lost, preview.agents, change.action
        ));
    }
    for warning in &preview.warnings {
        terminal::eprint_note(&format!("warning: {warning}"));
    }
}

/// Error for a set that permits nothing.
fn no_permit_error(removed_ids: &[&str]) -> CommandError {
    let gone = match removed_ids.is_empty() {
        true => String::new(),
        false => format!(" (it lacks {} of the present set)", removed_ids.join(", ")),
    };
    CommandError::new(format!(
        "no policy of this set permits `discover`{gone}, so no one would find any agent; nothing was changed. \
         `policy template everybody > everybody.cedar` writes the default permit, --allow-no-permit \
         applies the set as it is"
    ))
}

/// Error for a set that was sent.
fn policy_submit_error(error: ClientError, base_number: u64) -> CommandError {
    match error {
        error if error.is_problem_of_kind("no-permit") => no_permit_error(&[]),
        ClientError::OutcomeUnknown(_) => CommandError::new(format!(
            "{error}; `policy history` shows whether set {} was created",
            base_number + 1
        )),
        error => error.into(),
    }
}

/// The state of the processes that do not have a set in force yet, in words.
fn describe_waiting_replicas(shown: &Policies, waiting: &[&PolicyReplica]) -> String {
    let oldest = waiting.iter().map(|replica| replica.in_force).min();
    let oldest = oldest.unwrap_or(shown.in_force);
    let mut text = match shown.replicas.len() {
        0 | 1 => format!("set {oldest} is still in force"),
        all => format!(
            "set {oldest} is still in force in {} of {all} processes",
            waiting.len()
        ),
    };
    let slowest = waiting.iter().min_by_key(|replica| replica.evaluated);
    if let Some(replica) = slowest.filter(|replica| replica.agents > replica.evaluated) {
        text.push_str(&format!(
            " ({} of {} agents evaluated)",
            replica.evaluated, replica.agents
        ));
    }
    text
}

/// Waits until this set, or a later one, is in force in every running process. The set exists: every error here says
/// so.
pub async fn await_policies_in_force(
    client: &Client,
    number: u64,
    seconds: u64,
) -> Result<u64, CommandError> {
    let started_at = Instant::now();
    let (mut last_response, mut last_note) = (started_at, started_at);
    loop {
        let last_error = match client.fetch_policy_set(None).await {
            Ok(shown) => {
                let replicas = shown.value.replicas.iter();
                let waiting: Vec<_> = replicas
                    .filter(|replica| replica.in_force < number)
                    .collect();
                if waiting.is_empty() && shown.value.in_force >= number {
                    return Ok(shown.value.in_force);
                }
                last_response = Instant::now();
                let state = describe_waiting_replicas(&shown.value, &waiting);
                if last_note.elapsed() >= PROGRESS_INTERVAL {
                    last_note = last_response;
                    terminal::eprint_note(&state);
                }
                CommandError::Negative(format!(
                    "set {number} is accepted, but after {seconds} s {state}; check with `policy show`"
                ))
            }
            Err(error) => {
                let failure = CommandError::new(format!(
                    "set {number} is accepted, but its state is unknown: {error}; check with `policy show`"
                ));
                let passes = error.status().is_none_or(|status| status >= 500);
                if !passes || last_response.elapsed() >= client.read_timeout() {
                    return Err(failure);
                }
                failure
            }
        };
        if started_at.elapsed() >= Duration::from_secs(seconds) {
            return Err(last_error);
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
