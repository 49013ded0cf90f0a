//! `demo`: a registry that shows everything a registry can show, ready to try.

mod content;
mod governance;

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use a2a_crawler::dns::{EmptyResolver, HickoryResolver, Resolver};
use a2a_crawler::fetch::FetchLimits;
use a2a_crawler::{Clock as _, SystemClock};
use a2a_registry_core::config::{
    CheckEndpoints, Config, LogConfig, RegistrationAccess as RegistrationPolicy,
};
use a2a_registry_core::embeddings::models::NO_MODEL;
use a2a_registry_demo::{NamedHosts, SampleAgents, start_all_sample_agents};
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use self::content::{ContentMaker, DemoContent, host_names};
use self::governance::{DRY_RUN_POLICY, fill_dry_run, set_collection_and_policies};
use super::command_error::{CommandError, CommandResult};
use super::console::Console;
use super::login::find_stored_token;
use super::serve::{
    RegistryServer, ServerConfigArgs, ServerRoles, allow_local_agents, print_server_stopped,
    read_bootstrap_token,
};
use super::signals::{HangupAction, ShutdownSignals};
use super::{DEFAULT_REGISTRY, logging, program_name};

/// A question that shares its only telling word with the wrong agent, and is answered by its meaning.
const QUESTION: &str = "someone who brings cash along when I travel abroad";
/// The agent of the commands that are printed.
const SHOWN_AGENT: &str = "Trip Planner";

/// Arguments of `demo`.
#[derive(Args, Debug, Clone)]
pub struct DemoArgs {
    #[command(flatten)]
    server: ServerConfigArgs,
}

/// Runs the demonstration until stopped.
pub async fn run_demo(arguments: DemoArgs, console: &Console) -> CommandResult {
    let mut config = arguments.server.load_config()?;
    allow_local_agents(&mut config, "demo")?;
    // Kept until the end of this function, because dropping it removes the folder.
    let folder = match &arguments.server.data_dir {
        Some(_) => None,
        None => Some(use_temporary_folder(&mut config)?),
    };
    config.governance.registration = RegistrationPolicy::Token;
    config.crawler.check_endpoints = CheckEndpoints::Vouched;
    if config.log.filter == LogConfig::default().filter {
        config.log.filter = "warn".to_owned();
    }
    logging::start_logging(&config.log, None)?;
    let question = (config.search.model != NO_MODEL).then_some(QUESTION);
    let mut signals = ShutdownSignals::listen(HangupAction::Ends)?;
    let (samples, hosts) = start_agents().await?;
    // Only the certificate is written, and only until the registry has read it.
    let authority = write_authority(&hosts)?;
    config.crawler.extra_ca.push(authority.path().to_owned());
    let overrides = hosts.connect_overrides().map(|one| one.to_string());
    config.crawler.connect.extend(overrides);
    let resolver = hosts.resolver(system_resolver());
    let mut server = RegistryServer::start(config, ServerRoles::ALL, None, Some(resolver))
        .await
        .map_err(add_port_hint)?;
    drop(authority);
    let (url, token) = (server.url.clone(), server.admin_token.clone());
    let context = server.context();
    let maker = ContentMaker {
        context: &context,
        url: &url,
        hosts: &hosts,
        samples: &samples,
        approves_all: server.approve_all,
    };
    let outcome = tokio::select! {
        outcome = present_content(&maker, token, question, console) => outcome,
        ended = server.wait_for_end() => ended.and_then(|_| {
            Err(CommandError::new("the server ended unexpectedly; see its log"))
        }),
        () = signals.wait_for_signal() => Ok(()),
    };
    drop(context);
    let stopped = server.stop(&mut signals).await;
    if !matches!(stopped, Err(CommandError::Interrupted)) {
        samples.stop().await;
        hosts.stop().await;
    }
    drop(folder);
    outcome.and(stopped)?;
    print_server_stopped(console)
}

async fn start_agents() -> Result<(SampleAgents, NamedHosts), CommandError> {
    let start_error = |error: std::io::Error| {
        CommandError::new(format!("the sample agents cannot be started: {error}"))
    };
    let samples = start_all_sample_agents(Arc::new(SystemClock))
        .await
        .map_err(start_error)?;
    let hosts = NamedHosts::start(&host_names(), SystemClock.now())
        .await
        .map_err(start_error)?;
    Ok((samples, hosts))
}

fn write_authority(hosts: &NamedHosts) -> Result<NamedTempFile, CommandError> {
    let write = || {
        let mut file = NamedTempFile::with_prefix("a2a-registry-demo-authority-")?;
        file.write_all(hosts.authority_pem().as_bytes())?;
        Ok(file)
    };
    write().map_err(|error: std::io::Error| {
        CommandError::new(format!(
            "a temporary file cannot be written: {error}; set TMPDIR"
        ))
    })
}

