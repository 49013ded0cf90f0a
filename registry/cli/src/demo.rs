//! `demo`: a registry with three sample agents, ready to try.

use std::sync::Arc;
use std::time::Duration;

use a2a_crawler::SystemClock;
use a2a_registry_api::search_query::SearchQuery;
use a2a_registry_api::{AgentList, NewEndpointVouch, Registration};
use a2a_registry_core::config::{
    AllowPorts, CheckEndpoints, Config, LogConfig, RegistrationAccess as RegistrationPolicy,
};
use a2a_registry_core::embeddings::models::NO_MODEL;
use a2a_registry_demo::{SampleAgent, SampleAgents, start_sample_agents};
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};
use tokio::time::Instant;
use uuid::Uuid;

use super::client::Client;
use super::command_error::{CommandError, CommandResult};
use super::console::Console;
use super::serve::{
    RegistryServer, ServerConfigArgs, ServerRoles, print_server_stopped, read_bootstrap_token,
};
use super::signals::{HangupAction, ShutdownSignals};
use super::{DEFAULT_REGISTRY, logging, program_name};

/// Time limit for the sample agents to become searchable.
const SEARCHABLE_TIMEOUT: Duration = Duration::from_secs(30);
/// Time between two polls.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A question that shares its only telling word with the wrong agent, and is answered by its meaning.
const QUESTION: &str = "someone who brings cash along when I travel abroad";

/// Arguments of `demo`.
#[derive(Args, Debug, Clone)]
pub struct DemoArgs {
    #[command(flatten)]
    server: ServerConfigArgs,
}

/// Runs the demonstration until stopped.
pub async fn run_demo(arguments: DemoArgs, console: &Console) -> CommandResult {
    let mut config = arguments.server.load_config()?;
    // Kept until the end of this function, because dropping it removes the folder.
    let folder = match &arguments.server.data_dir {
        Some(_) => None,
        None => Some(use_temporary_folder(&mut config)?),
    };
    allow_local_agents(&mut config)?;
    if config.log.filter == LogConfig::default().filter {
        config.log.filter = "warn".to_owned();
    }
    logging::start_logging(&config.log, None)?;
    let question = (config.search.model != NO_MODEL).then_some(QUESTION);
    let mut signals = ShutdownSignals::listen(HangupAction::Ends)?;
    let mut server = RegistryServer::start(config, ServerRoles::ALL, None)
        .await
        .map_err(add_port_hint)?;
    let agents = start_sample_agents(Arc::new(SystemClock))
        .await
        .map_err(|error| {
            CommandError::new(format!("the sample agents cannot be started: {error}"))
        })?;
    let (url, token) = (server.url.clone(), server.admin_token.clone());
    let outcome = tokio::select! {
        outcome = register_and_present_samples(&url, token, &agents, question, console) => outcome,
        ended = server.wait_for_end() => ended.and_then(|_| {
            Err(CommandError::new("the server ended unexpectedly; see its log"))
        }),
        () = signals.wait_for_signal() => Ok(()),
    };
    let stopped = match server.stop(&mut signals).await {
        Err(CommandError::Interrupted) => Err(CommandError::Interrupted),
        stopped => {
            agents.stop().await;
            stopped
        }
    };
    drop(folder);
    outcome.and(stopped)?;
    print_server_stopped(console)
}

fn use_temporary_folder(config: &mut Config) -> Result<tempfile::TempDir, CommandError> {
    let folder = tempfile::Builder::new()
        .prefix("a2a-registry-demo-")
        .tempdir()
        .map_err(|error| {
            CommandError::new(format!(
                "a temporary folder cannot be created: {error}; set TMPDIR, or give --data-dir"
            ))
        })?;
    config.store.data_dir = folder.path().to_owned();
    Ok(folder)
}

/// Lets the registry reach agents on this machine, and approves them.
fn allow_local_agents(config: &mut Config) -> Result<(), CommandError> {
    let loopback = "127.0.0.0/8"
        .parse()
        .map_err(|error| CommandError::new(format!("127.0.0.0/8 is not a network: {error}")))?;
    config.crawler.allow_networks.push(loopback);
    config.crawler.allow_http = true;
    config.crawler.allow_ports = AllowPorts::Word("any".to_owned());
    config.governance.registration = RegistrationPolicy::Token;
    config.governance.approve_all = true;
    config.crawler.check_endpoints = CheckEndpoints::Vouched;
    Ok(())
}

/// Adds the command for another port to the error for a port in use.
fn add_port_hint(error: CommandError) -> CommandError {
    match error {
        CommandError::Failed(line) if line.contains("in use") => CommandError::Failed(format!(
            "{line}; for the demonstration: {} demo --listen 127.0.0.1:0",
            program_name::program_name()
        )),
        other => other,
    }
}

