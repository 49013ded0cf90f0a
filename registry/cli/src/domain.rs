//! `domain`: registered domains, and actions on them.

mod credential;
mod removal;
mod show;
mod vouch;

use std::collections::BTreeMap;
use std::io::Read;

use a2a_registry_api::{DomainPatch, NewGeneration, Recrawl, SourceView, Transfer, Verification};
use a2a_registry_domain::open_enum::OpenEnum;
use a2a_registry_domain::ownership::ProofOutcome;
use a2a_registry_domain::source::SourceState;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::client::Client;
use super::command_error::{CommandError, CommandOutcome, CommandResult};
use super::console::Console;
use super::list_format::{ListFormat, PageArgs};
use super::register::describe_challenge;
use credential::CredentialCommand;
use show::print_domain;
use vouch::VouchArgs;

/// Subcommands of `domain`.
#[derive(Subcommand, Debug, Clone)]
pub enum DomainCommand {
    /// Show a domain: its proofs and sources, why an agent is not listed, and when the next check is due
    Show {
        #[command(flatten)]
        name: DomainArg,
        /// Show every stored fetch attempt, newest first
        #[arg(long)]
        attempts: bool,
    },
    /// List registered domains
    List(PageArgs),
    /// Vouch, as an admin, for a host, for one of its registrants, for an account as its owner, or for its endpoints
    Vouch(VouchArgs),
    /// Crawl a domain as soon as possible
    Recrawl {
        #[command(flatten)]
        name: DomainArg,
        /// Send unconditional requests, so that unchanged cards are fetched again too
        #[arg(long)]
        full: bool,
    },
    /// Remove a domain, or your registrations of it; agents that no one else has registered are retired permanently
    Rm {
        #[command(flatten)]
        name: DomainArg,
        /// Withdraw your registration of this source only, given by its URL or id
        #[arg(long, value_name = "URL")]
        source: Option<String>,
        /// Also erase what the registry stores of the cards of its agents (admins only; requires --reason)
        #[arg(long, conflicts_with = "source", requires = "reason")]
        erase: bool,
        /// Reason for the erasure, stored in the event log
        #[arg(long, value_name = "TEXT", requires = "erase")]
        reason: Option<String>,
        /// Do not ask for confirmation
        #[arg(long, short)]
        yes: bool,
    },
    /// Check your proofs of a domain now
    Verify(DomainArg),
    /// Give a domain to another account
    Transfer {
        #[command(flatten)]
        name: DomainArg,
        /// The account's name
        #[arg(long, value_name = "NAME")]
        account: String,
    },
    /// Start a new generation of a domain because its owner changed: proofs and keys are removed, and agents need a
    /// new approval
    NewGeneration {
        #[command(flatten)]
        name: DomainArg,
        /// Reason, stored in the event log
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
    /// Enrol or withdraw a key that signs a domain's cards
    Key {
        #[command(flatten)]
        name: DomainArg,
        /// Name of the key (`kid`) in signatures
        #[arg(value_name = "KID")]
        kid: String,
        /// Public key as a JWK, or a key set that contains it; `-` reads standard input
        #[arg(long, value_name = "FILE", required_unless_present = "withdraw")]
        jwk: Option<std::path::PathBuf>,
        /// Withdraw the key
        #[arg(long, conflicts_with = "jwk")]
        withdraw: bool,
    },
    /// Set, show or remove credentials with which the registry fetches sources that are not public
    #[command(subcommand)]
    Credential(CredentialCommand),
    /// Change a domain's contact, whether it is listed, or whether its endpoints are checked
    Set {
        #[command(flatten)]
        name: DomainArg,
        /// Contact for problems, a mailto: or https: URL; empty to remove it
        #[arg(long, value_name = "URL", required_unless_present_any = ["opt_out", "endpoint_checks"])]
        contact: Option<String>,
        /// True to opt out: the domain and its agents are not listed
        #[arg(long, value_name = "BOOL")]
        opt_out: Option<bool>,
        /// False to turn off checks of the domain's agents, and of endpoints on its host
        #[arg(long, value_name = "BOOL")]
        endpoint_checks: Option<bool>,
    },
}

/// A registered domain.
#[derive(Args, Debug, Clone)]
pub struct DomainArg {
    /// The domain, as `host` or `host:port`
    #[arg(value_name = "DOMAIN")]
    domain: String,
}

pub async fn run_domain(
    command: &DomainCommand,
    client: &Client,
    console: &Console,
) -> CommandResult {
    match command {
        DomainCommand::Show { name, attempts } => {
            let reply = client.domain(&name.domain).await?;
            console.print_result(&reply, || print_domain(console, &reply.value, *attempts))
        }
        DomainCommand::List(page) => list_domains(page, client, console).await,
        DomainCommand::Vouch(arguments) => {
            vouch::run_domain_vouch(arguments, client, console).await
        }
        DomainCommand::Recrawl { name, full } => recrawl_domain(name, *full, client, console).await,
        DomainCommand::Rm {
            name,
            source,
            erase: _,
            reason,
            yes,
        } => match reason {
            Some(reason) => {
                removal::run_domain_erasure(&name.domain, reason, *yes, client, console).await
            }
            None => {
                removal::run_domain_removal(&name.domain, source.as_deref(), *yes, client, console)
                    .await
            }
        },
        DomainCommand::Verify(name) => verify_domain(name, client, console).await,
        DomainCommand::Transfer { name, account } => {
            transfer_domain(name, account, client, console).await
        }
        DomainCommand::NewGeneration { name, reason } => {
            start_domain_generation(name, reason, client, console).await
        }
        DomainCommand::Key { name, kid, jwk, .. } => {
            enrol_or_withdraw_key(name, kid, jwk.as_deref(), client, console).await
        }
        DomainCommand::Credential(command) => {
            credential::run_domain_credential(command, client, console).await
        }
        DomainCommand::Set {
            name,
            contact,
            opt_out,
            endpoint_checks,
        } => {
            let patch = DomainPatch {
                contact: contact.clone(),
                opt_out: *opt_out,
                endpoint_checks: *endpoint_checks,
            };
            let reply = client.patch_domain(&name.domain, &patch).await?;
            console.print_result(&reply, || print_domain(console, &reply.value, false))
        }
    }
}

async fn recrawl_domain(
    name: &DomainArg,
    full: bool,
    client: &Client,
    console: &Console,
) -> CommandResult {
    let reply = client.recrawl(&name.domain, &Recrawl { full }).await?;
    let visit = &reply.value;
    console.print_result(&reply, || {
        let due = visit.next_due.to_readable();
        console.print_line(&format!(
            "{} will be crawled at {due} or soon after",
            visit.domain
        ))
    })
}

async fn transfer_domain(
    name: &DomainArg,
    account: &str,
    client: &Client,
    console: &Console,
) -> CommandResult {
    let request = Transfer {
        account: account.to_owned(),
    };
    let reply = client.transfer(&name.domain, &request).await?;
    let domain = &reply.value.domain;
    console.print_result(&reply, || {
        console.print_line(&match reply.value.no_challenge {
            None => format!("{domain} now belongs to {account}, which must prove it"),
            Some(_) => format!("{domain} will belong to {account} once an admin vouches for it"),
        })
    })
}

async fn start_domain_generation(
    name: &DomainArg,
    reason: &str,
    client: &Client,
    console: &Console,
) -> CommandResult {
    let new = NewGeneration {
        reason: reason.to_owned(),
    };
    let reply = client.new_generation(&name.domain, &new).await?;
    let domain = &reply.value;
    console.print_result(&reply, || {
        console.print_line(&format!(
            "{} is in generation {}; its agents wait for decisions",
            domain.domain, domain.generation
        ))
    })
}

/// Enrols a key from a file, or withdraws it if no file is given.
async fn enrol_or_withdraw_key(
    name: &DomainArg,
    kid: &str,
    file: Option<&std::path::Path>,
    client: &Client,
    console: &Console,
) -> CommandResult {
    let Some(file) = file else {
        client.withdraw_key(&name.domain, kid).await?;
        return console.print_result(&json!({"domain": name.domain, "withdrawn": kid}), || {
            console.print_line(&format!("{kid} is withdrawn from {}", name.domain))
        });
    };
    let jwk = read_jwk(file, kid)?;
    let reply = client.enrol_key(&name.domain, kid, &jwk).await?;
    console.print_result(&reply, || {
        console.print_line(&format!("{kid} is enrolled for {}", reply.value.domain))
    })
}

/// Size limit of a file with keys, in bytes.
const MAX_JWK_FILE_BYTES: u64 = 64 * 1024;

/// Key of that name in a file with one key, or a set.
fn read_jwk(file: &std::path::Path, kid: &str) -> Result<Value, CommandError> {
    let key_error =
        |reason: String| CommandError::new(format!("{} cannot be used: {reason}", file.display()));
    let input: Box<dyn Read> = if file.as_os_str() == "-" {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(file).map_err(|error| key_error(error.to_string()))?)
    };
    let mut text = String::new();
    input
        .take(MAX_JWK_FILE_BYTES)
        .read_to_string(&mut text)
        .map_err(|error| key_error(error.to_string()))?;
    let value: Value = serde_json::from_str(&text).map_err(|error| key_error(error.to_string()))?;
    let Some(keys) = value.get("keys").and_then(Value::as_array) else {
        return Ok(value);
    };
    keys.iter()
        .find(|key| key["kid"] == kid)
        .cloned()
        .ok_or_else(|| key_error(format!("it contains no key {kid}")))
}

