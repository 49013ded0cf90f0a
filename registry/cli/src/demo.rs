//! `demo`: a registry and three sample agents, ready to be tried.

use std::sync::Arc;
use std::time::Duration;

use a2a_crawler::SystemClock;
use a2a_registry_api::{AgentList, Registration};
use a2a_registry_core::config::{
    AllowPorts, Config, LogConfig, Registration as RegistrationPolicy,
};
use a2a_registry_core::search::query::SearchQuery;
use a2a_registry_demo::{SampleAgent, SampleAgents, start_agents};
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};
use tokio::time::Instant;
use uuid::Uuid;

use super::client::Client;
use super::console::Console;
use super::failure::{CommandResult, Failure};
use super::serve::{Roles, Server, ServerArgs, announce_end, bootstrap_token};
use super::signals::{EndSignals, Hangup};
use super::{DEFAULT_REGISTRY, invocation, logging};

/// How long the sample agents may take to become searchable.
const PATIENCE: Duration = Duration::from_secs(30);
/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(100);

/// What `demo` takes.
#[derive(Args, Debug, Clone)]
pub struct DemoArgs {
    #[command(flatten)]
    server: ServerArgs,
}

/// Runs the demonstration until asked to end.
pub async fn run(arguments: DemoArgs, console: &Console) -> CommandResult {
    let mut config = arguments.server.load()?;
    // Kept until the end of this function: dropping it removes the folder.
    let folder = match &arguments.server.data_dir {
        Some(_) => None,
        None => Some(temporary_folder(&mut config)?),
    };
    relax(&mut config)?;
    if config.log.filter == LogConfig::default().filter {
        config.log.filter = "warn".to_owned();
    }
    logging::start(&config.log)?;
    let mut signals = EndSignals::listen(Hangup::Ends)?;
    let mut server = Server::start(config, Roles::ALL).await.map_err(demo_port)?;
    let agents = start_agents(Arc::new(SystemClock))
        .await
        .map_err(|error| Failure::new(format!("the sample agents cannot be started: {error}")))?;
    let (url, token) = (server.url.clone(), server.admin_token.clone());
    let outcome = tokio::select! {
        outcome = present(&url, token, &agents, console) => outcome,
        ended = server.ended() => ended.and_then(|()| {
            Err(Failure::new("the server ended by itself; its log says more"))
        }),
        () = signals.next() => Ok(()),
    };
    let stopped = match server.stop(&mut signals).await {
        Err(Failure::Interrupted) => Err(Failure::Interrupted),
        stopped => {
            agents.stop().await;
            stopped
        }
    };
    drop(folder);
    outcome.and(stopped)?;
    announce_end(console)
}

fn temporary_folder(config: &mut Config) -> Result<tempfile::TempDir, Failure> {
    let folder = tempfile::Builder::new()
        .prefix("a2a-registry-demo-")
        .tempdir()
        .map_err(|error| {
            Failure::new(format!(
                "no temporary folder can be made: {error}; set TMPDIR, or give --data-dir"
            ))
        })?;
    config.store.data_dir = folder.path().to_owned();
    Ok(folder)
}

/// Lets the registry reach agents on this machine, and approves them.
fn relax(config: &mut Config) -> Result<(), Failure> {
    let loopback = "127.0.0.0/8"
        .parse()
        .map_err(|error| Failure::new(format!("127.0.0.0/8 is no network: {error}")))?;
    config.crawler.allow_networks.push(loopback);
    config.crawler.allow_http = true;
    config.crawler.allow_ports = AllowPorts::Word("any".to_owned());
    config.governance.registration = RegistrationPolicy::Token;
    config.governance.approve_all = true;
    Ok(())
}

/// The line for a taken port names the command that is at hand.
fn demo_port(failure: Failure) -> Failure {
    match failure {
        Failure::Failed(line) if line.contains("in use") => Failure::Failed(format!(
            "{line}; for the demonstration: {} demo --listen 127.0.0.1:0",
            invocation::program()
        )),
        other => other,
    }
}

