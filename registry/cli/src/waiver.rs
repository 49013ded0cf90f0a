//! `waiver`: policies that do not count for what an agent shows, for a while and for a reason.

use a2a_registry_api::{NewWaiver, Waiver};
use clap::{Args, Subcommand};

use super::client::Client;
use super::console::Console;
use super::failure::{CommandOutcome, Failure};
use super::list::{Listing, PageArgs, ReceivedPage};
use super::terminal;

/// What `waiver` takes.
#[derive(Subcommand, Debug, Clone)]
pub enum WaiverCommand {
    /// List waivers, newest first
    List(ListArgs),
    /// Have a policy not count for what an agent shows
    Grant(GrantArgs),
    /// End a waiver; the policy counts again
    End {
        /// Id of the waiver
        waiver: String,
    },
}

/// What `waiver list` takes.
#[derive(Args, Debug, Clone)]
pub struct ListArgs {
    /// Those of this agent
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Those of this policy
    #[arg(long, value_name = "POLICY")]
    policy: Option<String>,
    /// Those that have ended too
    #[arg(long)]
    ended: bool,
    #[command(flatten)]
    page: PageArgs,
}

/// What `waiver grant` takes.
#[derive(Args, Debug, Clone)]
pub struct GrantArgs {
    /// Identifier of the policy
    policy: String,
    /// Id or URN of the agent
    agent: String,
    /// Digest of the card, as `show` prints it, so that it is granted for nothing else
    #[arg(long, value_name = "DIGEST")]
    digest: String,
    /// Days until it ends, 180 at most
    #[arg(long = "expires", value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=180))]
    expires_in_days: u32,
    /// Why, for the log
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

/// Does it.
///
/// # Errors
/// Where the registry is away or refuses.
pub async fn run(
    command: &WaiverCommand,
    client: &Client,
    console: &Console,
) -> Result<CommandOutcome, Failure> {
    match command {
        WaiverCommand::List(arguments) => list(arguments, client, console).await,
        WaiverCommand::Grant(arguments) => grant(arguments, client, console).await,
        WaiverCommand::End { waiver } => {
            client.end_waiver(waiver).await?;
            if console.json {
                console.json(&serde_json::json!({ "ended": waiver }))?;
            } else {
                console.line("the waiver has ended; the policy counts again")?;
            }
            Ok(CommandOutcome::Done)
        }
    }
}

async fn list(
    arguments: &ListArgs,
    client: &Client,
    console: &Console,
) -> Result<CommandOutcome, Failure> {
    let page = &arguments.page;
    let filter = [
        ("agent", arguments.agent.clone()),
        ("policy", arguments.policy.clone()),
        ("ended", arguments.ended.then(|| "true".to_owned())),
        ("page_size", page.limit.map(|limit| limit.to_string())),
        ("page_token", page.page_token.clone()),
    ];
    let filter = filter.into_iter();
    let filter: Vec<_> = filter
        .filter_map(|(name, value)| Some((name, value?)))
        .collect();
    let reply = client.waivers(&filter).await?;
    let listing = Listing {
        command: "waiver list",
        header: &[
            "WAIVER", "POLICY", "AGENT", "BY", "UNTIL", "STATE", "REASON",
        ],
        empty: "no policy is waived for any agent",
    };
    let received = ReceivedPage {
        raw: &reply.raw,
        entries: &reply.value.waivers,
        next: reply.value.next_page_token.as_deref(),
    };
    listing.show(console, page, &received, |waiver| {
        vec![
            waiver.id.to_string(),
            waiver.policy.clone(),
            waiver.agent.to_string(),
            waiver.approver.clone(),
            waiver.expires_at.to_readable(),
            state(waiver),
            waiver.reason.clone(),
        ]
    })
}

fn state(waiver: &Waiver) -> String {
    match (&waiver.ended_reason, waiver.is_shown) {
        (Some(reason), _) => format!("ended: {}", terminal::line(reason)),
        (None, true) => "in force".to_owned(),
        (None, false) => "for another card".to_owned(),
    }
}

async fn grant(
    arguments: &GrantArgs,
    client: &Client,
    console: &Console,
) -> Result<CommandOutcome, Failure> {
    let new = NewWaiver {
        policy: arguments.policy.clone(),
        agent: arguments.agent.clone(),
        digest: arguments.digest.clone(),
        reason: arguments.reason.clone(),
        expires_in_days: arguments.expires_in_days,
    };
    let reply = client.grant_waiver(&new).await?;
    if console.json {
        console.raw_json(&reply.raw)?;
        return Ok(CommandOutcome::Done);
    }
    let waiver = &reply.value;
    console.line(&format!(
        "{} is waived until {} (waiver {})",
        waiver.policy,
        waiver.expires_at.to_readable(),
        waiver.id
    ))?;
    Ok(CommandOutcome::Done)
}
