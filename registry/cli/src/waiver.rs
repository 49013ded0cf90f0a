//! `waiver`: temporary exemptions of an agent's content from a policy, each with a reason.

use a2a_registry_api::limits::MAX_WAIVER_DAYS;
use a2a_registry_api::{NewWaiver, Waiver};
use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::json;

use super::client::Client;
use super::client_error::ClientError;
use super::command_error::CommandResult;
use super::console::Console;
use super::list_format::{ListFormat, PageArgs};
use super::terminal;

/// Subcommands of `waiver`.
#[derive(Subcommand, Debug, Clone)]
pub enum WaiverCommand {
    /// List waivers, newest first
    List(ListWaiversArgs),
    /// Exempt an agent's content from a policy
    Grant(GrantWaiverArgs),
    /// End a waiver, so that the policy applies again
    End {
        /// Id of the waiver
        waiver: String,
    },
}

/// Filters of `waiver list`, also as query parameters of the call.
#[derive(Args, Debug, Clone, Serialize)]
pub struct ListWaiversArgs {
    /// Only waivers for this agent
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Only waivers of this policy
    #[arg(long, value_name = "POLICY")]
    policy: Option<String>,
    /// Include ended waivers
    #[arg(long)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    ended: bool,
    #[command(flatten)]
    #[serde(flatten)]
    page: PageArgs,
}

/// Fetches every page of the waivers in force.
pub async fn fetch_all_waivers(client: &Client) -> Result<Vec<Waiver>, ClientError> {
    let mut waivers = Vec::new();
    let mut page_token = None;
    loop {
        let filter = ListWaiversArgs {
            agent: None,
            policy: None,
            ended: false,
            page: PageArgs::with_max_limit(page_token),
        };
        let list = client.waivers(&filter).await?.value;
        waivers.extend(list.waivers);
        page_token = list.next_page_token;
        if page_token.is_none() {
            return Ok(waivers);
        }
    }
}

/// Arguments of `waiver grant`.
#[derive(Args, Debug, Clone)]
pub struct GrantWaiverArgs {
    /// Identifier of the policy
    policy: String,
    /// Id or URN of the agent
    agent: String,
    /// Digest of the card, as `show` prints it, so that the waiver covers nothing else
    #[arg(long, value_name = "DIGEST")]
    digest: String,
    /// Days until it expires, at most 180
    #[arg(long = "expires", value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_WAIVER_DAYS)))]
    expires_in_days: u32,
    /// Reason, for the log
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

pub async fn run_waiver(
    command: &WaiverCommand,
    client: &Client,
    console: &Console,
) -> CommandResult {
    match command {
        WaiverCommand::List(arguments) => list_waivers(arguments, client, console).await,
        WaiverCommand::Grant(arguments) => grant_waiver(arguments, client, console).await,
        WaiverCommand::End { waiver } => {
            client.end_waiver(waiver).await?;
            console.print_result(&json!({ "ended": waiver }), || {
                console.print_line("the waiver has ended; the policy applies again")
            })
        }
    }
}

async fn list_waivers(
    arguments: &ListWaiversArgs,
    client: &Client,
    console: &Console,
) -> CommandResult {
    let reply = client.waivers(arguments).await?;
    let list_format = ListFormat {
        command: "waiver list",
        limit: arguments.page.limit,
        header: [
            "WAIVER", "POLICY", "AGENT", "BY", "UNTIL", "STATE", "REASON",
        ],
        empty_message: "no policy is waived for any agent",
    };
    let list = &reply.value;
    let next = list.next_page_token.as_deref();
    list_format.print_page(console, &reply, &list.waivers, next, |waiver| {
        [
            waiver.id.to_string(),
            waiver.policy.clone(),
            waiver.agent.to_string(),
            waiver.approver.clone(),
            waiver.expires_at.to_readable(),
            waiver_state(waiver),
            waiver.reason.clone(),
        ]
    })
}

fn waiver_state(waiver: &Waiver) -> String {
    match (&waiver.ended_reason, waiver.is_shown) {
        (Some(reason), _) => format!("ended: {}", terminal::escape_line(reason)),
        (None, true) => "in force".to_owned(),
        (None, false) => "for another card".to_owned(),
    }
}

async fn grant_waiver(
    arguments: &GrantWaiverArgs,
    client: &Client,
    console: &Console,
) -> CommandResult {
    let new = NewWaiver {
        policy: arguments.policy.clone(),
        agent: arguments.agent.clone(),
        digest: arguments.digest.clone(),
        reason: arguments.reason.clone(),
        expires_in_days: arguments.expires_in_days,
    };
    let reply = client.grant_waiver(&new).await?;
    let waiver = &reply.value;
    console.print_result(&reply, || {
        console.print_line(&format!(
            "{} is waived until {} (waiver {})",
            waiver.policy,
            waiver.expires_at.to_readable(),
            waiver.id
        ))
    })
}
