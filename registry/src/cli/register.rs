//! `register`: domains and cards, one result a line, then what to place where.

use std::collections::HashSet;
use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use futures::{StreamExt, stream};
use indicatif::{ProgressBar, ProgressDrawTarget};
use serde_json::Value;
use tokio::time::Instant;
use uuid::Uuid;

use super::client::{Client, Reply};
use super::console::Console;
use super::failure::{Failure, Outcome};
use super::refusal::ClientError;
use super::target::registration;
use super::{invocation, terminal};
use crate::api::{Challenge, DomainView, SourceView};
use crate::domain::lifecycle::ShownLifecycle;
use crate::domain::source::{ABSENT, SourceKind};

/// How long the first visits are waited for, all of them together.
const PATIENCE: Duration = Duration::from_secs(10);
/// The pauses between two looks at a domain; the last one repeats.
const PAUSES: [Duration; 3] = [
    Duration::from_millis(200),
    Duration::from_millis(500),
    Duration::from_secs(1),
];
/// Domains whose first visit is waited for.
const WAITED_FOR: usize = 50;
/// Domains looked at at once while waiting.
const AT_ONCE: usize = 8;
/// The longest file of names that is read, in bytes.
const FILE_LIMIT: u64 = 16 * 1024 * 1024;

/// What `register` takes.
#[derive(Args, Debug, Clone)]
pub struct RegisterArgs {
    /// A host (its well-known paths and catalogs are asked), or the URL of one card
    #[arg(value_name = "NAME|URL", required_unless_present = "file")]
    names: Vec<String>,
    /// Read further names from this file, one a line; `-` is standard input
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Approve the first card at once; for those who may approve
    #[arg(long)]
    approve: bool,
    /// Do not wait for the first visit
    #[arg(long)]
    no_wait: bool,
}

/// Registers everything named, whatever becomes of single items.
///
/// # Errors
/// Where the registry cannot be reached; an item that it refuses is a line, and exit code 1.
pub async fn run(
    arguments: &RegisterArgs,
    client: &Client,
    console: &Console,
) -> Result<Outcome, Failure> {
    let mut names = arguments.names.clone();
    if let Some(file) = &arguments.file {
        names.extend(read_names(file)?);
    }
    let mut registered = Vec::new();
    let mut outcome = Outcome::Done;
    for name in &names {
        match register_one(client, name, arguments.approve).await {
            Ok(reply) => {
                if !console.json {
                    console.line(&format!("{name}: registered as {}", reply.value.domain))?;
                } else if arguments.no_wait {
                    console.raw_json(&reply.raw)?;
                }
                registered.push((name.clone(), reply));
            }
            Err(Item::Refused(error)) => {
                outcome = Outcome::No;
                refuse(console, name, &error)?;
            }
            Err(Item::Fatal(failure)) => return Err(failure),
        }
    }
    if !arguments.no_wait {
        wait_for_visits(client, console, &mut registered).await?;
    }
    if !console.json {
        for (_, reply) in &registered {
            place(console, &reply.value)?;
        }
    }
    Ok(outcome)
}

/// Why an item was not registered.
enum Item {
    /// This one was refused; the next one may not be.
    Refused(Box<ClientError>),
    /// No other one will fare better.
    Fatal(Failure),
}

async fn register_one(
    client: &Client,
    name: &str,
    approve: bool,
) -> Result<Reply<DomainView>, Item> {
    let what = registration(name, approve).map_err(|failure| match failure {
        Failure::Failed(line) => Item::Refused(Box::new(ClientError::Failed(line))),
        other => Item::Fatal(other),
    })?;
    client
        .register(&what)
        .await
        .map_err(|error| match error.status() {
            // Without a valid token, or with the registry away, every item would fail alike.
            Some(401 | 429 | 500..) | None => Item::Fatal(Failure::new(format!("{name}: {error}"))),
            Some(_) => Item::Refused(Box::new(error)),
        })
}

fn refuse(console: &Console, name: &str, error: &ClientError) -> Result<(), Failure> {
    match error {
        ClientError::Refused { raw, .. } if console.json => console.raw_json(raw),
        _ => {
            terminal::complain(&format!("{name}: {error}"));
            Ok(())
        }
    }
}

