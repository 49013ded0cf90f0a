//! `waiting`: what waits for you, and what is new of your agents.

use clap::Args;

use super::client::Client;
use super::console::Console;
use super::failure::{CommandOutcome, Failure};
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

/// Does it.
///
/// # Errors
/// Where the registry is away or refuses.
pub async fn run(
    arguments: &WaitingArgs,
    client: &Client,
    console: &Console,
) -> Result<CommandOutcome, Failure> {
    if arguments.new_feed || arguments.end_feed {
        return feed(arguments, client, console).await;
    }
    let reply = client.waiting().await?;
    let waiting = &reply.value;
    if arguments.seen {
        client.seen(waiting.at).await?;
    }
    let is_empty =
        waiting.reviews.is_empty() && waiting.news.is_empty() && waiting.domains.is_empty();
    let outcome = match is_empty {
        true => CommandOutcome::No,
        false => CommandOutcome::Done,
    };
    if console.json {
        console.raw_json(&reply.raw)?;
        return Ok(outcome);
    }
    if is_empty {
        terminal::note("nothing waits for you");
    }
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
    Ok(outcome)
}

/// Gives the feed a new address, or ends it.
async fn feed(
    arguments: &WaitingArgs,
    client: &Client,
    console: &Console,
) -> Result<CommandOutcome, Failure> {
    if arguments.new_feed {
        let reply = client.renew_feed().await?;
        match console.json {
            true => console.raw_json(&reply.raw)?,
            false => console.line(&reply.value.url)?,
        }
        return Ok(CommandOutcome::Done);
    }
    client.end_feed().await?;
    match console.json {
        true => console.json(&serde_json::json!({ "ended": "feed" }))?,
        false => console.line("the feed has ended")?,
    }
    Ok(CommandOutcome::Done)
}
