//! `register`: domains and cards, what came of each, then what to place where.

mod agent;
mod bulk;
mod outcome;
mod peer;

use std::collections::HashSet;
use std::io::Read;
use std::path::PathBuf;

use a2a_registry_api::{Challenge, DomainView, Registration};
use a2a_registry_domain::ownership::Method;
use bytes::Bytes;
use clap::Args;
use serde_json::Value;

use super::client::Client;
use super::console::Console;
use super::failure::{CommandOutcome, CommandResult, Failure};
use super::target::registration;

/// The longest file of names that is read, in bytes.
const FILE_LIMIT: u64 = 16 * 1024 * 1024;

/// What `register` takes.
#[derive(Args, Debug, Clone)]
pub struct RegisterArgs {
    /// A host (its well-known paths and catalogs are fetched), or the URL of a card, of an agent or of a catalog
    #[arg(value_name = "NAME|URL", required_unless_present_any = ["file", "from_registry"])]
    names: Vec<String>,
    /// Read further names from this file, one a line; `-` is standard input
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Register the agents of another registry that speaks ARD, each from its own origin: its URL, or the base URL of its
    /// API
    #[arg(long, value_name = "URL")]
    from_registry: Option<String>,
    /// Approve the first card at once; for accounts that may approve
    #[arg(long)]
    approve: bool,
    /// Do not wait for the first crawl
    #[arg(long)]
    no_wait: bool,
}

/// A name of the command line, and what the registry told of it.
struct RegisteredName {
    name: String,
    what: Registration,
    domain: String,
    /// Whether the answer to the registration tells that the name is recorded, and nothing else.
    is_recorded: bool,
    /// The domain, once it was shown.
    view: Option<DomainView>,
    /// What `--json` prints of it.
    raw: Bytes,
}

impl RegisteredName {
    /// Says that the name is registered.
    fn announce(&self, console: &Console, no_wait: bool) -> Result<(), Failure> {
        if !console.json {
            console.line(&format!("{}: registered as {}", self.name, self.domain))?;
        } else if no_wait {
            console.raw_json(&self.raw)?;
        }
        Ok(())
    }
}

/// What came of the names.
struct Registering {
    registered: Vec<RegisteredName>,
    /// Whether all of them were registered.
    outcome: CommandOutcome,
    /// Why the last ones were not sent any more.
    ended: Option<Failure>,
}

impl Default for Registering {
    fn default() -> Self {
        Self {
            registered: Vec::new(),
            outcome: CommandOutcome::Done,
            ended: None,
        }
    }
}

/// Registers everything named, whatever becomes of single items, and says of each what came of it.
///
/// # Errors
/// Where the registry cannot be reached, or takes no more; an item that it refuses, or that brings no card, is a line,
/// and exit code 1.
pub async fn run(arguments: &RegisterArgs, client: &Client, console: &Console) -> CommandResult {
    let mut names = arguments.names.clone();
    if let Some(file) = &arguments.file {
        names.extend(read_names(file)?);
    }
    let mut left_out = CommandOutcome::Done;
    if let Some(registry) = &arguments.from_registry {
        left_out = add_agents_of(registry, &mut names, console).await?;
    }
    // Without a token a registry takes one at a time.
    let in_bulk = names.len() > 1 && client.has_token();
    let Registering {
        mut registered,
        mut outcome,
        ended,
    } = if in_bulk {
        bulk::register_all(arguments, client, console, &names).await?
    } else {
        register_singly(arguments, client, console, &names).await?
    };
    if left_out == CommandOutcome::No {
        outcome = CommandOutcome::No;
    }
    if !arguments.no_wait
        && outcome::tell(client, console, &mut registered).await? == CommandOutcome::No
    {
        outcome = CommandOutcome::No;
    }
    if !console.json {
        place_all(console, &registered)?;
    }
    ended.map_or(Ok(outcome), Err)
}