/// Registers the agents over the socket, waits until they are searchable, prints what to try, and then waits for the
/// end of the process.
async fn register_and_present_samples(
    url: &str,
    admin_token: Option<String>,
    agents: &SampleAgents,
    question: Option<&str>,
    console: &Console,
) -> Result<(), CommandError> {
    let token = match admin_token {
        Some(token) => Some(token),
        None => read_bootstrap_token()?,
    };
    let token = token.ok_or_else(|| {
        CommandError::new(
            "the data folder is from an earlier start, and its admin token is unknown; give \
             it in A2A_REGISTRY_BOOTSTRAP_TOKEN, or omit --data-dir",
        )
    })?;
    let client = Client::new(url, Some(&token), None)?;
    let progress = ProgressBar::new(agents.agents.len() as u64);
    progress.set_draw_target(ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{spinner} {pos}/{len} {msg}") {
        progress.set_style(style);
    }
    progress.enable_steady_tick(Duration::from_millis(100));
    let mut agent_ids = Vec::new();
    for agent in &agents.agents {
        progress.set_message(format!("registering {} ({})", agent.name, agent.protocol));
        agent_ids.push(register_sample(&client, agent).await?);
        progress.inc(1);
    }
    progress.finish_and_clear();
    let named = agents.agents.iter().zip(&agent_ids);
    let named: Vec<Value> = named
        .map(|(agent, id)| json!({"id": id, "name": agent.name, "speaks": agent.protocol}))
        .collect();
    let document = json!({
        "state": "serving", "url": url, "admin_token": token, "agents": named
    });
    console.print_result(&document, || {
        print_demo_next_steps(url, &token, agents, &agent_ids, question, console)
    })?;
    std::future::pending().await
}

/// Prints the agents, and commands that work as printed.
fn print_demo_next_steps(
    url: &str,
    token: &str,
    agents: &SampleAgents,
    agent_ids: &[Uuid],
    question: Option<&str>,
    console: &Console,
) -> Result<(), CommandError> {
    for (agent, id) in agents.agents.iter().zip(agent_ids) {
        console.print_line(&format!("  {:<18} {:<32} {id}", agent.name, agent.protocol))?;
    }
    let options = registry_command_flags(url, token);
    let program = program_name::program_name();
    console.print_line("")?;
    console.print_line(&format!("admin token: {token}"))?;
    console.print_line("Try in another terminal:")?;
    if let (Some(agent), Some(id)) = (agents.agents.last(), agent_ids.last()) {
        console.print_line(&format!("  {program} search{options} trip"))?;
        if let Some(question) = question.map(program_name::shell_quote) {
            console.print_line(&format!("  {program} search{options} {question}"))?;
        }
        console.print_line(&format!("  {program} show{options} {id}"))?;
        let text = program_name::shell_quote(agent.example);
        console.print_line(&format!("  {program} send{options} {id} {text}"))?;
    }
    console.print_line("")?;
    console.print_line(&format!(
        "listening on {url} (Ctrl-C ends it and removes everything)"
    ))
}

/// Options with which a command calls this registry anonymously. Without them, it would use another registry's
/// settings from the environment.
fn registry_command_flags(url: &str, token: &str) -> String {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let mut options = String::new();
    let usual = variable("A2A_REGISTRY_URL");
    if url != usual.as_deref().unwrap_or(DEFAULT_REGISTRY) {
        options.push_str(&format!(" --registry {url}"));
    }
    if variable("A2A_REGISTRY_TOKEN").is_some_and(|value| value != token) {
        options.push_str(" --token ''");
    }
    options
}

/// Registers one agent and waits until a search finds it. Returns its id.
async fn register_sample(client: &Client, agent: &SampleAgent) -> Result<Uuid, CommandError> {
    let registration = Registration {
        domain: None,
        card_url: Some(agent.card_url.clone()),
        approve: false,
    };
    let registered = client.register(&registration).await?.value;
    let vouch = NewEndpointVouch {
        reason: "a sample agent on this machine".to_owned(),
    };
    client
        .vouch_for_endpoints(&registered.domain, &vouch)
        .await?;
    let query = SearchQuery {
        domain: vec![registered.domain.clone()],
        ..SearchQuery::default()
    };
    let deadline = Instant::now() + SEARCHABLE_TIMEOUT;
    loop {
        let hits = client.search::<AgentList>(&query).await?.value.agents;
        if let Some(hit) = hits.first() {
            return Ok(hit.summary.id);
        }
        if Instant::now() >= deadline {
            let domain = client.domain(&registered.domain).await?.value;
            let detail = domain
                .sources
                .into_iter()
                .find_map(|source| Some(source.last_attempt?.detail))
                .unwrap_or_else(|| "it was not crawled yet".to_owned());
            return Err(CommandError::new(format!(
                "{} was registered, but is not searchable after {} s: {detail}",
                agent.name,
                SEARCHABLE_TIMEOUT.as_secs()
            )));
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
