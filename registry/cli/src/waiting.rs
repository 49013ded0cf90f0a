//! `waiting`: what waits for you, and what is new of your agents.

use a2a_registry_api::{Seen, Waiting};
use clap::Args;
use serde_json::json;

use super::client::Client;
use super::console::Console;
use super::failure::{CommandOutcome, CommandResult, Failure};
use super::review::change;
use super::terminal;

/// What `waiting` takes.
#[derive(Args, Debug, Clone)]
pub struct WaitingArgs {
    /// Note the news as seen
    #[arg(long)]
    seen: bool,
    /// Print a new address of your feed (Atom), which tells of the same; the one before is worth nothing then
    #[arg(long, conflicts_with_all = ["seen", "end_feed"])]
    new_feed: bool,
    /// End your feed
    #[arg(long, conflicts_with = "seen")]
    end_feed: bool,
}

pub async fn run(arguments: &WaitingArgs, client: &Client, console: &Console) -> CommandResult {
    if arguments.new_feed || arguments.end_feed {
        return feed(arguments, client, console).await;
    }
    let reply = client.waiting().await?;
    let waiting = &reply.value;
    if arguments.seen {
        client.seen(&Seen { at: waiting.at }).await?;
    }
    let is_empty =
        waiting.reviews.is_empty() && waiting.news.is_empty() && waiting.domains.is_empty();
    console.show(&reply, || {
        if is_empty {
            terminal::note("nothing waits for you");
        }
        facts(waiting, console)
    })?;
    Ok(CommandOutcome::done_if(!is_empty))
}

fn facts(waiting: &Waiting, console: &Console) -> Result<(), Failure> {
    for review in &waiting.reviews {
        let due = review.due.map(|due| format!(", due {}", due.to_readable()));
        console.line(&format!(
            "review {} of {} ({}, {}{})",
            review.id,
            review.name,
            review.domain,
            change(review),
            due.unwrap_or_default()
        ))?;
    }
    for news in &waiting.news {
        let text = news.text.as_deref().unwrap_or_default();
        console.line(&format!(
            "{} of agent {} by {} at {}: {text}",
            news.kind,
            news.agent,
            news.by,
            news.at.to_readable()
        ))?;
    }
    for domain in &waiting.domains {
        console.line(&format!(
            "domain {} waits for its proof until {}",
            domain.domain,
            domain.expires.to_readable()
        ))?;
    }
    Ok(())
}

/// Gives the feed a new address, or ends it.
async fn feed(arguments: &WaitingArgs, client: &Client, console: &Console) -> CommandResult {
    if arguments.new_feed {
        let reply = client.renew_feed().await?;
        return console.show(&reply, || console.line(&reply.value.url));
    }
    client.end_feed().await?;
    console.show(&json!({ "ended": "feed" }), || {
        console.line("the feed has ended")
    })
}
