//! `register`: registers domains and cards, and prints the result of each and the proofs to publish.

mod bulk;
mod crawl_results;
mod peer;
mod registered_agents;

use std::collections::HashSet;
use std::io::Read;
use std::path::PathBuf;

use a2a_registry_api::{Challenge, DomainView, Registration};
use a2a_registry_domain::ownership::Method;
use bytes::Bytes;
use clap::Args;
use serde_json::Value;

use super::client::Client;
use super::command_error::{CommandError, CommandOutcome, CommandResult};
use super::console::Console;
use super::name_parsing::parse_registration;

pub use crawl_results::has_first_crawl_result;

/// Size limit of a file with names, in bytes.
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// Arguments of `register`.
#[derive(Args, Debug, Clone)]
pub struct RegisterArgs {
    /// A host (its well-known paths and catalogs are fetched), or the URL of a card, of an agent or of a catalog
    #[arg(value_name = "NAME|URL", required_unless_present_any = ["file", "from_registry"])]
    names: Vec<String>,
    /// Read more names from this file, one per line; `-` is standard input
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Register the agents of another registry that supports ARD, each from its own origin: URL of the registry, or
    /// base URL of its API
    #[arg(long, value_name = "URL")]
    from_registry: Option<String>,
    /// Approve the first card at once; for accounts that may approve
    #[arg(long)]
    approve: bool,
    /// Do not wait for the first crawl
    #[arg(long)]
    no_wait: bool,
}

/// Name from the command line, and the registry's response for it.
struct RegisteredName {
    name: String,
    registration: Registration,
    domain: String,
    /// Whether the response to the registration says only that the name is recorded.
    is_recorded: bool,
    /// Domain, once it was visible.
    view: Option<DomainView>,
    /// Output of `--json` for it.
    raw: Bytes,
}

impl RegisteredName {
    /// Prints that the name is registered.
    fn print_registered(&self, console: &Console, no_wait: bool) -> Result<(), CommandError> {
        if !console.json {
            console.print_line(&format!("{}: registered as {}", self.name, self.domain))?;
        } else if no_wait {
            console.print_raw_json(&self.raw)?;
        }
        Ok(())
    }
}

/// Results for the names.
struct RegistrationResults {
    registered: Vec<RegisteredName>,
    /// Whether all of them were registered.
    outcome: CommandOutcome,
    /// Why the remaining names were not sent.
    stop_error: Option<CommandError>,
}

impl Default for RegistrationResults {
    fn default() -> Self {
        Self {
            registered: Vec::new(),
            outcome: CommandOutcome::Done,
            stop_error: None,
        }
    }
}

/// Registers all names, even if some fail, and prints the result of each.
///
/// # Errors
/// If the registry cannot be reached or accepts nothing more. An item that is rejected or has no card is one line, and
/// exit code 1.
pub async fn run_register(
    arguments: &RegisterArgs,
    client: &Client,
    console: &Console,
) -> CommandResult {
    let mut names = arguments.names.clone();
    if let Some(file) = &arguments.file {
        names.extend(read_registration_names(file)?);
    }
    let mut peer_outcome = CommandOutcome::Done;
    if let Some(registry) = &arguments.from_registry {
        peer_outcome = add_peer_agents(registry, &mut names, console).await?;
    }
    // Without a token, a registry accepts one registration at a time.
    let in_bulk = names.len() > 1 && client.has_token();
    let RegistrationResults {
        mut registered,
        mut outcome,
        stop_error: ended,
    } = if in_bulk {
        bulk::register_in_batches(arguments, client, console, &names).await?
    } else {
        register_one_by_one(arguments, client, console, &names).await?
    };
    if peer_outcome == CommandOutcome::Negative {
        outcome = CommandOutcome::Negative;
    }
    if !arguments.no_wait
        && crawl_results::print_crawl_results(client, console, &mut registered).await?
            == CommandOutcome::Negative
    {
        outcome = CommandOutcome::Negative;
    }
    if !console.json {
        print_all_proof_instructions(console, &registered)?;
    }
    ended.map_or(Ok(outcome), Err)
}

/// Registers names one by one.
async fn register_one_by_one(
    arguments: &RegisterArgs,
    client: &Client,
    console: &Console,
    names: &[String],
) -> Result<RegistrationResults, CommandError> {
    let mut results = RegistrationResults::default();
    for (index, name) in names.iter().enumerate() {
        match register_name(client, name, arguments.approve).await {
            Ok(registered_name) => {
                registered_name.print_registered(console, arguments.no_wait)?;
                results.registered.push(registered_name);
            }
            Err(RegisterError::Rejected(failure)) => {
                results.outcome = CommandOutcome::Negative;
                report_rejected_name(console, failure)?;
            }
            Err(RegisterError::Fatal(failure)) => {
                for left in &names[index + 1..] {
                    let why = format!("{left}: not registered, for the same reason as {name}");
                    report_rejected_name(console, CommandError::Negative(why))?;
                }
                results.stop_error = Some(failure);
                break;
            }
        }
    }
    Ok(results)
}