async fn verify_domain(name: &DomainArg, client: &Client, console: &Console) -> CommandResult {
    let reply = client.verify(&name.domain, &json!({})).await?;
    let Verification { domain, checks } = &reply.value;
    let is_proved = checks
        .iter()
        .any(|check| check.outcome == ProofOutcome::Held);
    console.print_result(&reply, || {
        for check in checks {
            console.print_line(&format!("{} at {}", check.outcome, check.place))?;
            console.print_line(&format!("  {}", check.sentence()))?;
        }
        console.print_line(&format!("{} is {}", domain.domain, domain.state))?;
        if !is_proved {
            for challenge in &domain.challenges {
                console.print_line(&format!("to publish: {}", describe_challenge(challenge)))?;
            }
        }
        Ok(())
    })?;
    Ok(CommandOutcome::done_if(is_proved))
}

async fn list_domains(page: &PageArgs, client: &Client, console: &Console) -> CommandResult {
    let reply = client.domains(page).await?;
    let list_format = ListFormat {
        command: "domain list",
        limit: page.limit,
        header: ["DOMAIN", "STATE", "AGENTS", "SOURCES"],
        empty_message: "no registered domain is visible to you; `a2a-registry register NAME` adds one",
    };
    let list = &reply.value;
    let next = list.next_page_token.as_deref();
    list_format.print_page(console, &reply, &list.domains, next, |domain| {
        [
            domain.domain.clone(),
            domain.state.to_string(),
            domain.agents.len().to_string(),
            format_source_states(&domain.sources),
        ]
    })
}

/// Number of sources by state: `3 fresh, 1 stale`. Absent catalogs are omitted, because most domains have none.
fn format_source_states(sources: &[SourceView]) -> String {
    let mut counts: BTreeMap<&OpenEnum<SourceState>, usize> = BTreeMap::new();
    for source in sources
        .iter()
        .filter(|source| source.state != SourceState::Absent)
    {
        *counts.entry(&source.state).or_default() += 1;
    }
    let counted = counts
        .iter()
        .map(|(state, count)| format!("{count} {state}"));
    counted.collect::<Vec<_>>().join(", ")
}
