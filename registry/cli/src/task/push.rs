//! `task push`: push notifications of an agent about a task.

use a2a_client::PushConfig;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::TaskArgs;
use crate::client::Client;
use crate::command_error::{CommandError, CommandOutcome, CommandResult};
use crate::console::Console;
use crate::send::agent_call;
use crate::{table, terminal};

/// Subcommands of `task push`.
#[derive(Subcommand, Clone)]
pub enum PushCommand {
    /// Let the agent report the changes of a task to a URL
    Set(Box<SetPushArgs>),
    /// List the push configurations of a task
    List(Box<TaskArgs>),
    /// Show a push configuration of a task
    Get(Box<PushConfigArgs>),
    /// Delete a push configuration of a task
    Delete(Box<PushConfigArgs>),
}

/// Arguments of `task push set`.
#[derive(Args, Clone)]
// `--url` is the URL that the agent calls.
#[command(mut_arg("interface_url", |arg| arg.long("agent-url")))]
pub struct SetPushArgs {
    #[command(flatten)]
    task: TaskArgs,
    /// URL that the agent calls
    #[arg(long, value_name = "URL")]
    url: String,
    /// Token that the agent sends, so that the receiver recognizes its calls
    #[arg(
        long,
        value_name = "TOKEN",
        env = "A2A_PUSH_TOKEN",
        hide_env_values = true
    )]
    push_token: Option<String>,
    /// Identifier of the configuration within the task [default: the agent's]
    #[arg(long, value_name = "ID")]
    id: Option<String>,
}

/// Push configuration of a task.
#[derive(Args, Clone)]
pub struct PushConfigArgs {
    #[command(flatten)]
    task: TaskArgs,
    /// Identifier of the configuration, as the list shows it
    #[arg(value_name = "ID")]
    id: String,
}

pub async fn run_task_push_command(
    command: &PushCommand,
    client: &Client,
    console: &Console,
) -> CommandResult {
    let task_args = match command {
        PushCommand::Set(arguments) => &arguments.task,
        PushCommand::List(task) => task,
        PushCommand::Get(one) | PushCommand::Delete(one) => &one.task,
    };
    let agent = agent_call::open_agent_client(&task_args.agent, client, console).await?;
    match command {
        PushCommand::Set(arguments) => {
            let config = PushConfig {
                id: arguments.id.clone(),
                url: arguments.url.clone(),
                token: arguments.push_token.clone(),
            };
            let stored_config = agent.set_push_config(&task_args.task, &config).await?;
            console.print_result(&push_config_json(&stored_config), || {
                print_push_configs(&[&stored_config], console)
            })
        }
        PushCommand::Get(one) => {
            let config = agent.get_push_config(&task_args.task, &one.id).await?;
            console.print_result(&push_config_json(&config), || {
                print_push_configs(&[&config], console)
            })
        }
        PushCommand::List(_) => {
            let configs = agent.list_push_configs(&task_args.task).await?;
            let documents: Vec<Value> = configs.iter().map(push_config_json).collect();
            console.print_result(&json!({ "configs": documents }), || {
                if configs.is_empty() {
                    terminal::eprint_note("this task has no push configurations");
                    return Ok(());
                }
                print_push_configs(&configs.iter().collect::<Vec<_>>(), console)
            })?;
            Ok(CommandOutcome::done_unless_empty(&configs))
        }
        PushCommand::Delete(one) => {
            agent.delete_push_config(&task_args.task, &one.id).await?;
            console.print_result(&json!({ "deleted": one.id }), || {
                console.print_line(&format!("{} is deleted", terminal::escape_line(&one.id)))
            })
        }
    }
}

/// Prints configurations. Tokens are shown only with `--json`, because others may see a terminal.
fn print_push_configs(configs: &[&PushConfig], console: &Console) -> Result<(), CommandError> {
    let rows = configs.iter().map(|config| {
        let token = if config.token.is_some() { "yes" } else { "no" };
        vec![
            config.id.clone().unwrap_or_default(),
            config.url.clone(),
            token.to_owned(),
        ]
    });
    table::print_table(console, &["ID", "URL", "TOKEN"], &rows.collect::<Vec<_>>())
}

fn push_config_json(config: &PushConfig) -> Value {
    json!({"id": config.id, "url": config.url, "token": config.token})
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use clap::Parser as _;

    use super::*;
    use crate::task::TaskCommand;
    use crate::{Cli, Command};

    #[test]
    fn the_address_of_the_agent_is_told_from_that_of_the_receiver() {
        let typed = "task push set a.example t --url https://h/hook --agent-url https://a/a2a";
        let words = ["a2a-registry"].into_iter().chain(typed.split(' '));
        let Command::Task(TaskCommand::Push(PushCommand::Set(arguments))) =
            Cli::try_parse_from(words).unwrap().command
        else {
            panic!("another command was read");
        };
        assert_eq!(arguments.url, "https://h/hook");
        let agent = arguments.task.agent.interface_filter();
        assert_eq!(agent.url.as_deref(), Some("https://a/a2a"));
    }
}