/// Resolver for all names but those of the samples; the demonstration works without a network too.
fn system_resolver() -> Arc<dyn Resolver> {
    match HickoryResolver::from_system(FetchLimits::default().dns) {
        Ok(resolver) => Arc::new(resolver),
        Err(error) => {
            tracing::warn!(%error, "DNS cannot be used: only the names of the sample agents are resolved");
            Arc::new(EmptyResolver)
        }
    }
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

/// Makes the content, prints what to try, and then waits for the end of the process.
async fn present_content(
    maker: &ContentMaker<'_>,
    admin_token: Option<String>,
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
    let progress = new_progress_bar();
    let report = |step: &str| progress.set_message(step.to_owned());
    let content = maker.make(&token, report).await?;
    if !content.agents.is_empty() {
        progress.set_message("setting collection and policies");
        set_collection_and_policies(maker.url, &token).await?;
        maker.finish()?;
    }
    progress.finish_and_clear();
    console.print_result(&content_json(maker.url, &token, &content), || {
        print_accounts(maker.url, &token, &content, console)?;
        print_next_steps(maker.url, &token, &content, question, console)
    })?;
    if !content.agents.is_empty()
        && let Err(error) = fill_dry_run(&content, maker.url).await
    {
        tracing::warn!(?error, "the policy on a dry run has no results");
    }
    std::future::pending().await
}

fn new_progress_bar() -> ProgressBar {
    let progress = ProgressBar::new_spinner();
    progress.set_draw_target(ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
        progress.set_style(style);
    }
    progress.enable_steady_tick(Duration::from_millis(100));
    progress
}

fn content_json(url: &str, token: &str, content: &DemoContent) -> Value {
    let agents = content.agents.iter().map(|agent| {
        json!({
            "id": agent.id, "name": agent.sample.name, "speaks": agent.sample.protocol,
            "shows": agent.state,
        })
    });
    let accounts = content.accounts.iter().map(
        |account| json!({"name": account.name, "token": account.token, "sign_in": account.sign_in}),
    );
    json!({
        "state": "serving", "url": url, "admin_token": token,
        "accounts": accounts.collect::<Vec<_>>(), "agents": agents.collect::<Vec<_>>(),
    })
}

/// Prints the address of the pages, and how to sign in.
fn print_accounts(
    url: &str,
    token: &str,
    content: &DemoContent,
    console: &Console,
) -> Result<(), CommandError> {
    console.print_line(&format!(
        "listening on {url} (Ctrl-C ends it, and removes its temporary folder)"
    ))?;
    console.print_line("")?;
    console.print_line("Sign in as (each link once, within ten minutes):")?;
    for account in &content.accounts {
        console.print_line(&format!("  {:<10} {}", account.name, account.sign_in))?;
    }
    console.print_line(&format!("admin token: {token}"))?;
    if !content.agents.is_empty() {
        console.print_line("")?;
        console.print_line("Agents:")?;
    }
    for agent in &content.agents {
        let (name, speaks) = (agent.sample.name, agent.sample.protocol);
        console.print_line(&format!("  {name:<17} {speaks:<32} {}", agent.state))?;
    }
    Ok(())
}

/// Prints commands that work as printed, and where to look.
fn print_next_steps(
    url: &str,
    token: &str,
    content: &DemoContent,
    question: Option<&str>,
    console: &Console,
) -> Result<(), CommandError> {
    let options = registry_command_flags(url, token);
    let program = program_name::program_name();
    let mut agents = content.agents.iter();
    console.print_line("")?;
    if let Some(agent) = agents.find(|agent| agent.sample.name == SHOWN_AGENT) {
        let id = agent.id;
        console.print_line("Try in another terminal:")?;
        console.print_line(&format!("  {program} search{options} trip"))?;
        if let Some(question) = question.map(program_name::shell_quote) {
            console.print_line(&format!("  {program} search{options} {question}"))?;
        }
        console.print_line(&format!("  {program} show{options} {id}"))?;
        let text = program_name::shell_quote(agent.sample.example);
        console.print_line(&format!("  {program} send{options} {id} {text}"))?;
        console.print_line("")?;
        console.print_line("Look at, signed in as curator:")?;
        for path in [
            "/reviews".to_owned(),
            "/collections/travel".to_owned(),
            format!("/policies/{DRY_RUN_POLICY}/dry-run"),
        ] {
            console.print_line(&format!("  {url}{path}"))?;
        }
        console.print_line("")?;
    }
    console.print_line(&format!(
        "An agent of your own, on this machine too: {url}/register, or with the admin token in A2A_REGISTRY_TOKEN: \
         {program} register --registry {url} --approve URL-OF-ITS-CARD"
    ))
}

/// Options with which a command calls this registry anonymously. Without them, it would use another registry's
/// settings from the environment, or an earlier login.
fn registry_command_flags(url: &str, token: &str) -> String {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let mut options = String::new();
    let usual = variable("A2A_REGISTRY_URL");
    if url != usual.as_deref().unwrap_or(DEFAULT_REGISTRY) {
        options.push_str(&format!(" --registry {url}"));
    }
    let other_token = variable("A2A_REGISTRY_TOKEN").is_some_and(|value| value != token);
    if other_token || find_stored_token(url).is_some() {
        options.push_str(" --token ''");
    }
    options
}
