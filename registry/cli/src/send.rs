//! `send`: one message to an agent, spoken to directly. The registry gives its card and nothing more.

pub(super) mod agent;
mod concerns;
mod conversation;
mod files;
mod interruption;
mod kept;
mod transcript;

use std::path::{Path, PathBuf};
use std::time::Duration;

use a2a_client::{AgentAnswer, EventStream, Message, Part, TalkError};
use a2a_registry_domain::ids::{SystemEntropy, new_id};
use a2a_registry_domain::timestamp::Timestamp;
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::client::Client;
use super::console::Console;
use super::failure::{CommandOutcome, CommandResult, Failure};
use super::signals::{EndSignals, Hangup};
use agent::AgentArgs;
pub(super) use transcript::Transcript;

/// How often the progress is drawn.
const TICK: Duration = Duration::from_millis(100);

/// What `send` takes.
#[derive(Args, Clone)]
pub struct SendArgs {
    #[command(flatten)]
    agent: AgentArgs,
    /// What to say
    #[arg(value_name = "TEXT", required_unless_present_any = ["file", "data", "interactive"])]
    text: Option<String>,
    /// Send a file along
    #[arg(long, value_name = "PATH")]
    file: Vec<PathBuf>,
    /// Send a value of JSON along, or with `@` the JSON in a file
    #[arg(long, value_name = "JSON")]
    data: Vec<String>,
    /// Save the files and data of the answer in this folder, and overwrite nothing
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Continue this conversation: the context that an earlier answer named
    #[arg(long, value_name = "ID")]
    context: Option<String>,
    /// Continue this task, such as one that asks for more input
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    /// Talk with the agent line by line, in one conversation
    #[arg(short, long)]
    interactive: bool,
    /// Go on with the last conversation with this agent, which is kept on this machine
    #[arg(long, requires = "interactive", conflicts_with_all = ["context", "task"])]
    resume: bool,
}

/// Sends, and prints the answer as it arrives.
pub async fn run(arguments: &SendArgs, client: &Client, console: &Console) -> CommandResult {
    let mut parts: Vec<Part> = arguments.text.clone().map(Part::Text).into_iter().collect();
    parts.extend(files::parts(&arguments.file, &arguments.data)?);
    if arguments.interactive {
        return conversation::run(arguments, client, console, parts).await;
    }
    let agent = agent::open(&arguments.agent, client, console).await?;
    let message = Message {
        id: new_message_id(),
        parts,
        context_id: arguments.context.clone(),
        task_id: arguments.task.clone(),
    };
    let mut signals = EndSignals::listen(Hangup::Ends)?;
    let sent = answered(&agent, &message, arguments, &mut signals, console);
    Ok(sent.await?.0)
}

pub(super) fn new_message_id() -> String {
    let now: Timestamp = a2a_crawler::Clock::now(&a2a_crawler::SystemClock).into();
    new_id(now, &SystemEntropy::default()).to_string()
}

/// What shows on a terminal, beside the answer, while nothing of it has come.
fn progress() -> ProgressBar {
    let progress = ProgressBar::new_spinner();
    progress.set_draw_target(ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{spinner} waiting for the agent {elapsed}") {
        progress.set_style(style);
    }
    progress.enable_steady_tick(TICK);
    progress
}

/// Sends a message, and prints the answer; without one where the user interrupted it.
async fn answered(
    agent: &a2a_client::Agent,
    message: &Message,
    arguments: &SendArgs,
    signals: &mut EndSignals,
    console: &Console,
) -> Result<(CommandOutcome, Option<AgentAnswer>), Failure> {
    let progress = progress();
    let opened = tokio::select! {
        opened = agent.events(message) => Some(opened),
        () = signals.next() => None,
    };
    // From here on the answer itself is printed as it arrives.
    progress.finish_and_clear();
    let Some(opened) = opened else {
        return Ok((interruption::before_a_task()?, None));
    };
    let stream = opened?;
    let out = arguments.out.as_deref();
    let mut transcript = Transcript::new(console, arguments.agent.raw);
    transcript.in_conversation = arguments.interactive;
    follow(stream, &arguments.agent, out, signals, transcript).await
}

/// Prints the events of an answer until it ends, or the user interrupts it, which leaves no answer.
pub(super) async fn follow(
    mut stream: EventStream,
    arguments: &AgentArgs,
    out: Option<&Path>,
    signals: &mut EndSignals,
    mut transcript: Transcript<'_>,
) -> Result<(CommandOutcome, Option<AgentAnswer>), Failure> {
    let console = transcript.console;
    let unfinished = loop {
        let event = tokio::select! {
            event = stream.next() => event,
            () = signals.next() => {
                transcript.pause()?;
                let outcome = interruption::of_a_task(&stream, arguments, signals).await?;
                return Ok((outcome, None));
            }
        };
        match event {
            None => break None,
            // An answer that was waited for is printed as a whole, at its end.
            Some(Ok(_)) if console.json && !stream.is_streamed() => {}
            Some(Ok(event)) if console.json => console.json(&event.raw)?,
            Some(Ok(event)) => transcript.event(&event, stream.is_streamed())?,
            Some(Err(error @ TalkError::Unfinished { .. })) => break Some(error.to_string()),
            Some(Err(error)) => {
                transcript.pause()?;
                return Err(failure_of_a_task(&error, &stream, arguments));
            }
        }
    };
    let Some(mut answer) = stream.answer() else {
        return Err(Failure::new("the agent's answer ended before it began"));
    };
    answer.unfinished = unfinished;
    if console.json {
        if !stream.is_streamed() {
            console.json(&answer.raw)?;
        }
    } else {
        transcript.end(&answer, arguments)?;
    }
    if let Some(folder) = out {
        files::save(&answer, folder)?;
    }
    Ok((outcome(&answer), Some(answer)))
}

/// A failure after the task is known names the command that shows it.
fn failure_of_a_task(error: &TalkError, stream: &EventStream, arguments: &AgentArgs) -> Failure {
    match stream.task_id() {
        Some(task) => Failure::new(format!(
            "{error}; see {}",
            arguments.task_command("get", task)
        )),
        None => Failure::new(error.to_string()),
    }
}

/// An agent that fails, refuses or is not done yet has answered no.
fn outcome(answer: &AgentAnswer) -> CommandOutcome {
    match answer.state.as_deref() {
        _ if answer.unfinished.is_some() => CommandOutcome::No,
        None | Some("completed" | "input-required") => CommandOutcome::Done,
        Some(_) => CommandOutcome::No,
    }
}
