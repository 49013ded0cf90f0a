//! `domain`: what is registered, and what becomes of it.

use std::collections::BTreeMap;
use std::io::Read;

use a2a_registry_api::{DomainPatch, NewGeneration, Recrawl, SourceView, Transfer, Verification};
use a2a_registry_domain::open_enum::OpenEnum;
use a2a_registry_domain::ownership::ProofOutcome;
use a2a_registry_domain::source::SourceState;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::client::Client;
use super::console::Console;
use super::domain_removal;
use super::domain_show::show;
use super::domain_vouch::{self, VouchArgs};
use super::failure::{CommandOutcome, CommandResult, Failure};
use super::list::{Listing, PageArgs};
use super::register::placed;

/// What `domain` takes.
#[derive(Subcommand, Debug, Clone)]
pub enum DomainCommand {
    /// Show a domain on one screen: proofs, sources, why something is not listed, what is due
    Show {
        #[command(flatten)]
        name: DomainName,
        /// Show every stored fetch attempt, newest first
        #[arg(long)]
        attempts: bool,
    },
    /// List registered domains
    List(PageArgs),
    /// Vouch for a host as its operator, for a registrant of it, or for an account as its owner
    Vouch(VouchArgs),
    /// Crawl a domain as soon as possible
    Recrawl {
        #[command(flatten)]
        name: DomainName,
        /// Send unconditional requests, so that unchanged cards are fetched again too
        #[arg(long)]
        full: bool,
    },
    /// Remove a domain, or what you have registered of it; agents that nobody else has registered retire for good
    Rm {
        #[command(flatten)]
        name: DomainName,
        /// Withdraw your registration of this source only, given by its URL or id
        #[arg(long, value_name = "URL")]
        source: Option<String>,
        /// Do not ask for confirmation
        #[arg(long, short)]
        yes: bool,
    },
    /// Check your proofs of a domain now
    Verify(DomainName),
    /// Give a domain to another account
    Transfer {
        #[command(flatten)]
        name: DomainName,
        /// The account's name
        #[arg(long, value_name = "NAME")]
        account: String,
    },
    /// Start a new generation of a domain, because it has a new owner: proofs and keys are removed, and agents need a new approval
    NewGeneration {
        #[command(flatten)]
        name: DomainName,
        /// Reason, stored in the event log
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
    /// Enrol a key that signs a domain's cards, or withdraw it
    Key {
        #[command(flatten)]
        name: DomainName,
        /// Name of the key (`kid`) in signatures
        #[arg(value_name = "KID")]
        kid: String,
        /// The public key as a JWK, or a key set that holds it; `-` reads standard input
        #[arg(long, value_name = "FILE", required_unless_present = "withdraw")]
        jwk: Option<std::path::PathBuf>,
        /// Withdraw the key
        #[arg(long, conflicts_with = "jwk")]
        withdraw: bool,
    },
    /// Change a domain's contact, or whether it is listed at all
    Set {
        #[command(flatten)]
        name: DomainName,
        /// Contact for problems, a mailto: or https: URL; empty to remove it
        #[arg(long, value_name = "URL", required_unless_present = "opt_out")]
        contact: Option<String>,
        /// True to opt out: the domain and its agents are not listed
        #[arg(long, value_name = "BOOL")]
        opt_out: Option<bool>,
    },
}

/// A registered domain.
#[derive(Args, Debug, Clone)]
pub struct DomainName {
    /// The domain, as `host` or `host:port`
    #[arg(value_name = "DOMAIN")]
    pub(super) domain: String,
}

pub async fn run(command: &DomainCommand, client: &Client, console: &Console) -> CommandResult {
    match command {
        DomainCommand::Show { name, attempts } => {
            let reply = client.domain(&name.domain).await?;
            console.show(&reply, || show(console, &reply.value, *attempts))
        }
        DomainCommand::List(page) => list(page, client, console).await,
        DomainCommand::Vouch(arguments) => domain_vouch::run(arguments, client, console).await,
        DomainCommand::Recrawl { name, full } => recrawl(name, *full, client, console).await,
        DomainCommand::Rm { name, source, yes } => {
            domain_removal::run(&name.domain, source.as_deref(), *yes, client, console).await
        }
        DomainCommand::Verify(name) => verify(name, client, console).await,
        DomainCommand::Transfer { name, account } => transfer(name, account, client, console).await,
        DomainCommand::NewGeneration { name, reason } => {
            new_generation(name, reason, client, console).await
        }
        DomainCommand::Key { name, kid, jwk, .. } => {
            key(name, kid, jwk.as_deref(), client, console).await
        }
        DomainCommand::Set {
            name,
            contact,
            opt_out,
        } => {
            let patch = DomainPatch {
                contact: contact.clone(),
                opt_out: *opt_out,
            };
            let reply = client.patch_domain(&name.domain, &patch).await?;
            console.show(&reply, || show(console, &reply.value, false))
        }
    }
}

async fn recrawl(
    name: &DomainName,
    full: bool,
    client: &Client,
    console: &Console,
) -> CommandResult {
    let reply = client.recrawl(&name.domain, &Recrawl { full }).await?;
    let visit = &reply.value;
    console.show(&reply, || {
        let due = visit.next_due.to_readable();
        console.line(&format!(
            "{} is visited at {due} or soon after",
            visit.domain
        ))
    })
}

async fn transfer(
    name: &DomainName,
    account: &str,
    client: &Client,
    console: &Console,
) -> CommandResult {
    let to = Transfer {
        account: account.to_owned(),
    };
    let reply = client.transfer(&name.domain, &to).await?;
    let domain = &reply.value.domain;
    console.show(&reply, || {
        console.line(&match reply.value.no_challenge {
            None => format!("{domain} is {account}'s to prove now"),
            Some(_) => format!("{domain} is {account}'s once an admin vouches for that"),
        })
    })
}

async fn new_generation(
    name: &DomainName,
    reason: &str,
    client: &Client,
    console: &Console,
) -> CommandResult {
    let new = NewGeneration {
        reason: reason.to_owned(),
    };
    let reply = client.new_generation(&name.domain, &new).await?;
    let domain = &reply.value;
    console.show(&reply, || {
        console.line(&format!(
            "{} is in generation {}; its agents wait for decisions",
            domain.domain, domain.generation
        ))
    })
}

/// Names a key from a file, or takes it back where no file is given.
async fn key(
    name: &DomainName,
    kid: &str,
    file: Option<&std::path::Path>,
    client: &Client,
    console: &Console,
) -> CommandResult {
    let Some(file) = file else {
        client.withdraw_key(&name.domain, kid).await?;
        return console.show(&json!({"domain": name.domain, "withdrawn": kid}), || {
            console.line(&format!("{kid} counts for {} no more", name.domain))
        });
    };
    let jwk = jwk_in(file, kid)?;
    let reply = client.enrol_key(&name.domain, kid, &jwk).await?;
    console.show(&reply, || {
        console.line(&format!("{kid} counts for {} now", reply.value.domain))
    })
}

/// Bytes of a file with keys.
const KEY_FILE_LIMIT: u64 = 64 * 1024;

/// The key of that name in a file that holds one key, or a set.
fn jwk_in(file: &std::path::Path, kid: &str) -> Result<Value, Failure> {
    let failed =
        |reason: String| Failure::new(format!("{} cannot be used: {reason}", file.display()));
    let source: Box<dyn Read> = if file.as_os_str() == "-" {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(file).map_err(|error| failed(error.to_string()))?)
    };
    let mut text = String::new();
    source
        .take(KEY_FILE_LIMIT)
        .read_to_string(&mut text)
        .map_err(|error| failed(error.to_string()))?;
    let value: Value = serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
    let Some(keys) = value.get("keys").and_then(Value::as_array) else {
        return Ok(value);
    };
    keys.iter()
        .find(|key| key["kid"] == kid)
        .cloned()
        .ok_or_else(|| failed(format!("it holds no key {kid}")))
}

