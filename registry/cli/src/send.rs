//! `send`: sends one message to an agent directly. Only its card comes from the registry.

pub(super) mod agent_call;
mod conversation;
mod files;
mod interruption;
mod saved_conversations;
mod transcript;
mod warnings;

use std::path::{Path, PathBuf};
use std::time::Duration;

use a2a_client::{AgentResponse, CallError, EventStream, Message, Part};
use a2a_registry_domain::identifiers::{SystemEntropy, new_uuid};
use a2a_registry_domain::timestamp::Timestamp;
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::client::Client;
use super::command_error::{CommandError, CommandOutcome, CommandResult};
use super::console::Console;
use super::signals::{HangupAction, ShutdownSignals};
use agent_call::AgentCallArgs;
pub(super) use transcript::Transcript;

/// Interval for drawing the progress.
const SPINNER_INTERVAL: Duration = Duration::from_millis(100);

/// Arguments of `send`.
#[derive(Args, Clone)]
pub struct SendArgs {
    #[command(flatten)]
    agent: AgentCallArgs,
    /// Text to send
    #[arg(value_name = "TEXT", required_unless_present_any = ["file", "data", "interactive"])]
    text: Option<String>,
    /// Attach a file
    #[arg(long, value_name = "PATH")]
    file: Vec<PathBuf>,
    /// Attach a JSON value, or with `@` the JSON in a file
    #[arg(long, value_name = "JSON")]
    data: Vec<String>,
    /// Save the files and data of the answer in this folder, without overwriting anything
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Continue this conversation: the context id from an earlier answer
    #[arg(long, value_name = "ID")]
    context: Option<String>,
    /// Continue this task, such as one that asks for more input
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    /// Talk with the agent line by line, in one conversation
    #[arg(short, long)]
    interactive: bool,
    /// Continue the last conversation with this agent, which is stored on this machine
    #[arg(long, requires = "interactive", conflicts_with_all = ["context", "task"])]
    resume: bool,
}

/// Sends the message, and prints the answer as it arrives.
pub async fn run_send(arguments: &SendArgs, client: &Client, console: &Console) -> CommandResult {
    let mut parts: Vec<Part> = arguments.text.clone().map(Part::Text).into_iter().collect();
    parts.extend(files::read_message_parts(&arguments.file, &arguments.data)?);
    if arguments.interactive {
        return conversation::run_conversation(arguments, client, console, parts).await;
    }
    let agent = agent_call::open_agent_client(&arguments.agent, client, console).await?;
    let message = Message {
        id: new_message_id(),
        parts,
        context_id: arguments.context.clone(),
        task_id: arguments.task.clone(),
    };
    let mut signals = ShutdownSignals::listen(HangupAction::Ends)?;
    let sent = send_and_print_answer(&agent, &message, arguments, &mut signals, console);
    Ok(sent.await?.0)
}

pub(super) fn new_message_id() -> String {
    let now: Timestamp = a2a_crawler::Clock::now(&a2a_crawler::SystemClock).into();
    new_uuid(now, &SystemEntropy::default()).to_string()
}

/// Progress on a terminal until the answer begins.
fn new_spinner() -> ProgressBar {
    let progress = ProgressBar::new_spinner();
    progress.set_draw_target(ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{spinner} waiting for the agent {elapsed}") {
        progress.set_style(style);
    }
    progress.enable_steady_tick(SPINNER_INTERVAL);
    progress
}

/// Sends a message and prints the answer; returns `None` if the user interrupted it.
async fn send_and_print_answer(
    agent: &a2a_client::AgentClient,
    message: &Message,
    arguments: &SendArgs,
    signals: &mut ShutdownSignals,
    console: &Console,
) -> Result<(CommandOutcome, Option<AgentResponse>), CommandError> {
    let progress = new_spinner();
    let opened_stream = tokio::select! {
        opened = agent.stream_message(message) => Some(opened),
        () = signals.wait_for_signal() => None,
    };
    // From here on the answer is printed as it arrives.
    progress.finish_and_clear();
    let Some(opened) = opened_stream else {
        return Ok((interruption::interrupt_before_task()?, None));
    };
    let stream = opened?;
    let out = arguments.out.as_deref();
    let mut transcript = Transcript::new(console, arguments.agent.raw);
    transcript.in_conversation = arguments.interactive;
    print_stream(stream, &arguments.agent, out, signals, transcript).await
}

/// Prints the events of an answer until it ends; returns `None` if the user interrupts it.
pub(super) async fn print_stream(
    mut stream: EventStream,
    arguments: &AgentCallArgs,
    output_folder: Option<&Path>,
    signals: &mut ShutdownSignals,
    mut transcript: Transcript<'_>,
) -> Result<(CommandOutcome, Option<AgentResponse>), CommandError> {
    let console = transcript.console;
    let unfinished = loop {
        let event = tokio::select! {
            event = stream.next_event() => event,
            () = signals.wait_for_signal() => {
                transcript.end_line()?;
                let outcome = interruption::offer_task_cancellation(&stream, arguments, signals).await?;
                return Ok((outcome, None));
            }
        };
        match event {
            None => break None,
            // An answer without a stream is printed as a whole, at its end.
            Some(Ok(_)) if console.json && !stream.is_streamed() => {}
            Some(Ok(event)) if console.json => console.print_json(&event.raw)?,
            Some(Ok(event)) => transcript.print_event(&event, stream.is_streamed())?,
            Some(Err(error @ CallError::Unfinished { .. })) => break Some(error.to_string()),
            Some(Err(error)) => {
                transcript.end_line()?;
                return Err(error_with_task_command(&error, &stream, arguments));
            }
        }
    };
    let Some(mut response) = stream.response() else {
        return Err(CommandError::new(
            "the agent closed the connection without an answer",
        ));
    };
    response.unfinished_reason = unfinished;
    if console.json {
        if !stream.is_streamed() {
            console.print_json(&response.raw)?;
        }
    } else {
        transcript.print_end(&response, arguments)?;
    }
    if let Some(folder) = output_folder {
        files::save_response_files(&response, folder)?;
    }
    Ok((agent_response_outcome(&response), Some(response)))
}

/// Error after the task is known, with the command that shows the task.
fn error_with_task_command(
    error: &CallError,
    stream: &EventStream,
    arguments: &AgentCallArgs,
) -> CommandError {
    match stream.task_id() {
        Some(task) => CommandError::new(format!(
            "{error}; see {}",
            arguments.task_command("get", task)
        )),
        None => CommandError::new(error.to_string()),
    }
}

/// Outcome of an answer: negative if the agent fails, rejects the message or is not done yet.
fn agent_response_outcome(response: &AgentResponse) -> CommandOutcome {
    match response.state.as_deref() {
        _ if response.unfinished_reason.is_some() => CommandOutcome::Negative,
        None | Some("completed" | "input-required") => CommandOutcome::Done,
        Some(_) => CommandOutcome::Negative,
    }
}
