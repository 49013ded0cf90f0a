//! `task push`: where an agent reports the changes of a task.

use a2a_client::PushConfig;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::client::Client;
use super::console::Console;
use super::failure::{CommandOutcome, CommandResult, Failure};
use super::send::agent;
use super::task::OneTask;
use super::{table, terminal};

/// What `task push` takes.
#[derive(Subcommand, Clone)]
pub enum PushCommand {
    /// Let the agent report the changes of a task to an address
    Set(Box<PushSetArgs>),
    /// List where the agent reports the changes of a task
    List(Box<OneTask>),
    /// Show one of the places where the agent reports the changes of a task
    Get(Box<OnePush>),
    /// Let the agent report to one of them no more
    Delete(Box<OnePush>),
}

/// What `task push set` takes.
#[derive(Args, Clone)]
// `--url` is the address that the agent calls.
#[command(mut_arg("interface_url", |arg| arg.long("agent-url")))]
pub struct PushSetArgs {
    #[command(flatten)]
    task: OneTask,
    /// The address that the agent calls
    #[arg(long, value_name = "URL")]
    url: String,
    /// A token that the agent sends along, so that the receiver knows its calls
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

/// A configuration of a task.
#[derive(Args, Clone)]
pub struct OnePush {
    #[command(flatten)]
    task: OneTask,
    /// Identifier of the configuration, as the list shows it
    #[arg(value_name = "ID")]
    id: String,
}

pub async fn run(command: &PushCommand, client: &Client, console: &Console) -> CommandResult {
    let of = match command {
        PushCommand::Set(arguments) => &arguments.task,
        PushCommand::List(task) => task,
        PushCommand::Get(one) | PushCommand::Delete(one) => &one.task,
    };
    let agent = agent::open(&of.agent, client, console).await?;
    match command {
        PushCommand::Set(arguments) => {
            let config = PushConfig {
                id: arguments.id.clone(),
                url: arguments.url.clone(),
                token: arguments.push_token.clone(),
            };
            let kept = agent.set_push(&of.task, &config).await?;
            console.show(&document(&kept), || print(&[&kept], console))
        }
        PushCommand::Get(one) => {
            let config = agent.push_config(&of.task, &one.id).await?;
            console.show(&document(&config), || print(&[&config], console))
        }
        PushCommand::List(_) => {
            let configs = agent.push_configs(&of.task).await?;
            let documents: Vec<Value> = configs.iter().map(document).collect();
            console.show(&json!({ "configs": documents }), || {
                if configs.is_empty() {
                    terminal::note("the agent reports the changes of this task to nobody");
                    return Ok(());
                }
                print(&configs.iter().collect::<Vec<_>>(), console)
            })?;
            Ok(CommandOutcome::of_list(&configs))
        }
        PushCommand::Delete(one) => {
            agent.delete_push(&of.task, &one.id).await?;
            console.show(&json!({ "deleted": one.id }), || {
                console.line(&format!("{} is deleted", terminal::line(&one.id)))
            })
        }
    }
}

/// Prints configurations. Tokens are told only with `--json`: a terminal may be looked at.
fn print(configs: &[&PushConfig], console: &Console) -> Result<(), Failure> {
    let rows = configs.iter().map(|config| {
        let token = if config.token.is_some() { "yes" } else { "no" };
        vec![
            config.id.clone().unwrap_or_default(),
            config.url.clone(),
            token.to_owned(),
        ]
    });
    table::print(console, &["ID", "URL", "TOKEN"], &rows.collect::<Vec<_>>())
}

fn document(config: &PushConfig) -> Value {
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
        let agent = arguments.task.agent.choice();
        assert_eq!(agent.url.as_deref(), Some("https://a/a2a"));
    }
}