/// Names from a file: one a line, without empty lines and `#` comments.
fn read_names(file: &PathBuf) -> Result<Vec<String>, Failure> {
    let failed =
        |reason: String| Failure::new(format!("{} cannot be read: {reason}", file.display()));
    let source: Box<dyn Read> = if file.as_os_str() == "-" {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(file).map_err(|error| failed(error.to_string()))?)
    };
    let mut text = String::new();
    source
        .take(FILE_LIMIT + 1)
        .read_to_string(&mut text)
        .map_err(|error| failed(error.to_string()))?;
    if text.len() as u64 > FILE_LIMIT {
        return Err(failed(format!(
            "it is longer than {FILE_LIMIT} bytes; split it"
        )));
    }
    Ok(names_in(&text))
}

fn names_in(text: &str) -> Vec<String> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
        .collect()
}

/// Waits until the first visits have an outcome, and says what came of them.
async fn wait_for_visits(
    client: &Client,
    console: &Console,
    registered: &mut [(String, Reply<DomainView>)],
) -> Result<(), Failure> {
    let progress = ProgressBar::new_spinner();
    // Draws nothing where standard error is no terminal.
    progress.set_draw_target(ProgressDrawTarget::stderr());
    progress.enable_steady_tick(Duration::from_millis(100));
    progress.set_message("waiting for the first visit");
    let deadline = Instant::now() + PATIENCE;
    let waited_for = registered.len().min(WAITED_FOR);
    let domains: Vec<_> = registered
        .iter()
        .map(|(_, reply)| reply.value.domain.clone())
        .collect();
    let mut seen = stream::iter(domains.iter().take(waited_for))
        .map(|domain| visited(client, domain, deadline))
        .buffered(AT_ONCE);
    let mut at = 0;
    let mut told = HashSet::new();
    while let Some(latest) = seen.next().await {
        let (name, reply) = &mut registered[at];
        at += 1;
        if let Some(latest) = latest {
            *reply = latest;
        }
        if console.json {
            continue;
        }
        let lines = outcome_of(client, name, &reply.value, &mut told).await;
        progress.suspend(|| lines.iter().try_for_each(|line| console.line(line)))?;
    }
    drop(seen);
    progress.finish_and_clear();
    if console.json {
        for (_, reply) in registered.iter() {
            console.raw_json(&reply.raw)?;
        }
    } else if registered.len() > waited_for {
        let more = registered.len() - waited_for;
        terminal::note(&format!(
            "{more} more are visited meanwhile; `a2a-registry domain show NAME` tells"
        ));
    }
    Ok(())
}

/// The domain once every source of it was asked, or as it stands when the time is over; `None` where
/// the caller may not see it yet.
async fn visited(client: &Client, domain: &str, deadline: Instant) -> Option<Reply<DomainView>> {
    let mut pauses = PAUSES.into_iter();
    let mut pause = PAUSES[0];
    let mut latest = None;
    loop {
        match client.domain(domain).await {
            Ok(reply) => {
                let all = &reply.value.sources;
                let done = !all.is_empty() && all.iter().all(is_asked);
                latest = Some(reply);
                if done {
                    return latest;
                }
            }
            Err(_) => return latest,
        }
        pause = pauses.next().unwrap_or(pause);
        if Instant::now() + pause >= deadline {
            return latest;
        }
        tokio::time::sleep(pause).await;
    }
}

/// Whether the first visit has come to a source. What a catalog names is for the visits after that.
fn is_asked(source: &SourceView) -> bool {
    source.last_attempt.is_some() || source.kind == SourceKind::Entry.as_str()
}