async fn verify(name: &DomainName, client: &Client, console: &Console) -> CommandResult {
    let reply = client.verify(&name.domain, &json!({})).await?;
    let Verification { domain, checks } = &reply.value;
    let proved = checks
        .iter()
        .any(|check| check.outcome == ProofOutcome::Held);
    console.show(&reply, || {
        for check in checks {
            console.line(&format!("{} at {}", check.outcome, check.place))?;
            console.line(&format!("  {}", check.sentence()))?;
        }
        console.line(&format!("{} is {}", domain.domain, domain.state))?;
        if !proved {
            for challenge in &domain.challenges {
                console.line(&format!("to publish: {}", placed(challenge)))?;
            }
        }
        Ok(())
    })?;
    Ok(CommandOutcome::done_if(proved))
}

async fn list(page: &PageArgs, client: &Client, console: &Console) -> CommandResult {
    let reply = client.domains(page).await?;
    let listing = Listing {
        command: "domain list",
        limit: page.limit,
        header: ["DOMAIN", "STATE", "AGENTS", "SOURCES"],
        empty: "no domain is registered that you may see; `a2a-registry register NAME` adds one",
    };
    let list = &reply.value;
    let next = list.next_page_token.as_deref();
    listing.show(console, &reply, &list.domains, next, |domain| {
        [
            domain.domain.clone(),
            domain.state.to_string(),
            domain.agents.len().to_string(),
            counted_states(&domain.sources),
        ]
    })
}

/// How many sources are in which state: `3 fresh, 1 stale`. Most domains have no catalog, which is no state to tell.
fn counted_states(sources: &[SourceView]) -> String {
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