/// Prints how to prove each domain, or the command for it if the registry has not shown the domain.
fn print_all_proof_instructions(
    console: &Console,
    registered: &[RegisteredName],
) -> Result<(), CommandError> {
    let mut printed_domains = HashSet::new();
    let mut has_unknown_domain = false;
    for registered_name in registered {
        match &registered_name.view {
            Some(view) if printed_domains.insert(&registered_name.domain) => {
                print_proof_instructions(console, view)?
            }
            Some(_) => {}
            None => has_unknown_domain = true,
        }
    }
    if has_unknown_domain {
        console.print_line(&format!(
            "What to publish to prove that a domain is yours: {} domain show DOMAIN",
            super::program_name::program_name()
        ))?;
    }
    Ok(())
}

/// Adds the agents of another registry to the names, and prints which ones are skipped.
async fn add_peer_agents(
    registry: &str,
    names: &mut Vec<String>,
    console: &Console,
) -> CommandResult {
    let agents = peer::fetch_peer_agents(registry).await?;
    if agents.names.is_empty() && agents.skipped.is_empty() {
        return Err(CommandError::Negative(format!(
            "{registry} lists no public agents over ARD"
        )));
    }
    names.extend(agents.names);
    let mut outcome = CommandOutcome::Done;
    for line in agents.skipped {
        outcome = CommandOutcome::Negative;
        report_rejected_name(console, CommandError::Negative(line))?;
    }
    Ok(outcome)
}

/// Why a name was not registered.
enum RegisterError {
    /// This name was rejected; the next one may be accepted.
    Rejected(CommandError),
    /// No other name can succeed either.
    Fatal(CommandError),
}

async fn register_name(
    client: &Client,
    name: &str,
    approve: bool,
) -> Result<RegisteredName, RegisterError> {
    let registration = parse_registration(name, approve).map_err(|failure| match failure {
        CommandError::Failed(_) => RegisterError::Rejected(failure.with_context(name)),
        other => RegisterError::Fatal(other),
    })?;
    match client.register(&registration).await {
        Ok(reply) => {
            let sources = crawl_results::sources_for_registration(&registration, &reply.value);
            Ok(RegisteredName {
                name: name.to_owned(),
                domain: reply.value.domain.clone(),
                is_recorded: crawl_results::sources_are_only_recorded(&sources),
                registration,
                view: Some(reply.value),
                raw: reply.raw,
            })
        }
        Err(error) => {
            let status = error.status();
            let failure = CommandError::from(error).with_context(name);
            Err(match status {
                // Without a valid token, or without a registry, every name would fail in the same way.
                Some(401 | 429 | 500..) | None => RegisterError::Fatal(failure),
                Some(_) => RegisterError::Rejected(failure),
            })
        }
    }
}

/// Prints why a name is not registered, in the form of all errors.
fn report_rejected_name(console: &Console, error: CommandError) -> Result<(), CommandError> {
    if console.json
        && let Some(document) = error.problem_document()
    {
        console.print_raw_json(&document)?;
    }
    error.print();
    Ok(())
}

/// Reads names from a file: one per line, without empty lines and `#` comments.
fn read_registration_names(file: &PathBuf) -> Result<Vec<String>, CommandError> {
    let file_error =
        |reason: String| CommandError::new(format!("{} cannot be read: {reason}", file.display()));
    let input: Box<dyn Read> = if file.as_os_str() == "-" {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(file).map_err(|error| file_error(error.to_string()))?)
    };
    let mut text = String::new();
    input
        .take(MAX_FILE_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(|error| file_error(error.to_string()))?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(file_error(format!(
            "it is longer than {MAX_FILE_BYTES} bytes; split it"
        )));
    }
    Ok(parse_registration_names(&text))
}

fn parse_registration_names(text: &str) -> Vec<String> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
        .collect()
}

/// Prints how to prove ownership.
fn print_proof_instructions(console: &Console, domain: &DomainView) -> Result<(), CommandError> {
    if let Some(reason) = &domain.no_challenge {
        console.print_line(reason)?;
    }
    if domain.challenges.is_empty() {
        return Ok(());
    }
    console.print_line(&format!(
        "To prove that {} is yours, publish one of these:",
        domain.domain
    ))?;
    for challenge in &domain.challenges {
        console.print_line(&format!("  {}", describe_challenge(challenge)))?;
    }
    console.print_line(&format!(
        "Then: {} domain verify {}",
        super::program_name::program_name(),
        super::program_name::shell_quote(&domain.domain)
    ))?;
    Ok(())
}

/// Challenge in words.
pub fn describe_challenge(challenge: &Challenge) -> String {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let instruction = match challenge.method.known_value() {
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
            let challenge_json = serde_json::to_value(challenge).unwrap_or(Value::Null);
            return format!("{}: {challenge_json}", challenge.method);
        }
    };
    match challenge.expires {
        Some(expires) => format!("{instruction} (valid until {})", expires.to_readable()),
        None => format!("{instruction} (valid as long as it is published)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_names_may_have_comments_and_gaps() {
        let text = "# ours\r\n a.example \r\n\r\n\thttps://b.example/card.json\n#c.example";
        assert_eq!(
            parse_registration_names(text),
            ["a.example", "https://b.example/card.json"]
        );
    }
}