/// Registers the agents over the socket, waits until they are found, says what to try, and then waits
/// for the end of the process.
async fn present(
    url: &str,
    admin_token: Option<String>,
    agents: &SampleAgents,
    console: &Console,
) -> Result<(), Failure> {
    let token = match admin_token {
        Some(token) => Some(token),
        None => bootstrap_token()?,
    };
    let token = token.ok_or_else(|| {
        Failure::new(
            "the data folder was made by an earlier start, whose admin token is not known here; give \
             it in A2A_REGISTRY_BOOTSTRAP_TOKEN, or leave --data-dir out",
        )
    })?;
    let client = Client::new(url, Some(&token), None)?;
    let progress = ProgressBar::new(agents.agents.len() as u64);
    progress.set_draw_target(ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{spinner} {pos}/{len} {msg}") {
        progress.set_style(style);
    }
    progress.enable_steady_tick(Duration::from_millis(100));
    let mut found = Vec::new();
    for agent in &agents.agents {
        progress.set_message(format!("registering {} ({})", agent.name, agent.speaks));
        found.push(take_up(&client, agent).await?);
        progress.inc(1);
    }
    progress.finish_and_clear();
    let named = agents.agents.iter().zip(&found);
    let named: Vec<Value> = named
        .map(|(agent, id)| json!({"id": id, "name": agent.name, "speaks": agent.speaks}))
        .collect();
    let document = json!({
        "state": "serving", "url": url, "admin_token": token, "agents": named
    });
    console.show(&document, || {
        say_what_to_try(url, &token, agents, &found, console)
    })?;
    std::future::pending().await
}

/// Lists the agents, and commands that work as they are printed.
fn say_what_to_try(
    url: &str,
    token: &str,
    agents: &SampleAgents,
    found: &[Uuid],
    console: &Console,
) -> Result<(), Failure> {
    for (agent, id) in agents.agents.iter().zip(found) {
        console.line(&format!("  {:<18} {:<32} {id}", agent.name, agent.speaks))?;
    }
    let options = registry_options(url, token);
    let program = invocation::program();
    console.line("")?;
    console.line(&format!("admin token: {token}"))?;
    console.line("Try in another terminal:")?;
    if let (Some(agent), Some(id)) = (agents.agents.last(), found.last()) {
        console.line(&format!("  {program} search{options} trip"))?;
        console.line(&format!("  {program} show{options} {id}"))?;
        let text = invocation::quote(agent.example);
        console.line(&format!("  {program} send{options} {id} {text}"))?;
    }
    console.line("")?;
    console.line(&format!(
        "listening on {url} (Ctrl-C ends it and removes everything)"
    ))
}

/// The options with which a command asks this registry as anybody. Whoever has another registry's settings in the
/// environment would otherwise ask that one.
fn registry_options(url: &str, token: &str) -> String {
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let mut options = String::new();
    let usual = set("A2A_REGISTRY_URL");
    if url != usual.as_deref().unwrap_or(DEFAULT_REGISTRY) {
        options.push_str(&format!(" --registry {url}"));
    }
    if set("A2A_REGISTRY_TOKEN").is_some_and(|value| value != token) {
        options.push_str(" --token ''");
    }
    options
}

/// Registers one agent and waits until a search finds it. Gives its id.
async fn take_up(client: &Client, agent: &SampleAgent) -> Result<Uuid, Failure> {
    let what = Registration {
        domain: None,
        card_url: Some(agent.card_url.clone()),
        approve: false,
    };
    let registered = client.register(&what).await?.value;
    let query = SearchQuery {
        domain: vec![registered.domain.clone()],
        ..SearchQuery::default()
    };
    let deadline = Instant::now() + PATIENCE;
    loop {
        let found = client.search::<AgentList>(&query).await?.value.agents;
        if let Some(hit) = found.first() {
            return Ok(hit.summary.id);
        }
        if Instant::now() >= deadline {
            let seen = client.domain(&registered.domain).await?.value;
            let detail = seen
                .sources
                .into_iter()
                .find_map(|source| Some(source.last_attempt?.detail))
                .unwrap_or_else(|| "it was not visited yet".to_owned());
            return Err(Failure::new(format!(
                "{} was registered and is not found after {} s: {detail}",
                agent.name,
                PATIENCE.as_secs()
            )));
        }
        tokio::time::sleep(PAUSE).await;
    }
}