/// Registers names one after the other.
async fn register_singly(
    arguments: &RegisterArgs,
    client: &Client,
    console: &Console,
    names: &[String],
) -> Result<Registering, Failure> {
    let mut done = Registering::default();
    for (place, name) in names.iter().enumerate() {
        match register_one(client, name, arguments.approve).await {
            Ok(one) => {
                one.announce(console, arguments.no_wait)?;
                done.registered.push(one);
            }
            Err(RegisterError::Refused(failure)) => {
                done.outcome = CommandOutcome::No;
                refuse(console, failure)?;
            }
            Err(RegisterError::Fatal(failure)) => {
                for left in &names[place + 1..] {
                    let why = format!("{left}: not registered, for the reason why {name} was not");
                    refuse(console, Failure::No(why))?;
                }
                done.ended = Some(failure);
                break;
            }
        }
    }
    Ok(done)
}

/// What to place where to prove each domain, or how to ask for it where the registry has not shown the domain.
fn place_all(console: &Console, registered: &[RegisteredName]) -> Result<(), Failure> {
    let mut told = HashSet::new();
    let mut is_unknown = false;
    for one in registered {
        match &one.view {
            Some(view) if told.insert(&one.domain) => place(console, view)?,
            Some(_) => {}
            None => is_unknown = true,
        }
    }
    if is_unknown {
        console.line(&format!(
            "What to publish to prove that a domain is yours: {} domain show DOMAIN",
            super::invocation::program()
        ))?;
    }
    Ok(())
}

/// Adds the agents of another registry to what is registered, and says which are left out.
async fn add_agents_of(
    registry: &str,
    names: &mut Vec<String>,
    console: &Console,
) -> CommandResult {
    let agents = peer::agents_of(registry).await?;
    if agents.names.is_empty() && agents.left_out.is_empty() {
        return Err(Failure::No(format!(
            "{registry} lists no agents that everybody may find over ARD"
        )));
    }
    names.extend(agents.names);
    let mut outcome = CommandOutcome::Done;
    for line in agents.left_out {
        outcome = CommandOutcome::No;
        refuse(console, Failure::No(line))?;
    }
    Ok(outcome)
}

/// Why an item was not registered.
enum RegisterError {
    /// This one was refused; the next one may not be.
    Refused(Failure),
    /// No other one will fare better.
    Fatal(Failure),
}

async fn register_one(
    client: &Client,
    name: &str,
    approve: bool,
) -> Result<RegisteredName, RegisterError> {
    let what = registration(name, approve).map_err(|failure| match failure {
        Failure::Failed(_) => RegisterError::Refused(failure.about(name)),
        other => RegisterError::Fatal(other),
    })?;
    match client.register(&what).await {
        Ok(reply) => {
            let sources = outcome::sources_of(&what, &reply.value);
            Ok(RegisteredName {
                name: name.to_owned(),
                domain: reply.value.domain.clone(),
                is_recorded: outcome::are_recorded(&sources),
                what,
                view: Some(reply.value),
                raw: reply.raw,
            })
        }
        Err(error) => {
            let status = error.status();
            let failure = Failure::from(error).about(name);
            Err(match status {
                // Without a valid token, or with the registry away, every item would fail alike.
                Some(401 | 429 | 500..) | None => RegisterError::Fatal(failure),
                Some(_) => RegisterError::Refused(failure),
            })
        }
    }
}

/// Says why a name is not registered, as every command says what went wrong.
fn refuse(console: &Console, failure: Failure) -> Result<(), Failure> {
    if console.json
        && let Some(document) = failure.document()
    {
        console.raw_json(&document)?;
    }
    failure.complain();
    Ok(())
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

/// What to place where, to prove ownership.
fn place(console: &Console, domain: &DomainView) -> Result<(), Failure> {
    if let Some(reason) = &domain.no_challenge {
        console.line(reason)?;
    }
    if domain.challenges.is_empty() {
        return Ok(());
    }
    console.line(&format!(
        "To prove that {} is yours, publish one of these:",
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
    let what = match challenge.method.known() {
        Some(Method::Dns) => format!(
            "DNS: a TXT record at {} with {}",
            text(&challenge.name),
            text(&challenge.value)
        ),
        Some(Method::Http) => format!(
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
        Some(expires) => format!("{what} (counts until {})", expires.to_readable()),
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
