//! `check`: asks an agent directly whether it answers, as the registry's own check does.

use std::sync::Arc;

use a2a_crawler::SystemClock;
use a2a_crawler::dns::HickoryResolver;
use a2a_crawler::endpoint_check::{EndpointAddress, EndpointCheck, EndpointVerdict};
use a2a_crawler::fetch::{FetchLimits, Fetcher, FetcherConfig};
use a2a_crawler::guard::{GuardConfig, SsrfGuard};
use a2a_registry_api::Agent;
use clap::Args;
use serde_json::{Value, json};

use super::client::Client;
use super::command_error::{CommandError, CommandOutcome, CommandResult};
use super::console::Console;
use super::table;

/// Arguments of `check`.
#[derive(Args, Debug, Clone)]
pub struct CheckArgs {
    /// The agent: its id, URN, card URL, endpoint URL, host or name
    #[arg(value_name = "AGENT")]
    agent: String,
}

/// Asks the agent for a task that does not exist. The result is negative unless it answers or wants credentials.
pub async fn run_check(arguments: &CheckArgs, client: &Client, console: &Console) -> CommandResult {
    let hit = client.find_agent_to_show(&arguments.agent).await?;
    let agent = client.agent(hit.summary.id).await?.value;
    let address = EndpointAddress::from_card(&agent.card)
        .into_iter()
        .next()
        .ok_or_else(|| {
            CommandError::new(format!(
                "the card of {} lists no interface that can be checked",
                agent.card.name
            ))
        })?;
    let check = new_fetcher()?.check_endpoint(&address).await;
    console.print_result(&check_document(&agent, &address, &check), || {
        table::print_fields(console, &check_fields(&agent, &address, &check))
    })?;
    let responds = matches!(
        check.verdict,
        EndpointVerdict::Answers | EndpointVerdict::NeedsCredentials
    );
    Ok(CommandOutcome::done_if(responds))
}

/// A fetcher for requests from the user's own machine, which reaches whatever the user can reach.
fn new_fetcher() -> Result<Fetcher, CommandError> {
    let limits = FetchLimits::default();
    let resolver = HickoryResolver::from_system(limits.dns)
        .map_err(|error| CommandError::new(format!("DNS cannot be set up: {error}")))?;
    let config = FetcherConfig {
        guard: SsrfGuard::new(GuardConfig::unrestricted()),
        limits,
        contact_url: None,
        extra_ca: Vec::new(),
        key_hosts: Vec::new(),
    };
    Fetcher::new(config, Arc::new(resolver), Arc::new(SystemClock))
        .map_err(|error| CommandError::new(error.to_string()))
}

fn check_document(agent: &Agent, address: &EndpointAddress, check: &EndpointCheck) -> Value {
    json!({
        "agent": agent.hit.summary.id,
        "url": address.url.as_str(),
        "binding": address.form.binding(),
        "state": check.verdict.as_str(),
        "reason": check.reason,
        "auth_scheme": check.auth_scheme,
        "status": check.status,
        "elapsed_ms": elapsed_ms(check),
    })
}

fn check_fields(
    agent: &Agent,
    address: &EndpointAddress,
    check: &EndpointCheck,
) -> Vec<(&'static str, String)> {
    let binding = address.form.binding();
    vec![
        ("agent", agent.card.name.clone()),
        ("id", agent.hit.summary.id.to_string()),
        ("address", format!("{} ({binding})", address.url)),
        ("state", check.verdict.as_str().replace('_', " ")),
        ("reason", check.reason.clone()),
        ("scheme", check.auth_scheme.clone().unwrap_or_default()),
        (
            "status",
            check
                .status
                .map_or_else(String::new, |status| status.to_string()),
        ),
        ("time", format!("{} ms", elapsed_ms(check))),
    ]
}

fn elapsed_ms(check: &EndpointCheck) -> u64 {
    u64::try_from(check.elapsed.as_millis()).unwrap_or(u64::MAX)
}
