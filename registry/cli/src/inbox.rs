//! `waiting`: what waits for the caller, and news about its agents.

use a2a_registry_api::{Seen, Waiting};
use clap::Args;
use serde_json::json;

use super::client::Client;
use super::command_error::{CommandError, CommandOutcome, CommandResult};
use super::console::Console;
use super::review::format_review_change;
use super::terminal;

/// Arguments of `waiting`.
#[derive(Args, Debug, Clone)]
pub struct InboxArgs {
    /// Mark the news as seen
    #[arg(long)]
    seen: bool,
    /// Print a new address for your feed (Atom), which has the same content; the previous address becomes invalid
    #[arg(long, conflicts_with_all = ["seen", "end_feed"])]
    new_feed: bool,
    /// End your feed
    #[arg(long, conflicts_with = "seen")]
    end_feed: bool,
}

pub async fn run_inbox(arguments: &InboxArgs, client: &Client, console: &Console) -> CommandResult {
    if arguments.new_feed || arguments.end_feed {
        return renew_or_end_feed(arguments, client, console).await;
    }
    let reply = client.waiting().await?;
    let inbox = &reply.value;
    if arguments.seen {
        client.seen(&Seen { at: inbox.at }).await?;
    }
    let is_empty = inbox.reviews.is_empty()
        && inbox.news.is_empty()
        && inbox.domains.is_empty()
        && inbox.hidden.is_empty()
        && inbox.failing_hooks.is_empty();
    console.print_result(&reply, || {
        if is_empty {
            terminal::eprint_note("nothing waits for you");
        }
        print_inbox(inbox, console)
    })?;
    Ok(CommandOutcome::done_if(!is_empty))
}

fn print_inbox(inbox: &Waiting, console: &Console) -> Result<(), CommandError> {
    for review in &inbox.reviews {
        let due = review.due.map(|due| format!(", due {}", due.to_readable()));
        console.print_line(&format!(
            "review {} of {} ({}, {}{})",
            review.id,
            review.name,
            review.domain,
            format_review_change(review),
            due.unwrap_or_default()
        ))?;
    }
    for news in &inbox.news {
        let text = news.text.as_deref().unwrap_or_default();
        console.print_line(&format!(
            "{} of agent {} by {} at {}: {text}",
            news.kind,
            news.agent,
            news.by,
            news.at.to_readable()
        ))?;
    }
    for hidden in &inbox.hidden {
        console.print_line(&format!(
            "agent {} since {}: {}",
            hidden.agent,
            hidden.since.to_readable(),
            hidden.hidden_from.sentence()
        ))?;
    }
    for hook in &inbox.failing_hooks {
        let since = hook.failing_since.map(|since| since.to_readable());
        console.print_line(&format!(
            "hook {} ({}) of {} fails since {}: {}",
            hook.name,
            hook.id,
            hook.account,
            since.unwrap_or_default(),
            hook.last_error.as_deref().unwrap_or_default()
        ))?;
    }
    for domain in &inbox.domains {
        console.print_line(&format!(
            "domain {} waits for its proof until {}",
            domain.domain,
            domain.expires.to_readable()
        ))?;
    }
    Ok(())
}

/// Renews the address of the feed, or ends the feed.
async fn renew_or_end_feed(
    arguments: &InboxArgs,
    client: &Client,
    console: &Console,
) -> CommandResult {
    if arguments.new_feed {
        let reply = client.renew_feed().await?;
        return console.print_result(&reply, || console.print_line(&reply.value.url));
    }
    client.end_feed().await?;
    console.print_result(&json!({ "ended": "feed" }), || {
        console.print_line("the feed has ended")
    })
}