/// What came of the first visit, and what to do next. Of several names of one domain the first tells of its agents;
/// `told` remembers which.
async fn outcome_of(
    client: &Client,
    name: &str,
    domain: &DomainView,
    told: &mut HashSet<Uuid>,
) -> Vec<String> {
    let mut lines = Vec::new();
    for &id in &domain.agents {
        if !told.insert(id) {
            continue;
        }
        let line = match client.agent(id).await {
            Ok(reply) => {
                let summary = reply.value.hit.summary;
                let next = next_step(client, id, summary.lifecycle).await;
                format!(
                    "{name}: found {} ({id}), {}{next}",
                    summary.name, summary.lifecycle
                )
            }
            Err(_) => format!("{name}: found an agent ({id})"),
        };
        lines.push(line);
    }
    // Where the domain has agents already, only what was asked for and has failed is worth a line.
    let failed = |source: &&SourceView| {
        let outcome = source
            .last_attempt
            .as_ref()
            .map(|last| last.outcome.as_str());
        domain.agents.is_empty()
            || (source.url == name && !matches!(outcome, Some("card" | "not_modified")))
    };
    lines.extend(
        domain
            .sources
            .iter()
            // Most domains have no catalog.
            .filter(|source| source.state != ABSENT)
            .filter(failed)
            .map(|source| asked(name, source)),
    );
    if lines.is_empty() && domain.agents.is_empty() {
        lines.push(format!("{name}: a curator looks at it before it is shown"));
    }
    lines
}

/// What is known of a source that has yielded no agent.
fn asked(name: &str, source: &SourceView) -> String {
    let which = if name == source.url {
        name.to_owned()
    } else {
        format!("{name}: {}", source.url)
    };
    let Some(attempt) = &source.last_attempt else {
        return format!("{which}: not visited yet; `a2a-registry domain show` tells later");
    };
    let next = source
        .next_due
        .map(|due| format!("; visited again at {}", due.to_rfc3339()));
    let detail = attempt.detail.trim_end_matches('.');
    let next = next.unwrap_or_default();
    if attempt.outcome == "catalog" {
        return format!("{which}: {detail}");
    }
    format!("{which}: no card yet ({}): {detail}{next}", attempt.outcome)
}

/// The command that takes an agent further, where there is one.
async fn next_step(client: &Client, id: Uuid, state: ShownLifecycle) -> String {
    let program = invocation::program();
    match state {
        ShownLifecycle::Approved | ShownLifecycle::Deprecated => {
            format!("; try `{program} show {id}`")
        }
        ShownLifecycle::Pending => {
            let reviews = client.reviews(Some("open"), Some(100), None).await;
            let review = reviews.ok().and_then(|reply| {
                reply
                    .value
                    .reviews
                    .into_iter()
                    .find(|review| review.agent == id)
            });
            match review {
                Some(review) => format!(
                    "; approve it with `{program} review approve {} --reason TEXT`",
                    review.id
                ),
                None => "; a curator decides on it".to_owned(),
            }
        }
        _ => format!("; `{program} show {id}` says why"),
    }
}

/// What to place where, to prove ownership.
fn place(console: &Console, domain: &DomainView) -> Result<(), Failure> {
    if domain.challenges.is_empty() {
        return Ok(());
    }
    console.line(&format!(
        "To prove that {} is yours, place one of these:",
        domain.domain
    ))?;
    for challenge in &domain.challenges {
        console.line(&format!("  {}", placed(challenge)))?;
    }
    console.line(&format!(
        "Then: {} domain verify {}",
        super::invocation::program(),
        super::invocation::quote(&domain.domain)
    ))?;
    Ok(())
}

/// One challenge in words.
pub fn placed(challenge: &Challenge) -> String {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let what = match challenge.method.as_str() {
        "dns" => format!(
            "DNS: a TXT record at {} with {}",
            text(&challenge.name),
            text(&challenge.value)
        ),
        "http" => format!(
            "HTTP: a file at {} with {}",
            text(&challenge.url),
            text(&challenge.body)
        ),
        _ => {
            let known = serde_json::to_value(challenge).unwrap_or(Value::Null);
            return format!("{}: {known}", challenge.method);
        }
    };
    match challenge.expires {
        Some(expires) => format!("{what} (counts until {})", expires.to_rfc3339()),
        None => format!("{what} (counts as long as it stays there)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_names_may_have_comments_and_gaps() {
        let text = "# ours\r\n a.example \r\n\r\n\thttps://b.example/card.json\n#c.example";
        assert_eq!(names_in(text), ["a.example", "https://b.example/card.json"]);
    }
}
