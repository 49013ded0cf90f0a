//! `agent`: acts on agents, each with a reason.

use clap::{Args, Subcommand};

use super::client::Client;
use super::console::Console;
use super::failure::{Failure, Outcome};
use crate::api::Act;
use crate::domain::lifecycle::Hold;

/// What `agent` takes.
#[derive(Subcommand, Debug, Clone)]
pub enum AgentCommand {
    /// Withhold an agent until it is resumed
    Suspend(ActArgs),
    /// Lift a hold
    Resume {
        #[command(flatten)]
        act: ActArgs,
        /// Which hold: `operator`, `critical_change` or `key_changed` [default: operator]
        #[arg(long, value_name = "HOLD", value_parser = hold)]
        hold: Option<Hold>,
    },
    /// Mark an agent as on its way out; it is still served
    Deprecate(ActArgs),
    /// End an agent for good
    Retire(ActArgs),
}

/// Which agent, and why.
#[derive(Args, Debug, Clone)]
pub struct ActArgs {
    /// Its id, URN, host or card URL
    #[arg(value_name = "AGENT")]
    agent: String,
    /// Why; kept with the act
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

fn hold(text: &str) -> Result<Hold, String> {
    text.parse()
}

/// Does it.
///
/// # Errors
/// Where the registry is away or refuses, or the agent is unknown or in doubt.
pub async fn run(
    command: &AgentCommand,
    client: &Client,
    console: &Console,
) -> Result<Outcome, Failure> {
    let (verb, act, hold) = match command {
        AgentCommand::Suspend(act) => ("suspend", act, None),
        AgentCommand::Resume { act, hold } => ("resume", act, *hold),
        AgentCommand::Deprecate(act) => ("deprecate", act, None),
        AgentCommand::Retire(act) => ("retire", act, None),
    };
    let id = client.agent_id(&act.agent).await?;
    let reply = client
        .act(
            id,
            verb,
            &Act {
                reason: act.reason.clone(),
                hold,
            },
        )
        .await?;
    if console.json {
        console.raw_json(&reply.raw)?;
        return Ok(Outcome::Done);
    }
    let summary = &reply.value.hit.summary;
    let holds: Vec<_> = reply
        .value
        .holds
        .iter()
        .map(|hold| hold.hold.as_str())
        .collect();
    let held = if holds.is_empty() {
        String::new()
    } else {
        format!(" (held by {})", holds.join(", "))
    };
    console.line(&format!(
        "{} ({id}) is {}{held}",
        summary.name, summary.lifecycle
    ))?;
    Ok(Outcome::Done)
}
