//! `task`: tasks of an agent, which is called directly.

mod push;

use a2a_client::{AgentResponse, TaskQuery};
use a2a_registry_domain::timestamp::Timestamp;
use clap::{Args, Subcommand};
use serde_json::Value;

use super::client::Client;
use super::command_error::{CommandError, CommandOutcome, CommandResult};
use super::console::Console;
use super::list_format::ListFormat;
use super::send::agent_call::{self, AgentCallArgs};
use super::send::{Transcript, print_stream};
use super::signals::{HangupAction, ShutdownSignals};
use super::{program_name, terminal};
use push::PushCommand;

/// Subcommands of `task`.
#[derive(Subcommand, Clone)]
pub enum TaskCommand {
    /// Show a task: its text, and its state on standard error
    Get(TaskArgs),
    /// List the tasks that the agent shows to this caller
    List(Box<TaskListArgs>),
    /// Cancel a task
    Cancel(TaskArgs),
    /// Follow a task until it is done or waits for input
    Subscribe(TaskArgs),
    /// Manage push notifications about a task
    #[command(subcommand)]
    Push(PushCommand),
}

/// Task of an agent.
#[derive(Args, Clone)]
pub struct TaskArgs {
    #[command(flatten)]
    agent: AgentCallArgs,
    /// The task's id, as the agent named it
    #[arg(value_name = "TASK")]
    task: String,
}

/// Filter for tasks.
#[derive(Args, Clone)]
pub struct TaskListArgs {
    #[command(flatten)]
    agent: AgentCallArgs,
    /// Only tasks of this conversation
    #[arg(long, value_name = "ID")]
    context: Option<String>,
    /// Only tasks in this state
    #[arg(long, value_name = "STATE", value_parser = [
        "submitted", "working", "completed", "failed", "canceled", "input-required", "rejected", "auth-required",
    ])]
    state: Option<String>,
    /// Tasks on the page, at most 100 [default: the agent's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    limit: Option<u32>,
    /// Token of the next page, as the previous page printed it
    #[arg(long, value_name = "TOKEN")]
    page_token: Option<String>,
}

pub async fn run_task_command(
    command: &TaskCommand,
    client: &Client,
    console: &Console,
) -> CommandResult {
    match command {
        TaskCommand::Get(arguments) => {
            let agent = agent_call::open_agent_client(&arguments.agent, client, console).await?;
            let response = agent.get_task(&arguments.task).await?;
            print_task(&response, arguments, console)
        }
        TaskCommand::List(arguments) => list_tasks(arguments, client, console).await,
        TaskCommand::Push(command) => push::run_task_push_command(command, client, console).await,
        TaskCommand::Cancel(arguments) => {
            let agent = agent_call::open_agent_client(&arguments.agent, client, console).await?;
            let response = agent.cancel_task(&arguments.task).await?;
            print_task(&response, arguments, console)?;
            let is_canceled = response.state.as_deref() == Some("canceled");
            Ok(CommandOutcome::done_if(is_canceled))
        }
        TaskCommand::Subscribe(arguments) => {
            let agent = agent_call::open_agent_client(&arguments.agent, client, console).await?;
            let mut signals = ShutdownSignals::listen(HangupAction::Ends)?;
            let opened_stream = tokio::select! {
                opened = agent.subscribe_to_task(&arguments.task) => opened,
                () = signals.wait_for_signal() => return Err(CommandError::Interrupted),
            };
            let transcript = Transcript::new(console, arguments.agent.raw);
            let followed = print_stream(
                opened_stream?,
                &arguments.agent,
                None,
                &mut signals,
                transcript,
            );
            Ok(followed.await?.0)
        }
    }
}

/// Prints a task: its text on standard output, its state and conversation on standard error.
fn print_task(response: &AgentResponse, arguments: &TaskArgs, console: &Console) -> CommandResult {
    console.print_result(&response.raw, || {
        let state = response.state.as_deref().unwrap_or("unknown");
        let context = response.context_id.as_deref();
        let context = context.map_or_else(String::new, |context| format!(", in context {context}"));
        terminal::eprint_note(&format!("task {} is {state}{context}", arguments.task));
        Transcript::new(console, arguments.agent.raw).print_end(response, &arguments.agent)
    })
}

async fn list_tasks(arguments: &TaskListArgs, client: &Client, console: &Console) -> CommandResult {
    let agent = agent_call::open_agent_client(&arguments.agent, client, console).await?;
    let query = TaskQuery {
        context_id: arguments.context.clone(),
        state: arguments.state.clone(),
        page_size: arguments.limit,
        page_token: arguments.page_token.clone(),
    };
    let page = agent.list_tasks(&query).await?;
    let list_format = ListFormat {
        command: &task_list_command(arguments),
        limit: arguments.limit,
        header: ["ID", "STATE", "CHANGED", "CONTEXT"],
        empty_message: "the agent lists no tasks",
    };
    let text = |value: Option<&str>| value.unwrap_or_default().to_owned();
    let next = page.next_page_token.as_deref();
    list_format.print_page(console, &page.raw, &page.tasks, next, |task| {
        let changed = task.raw.pointer("/status/timestamp");
        let changed = changed.and_then(Value::as_str);
        [
            text(task.task_id.as_deref()),
            text(task.state.as_deref()),
            changed.map_or_else(String::new, format_agent_time),
            text(task.context_id.as_deref()),
        ]
    })
}

/// Time of an agent in readable form; unchanged if it is not RFC 3339.
fn format_agent_time(at: &str) -> String {
    at.parse::<Timestamp>()
        .map_or_else(|_| at.to_owned(), Timestamp::to_readable)
}

/// Command line that lists these tasks, without the program name and the page.
fn task_list_command(arguments: &TaskListArgs) -> String {
    let agent = program_name::shell_quote(&arguments.agent.agent);
    let mut words = vec!["task list".to_owned(), agent];
    for (flag, value) in [
        ("--state", &arguments.state),
        ("--context", &arguments.context),
    ] {
        let value = value.as_deref().map(program_name::shell_quote);
        words.extend(value.map(|value| format!("{flag} {value}")));
    }
    words.extend(arguments.agent.interface_flags());
    words.join(" ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use clap::Parser as _;

    use super::*;
    use crate::{Cli, Command};

    #[test]
    fn the_next_page_is_one_of_the_same_list() {
        let typed =
            "task list a.example --state working --context c --binding JSONRPC --tenant t --direct";
        let words = ["a2a-registry"].into_iter().chain(typed.split(' '));
        let Command::Task(TaskCommand::List(arguments)) =
            Cli::try_parse_from(words).unwrap().command
        else {
            panic!("another command was read");
        };
        assert_eq!(task_list_command(&arguments), typed);
    }
}
