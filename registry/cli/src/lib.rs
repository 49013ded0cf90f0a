//! Command line (docs/reference/command-line.md): one file for each command.
//!
//! Client commands call a registry over HTTP, on this machine or elsewhere. The exit code is 0 (done), 1 (negative
//! result) or 2 (wrong usage or failure). Every error is one line on standard error that says what to do; with
//! `--json` it is also a problem document on standard output.
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

mod account;
mod agent;
mod agent_credentials;
mod agent_resolution;
mod api_operations;
mod backup;
mod check;
mod client;
mod client_error;
mod collection;
mod command_error;
mod confirm;
mod console;
mod credentials;
mod demo;
mod doctor;
mod domain;
mod events;
mod export;
mod export_format;
mod fetch;
mod group;
mod help;
mod hook;
mod import;
mod inbox;
mod lint;
mod list_format;
mod log_format;
mod logging;
mod login;
mod maintenance;
mod mcp;
mod model;
mod name_parsing;
mod offline_args;
mod policy;
mod policy_apply;
mod policy_checks;
mod policy_files;
mod policy_preview;
mod program_name;
mod register;
mod review;
mod search;
mod send;
mod serve;
mod service_manager;
mod session;
mod show;
mod sign;
mod signals;
mod signature_text;
mod table;
mod task;
mod terminal;
mod token;
mod waiver;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};
use client::Client;
use command_error::{CommandError, CommandResult};
use console::{Console, report_command_result};

/// Default registry of client commands.
const DEFAULT_REGISTRY: &str = "http://127.0.0.1:8080";

/// Exit codes of every command and the place of the manual, for `--help`.
const EXIT_CODES_HELP: &str = "Exit codes: 0 done; 1 negative result (not found, an empty list, a card with errors, \
    a name without a card); 2 wrong usage, or a failure. An error is one line on standard error, and with --json a \
    problem document (RFC 9457) on standard output too.\n\n\
    Manual: open /manual/ of any registry, such as http://127.0.0.1:8080/manual/.";

/// Arguments of the program.
#[derive(Parser)]
#[command(
    name = "a2a-registry",
    version,
    about = "A registry of A2A agent cards: find agents by what they can do, and talk to them directly",
    arg_required_else_help = true,
    max_term_width = 100,
    after_help = EXIT_CODES_HELP
)]
struct Cli {
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(subcommand)]
    command: Command,
}

/// Options of every client command.
#[derive(Args)]
struct ConnectionArgs {
    /// URL of the registry
    #[arg(long, global = true, value_name = "URL", env = "A2A_REGISTRY_URL", default_value = DEFAULT_REGISTRY, help_heading = "Client options")]
    registry: String,
    /// Token to authenticate with [default: that of `login`]
    #[arg(
        long,
        global = true,
        env = "A2A_REGISTRY_TOKEN",
        hide_env_values = true,
        help_heading = "Client options"
    )]
    token: Option<String>,
    /// Abort a call to the registry after this many seconds without a response [default: 30; 300 for changes, and for
    /// reads that examine every agent]
    #[arg(
        long,
        global = true,
        value_name = "SECONDS",
        env = "A2A_REGISTRY_TIMEOUT",
        value_parser = clap::value_parser!(u64).range(1..=86_400),
        help_heading = "Client options"
    )]
    registry_timeout: Option<u64>,
    /// Print JSON as the registry returned it, and errors as problem documents. `serve` and `demo` print one line with
    /// their address as soon as they are ready
    #[arg(long, global = true, help_heading = "Client options")]
    json: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Start a registry with sample agents, accounts and reviews in a temporary folder
    Demo(demo::DemoArgs),
    /// Serve the registry: API, pages and crawler
    Serve(serve::ServeArgs),
    /// Register domains or cards, by name or URL
    Register(register::RegisterArgs),
    /// Show, prove, vouch for, recrawl or remove registered domains
    #[command(subcommand)]
    Domain(domain::DomainCommand),
    /// Search agents by text, skills, tags and more
    Search(Box<search::SearchArgs>),
    /// Show an agent, its card, its versions, its findings, or what changed
    Show(show::ShowArgs),
    /// Check from this machine whether an agent answers, without sending it a message
    Check(check::CheckArgs),
    /// Send a text to an agent and print its answer
    Send(Box<send::SendArgs>),
    /// Show, list, cancel or follow tasks of an agent
    #[command(subcommand)]
    Task(task::TaskCommand),
    /// Serve the registry's tools to a client of the Model Context Protocol, on standard input and output
    Mcp(mcp::McpArgs),
    /// Store credentials for agents that are called directly: sign in, list and remove
    #[command(subcommand)]
    Credentials(credentials::CredentialsCommand),
    /// Check agent cards; needs no registry
    Lint(lint::LintArgs),
    /// Sign an agent card with your own key; needs no registry
    Sign(sign::SignArgs),
    /// List and decide reviews
    #[command(subcommand)]
    Review(review::ReviewCommand),
    /// Suspend, resume, deprecate, report or retire an agent; set its visibility, its labels and its sponsor
    #[command(subcommand)]
    Agent(agent::AgentCommand),
    /// Create, list and revoke API tokens
    #[command(subcommand)]
    Token(token::TokenCommand),
    /// List and revoke sign-in sessions of the web pages
    #[command(subcommand)]
    Session(session::SessionCommand),
    /// List, show, create, change, disable and enable accounts
    #[command(subcommand)]
    Account(account::AccountCommand),
    /// List, show, set and delete groups of accounts
    #[command(subcommand)]
    Group(group::GroupCommand),
    /// List, show, set and delete collections of agents
    #[command(subcommand)]
    Collection(collection::CollectionCommand),
    /// Show, apply and test the policies that decide who can find and call agents
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    /// List, grant and end waivers, which exempt an agent's content from a policy
    #[command(subcommand)]
    Waiver(waiver::WaiverCommand),
    /// Create, list, confirm, test, replay and delete hooks, which notify your programs about agents and reviews
    #[command(subcommand)]
    Hook(hook::HookCommand),
    /// Watch an agent: your hooks created with `--watched` send a notice when it changes
    Watch(hook::WatchArgs),
    /// Export domains, sources, decisions, policies, labels, waivers, collections and groups as JSON Lines
    Export,
    /// Import what another registry has exported; what exists is compared and not changed
    Import(import::ImportArgs),
    /// Get a token for the registry in the browser, and keep it for later commands
    Login(login::LoginArgs),
    /// Revoke the token that `login` keeps for the registry
    Logout,
    /// Show the account of the token, and what it may do
    Whoami,
    /// Show what waits for you: reviews to decide, news of your agents, domains to prove
    Waiting(inbox::InboxArgs),
    /// List or export events: who did what, when, and with which content
    Events(events::EventsArgs),
    /// Install or show sentence encoders, which search by meaning needs
    #[command(subcommand)]
    Model(model::ModelCommand),
    /// Migrate the database to this program's schema
    Migrate(offline_args::OfflineArgs),
    /// Back up the registry to a folder, even while it is running
    Backup(backup::BackupArgs),
    /// Restore a backup into an empty database
    Restore(backup::RestoreArgs),
    /// Rebuild the search index
    Reindex(offline_args::OfflineArgs),
    /// Print the API description (`OpenAPI` 3.1)
    Openapi,
    /// Check configuration, secret files, data folder, database, DNS, identity providers, proxy and registry
    Doctor(doctor::DoctorArgs),
    /// Print completions for a shell
    Completions(maintenance::CompletionsArgs),
    /// Write a manual page for each command into a folder
    #[command(hide = true)]
    Man(maintenance::ManArgs),
}

/// Runs the command in these arguments, which begin with the program's name, and returns the exit code.
pub fn run_command_line(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => return report_usage_error(&error, &arguments),
    };
    let console = Console::new(cli.connection.json);
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            let failure = CommandError::new(format!("the runtime cannot be started: {error}"));
            return report_command_result(Err(failure), &console);
        }
    };
    let ended = runtime.block_on(Box::pin(run_cli(cli, &console)));
    let code = report_command_result(ended, &console);
    // Remaining work has had time to finish, unless a second signal ended the wait.
    runtime.shutdown_background();
    code
}

/// Whether `--json` is among arguments that could not be parsed.
fn wants_json(arguments: &[OsString]) -> bool {
    let options = arguments.iter().take_while(|argument| *argument != "--");
    options.into_iter().any(|argument| argument == "--json")
}

/// Prints help and version in full, and every other error as one line.
fn report_usage_error(error: &clap::Error, arguments: &[OsString]) -> ExitCode {
    let is_help_request = matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    );
    if is_help_request || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let help = help::requested_help(arguments);
        // If this cannot be written, the error cannot be reported either.
        let _ = help.as_ref().unwrap_or(error).print();
        return ExitCode::from(if is_help_request { 0 } else { 2 });
    }
    report_command_result(
        Err(CommandError::new(usage_error_line(&error.to_string()))),
        &Console::new(wants_json(arguments)),
    )
}

/// The parser's message without its usage section, which `--help` shows better.
fn usage_error_line(message: &str) -> String {
    let words: Vec<_> = message
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"))
        .filter(|line| !line.is_empty())
        .collect();
    let line = words.join(" ");
    let line = line.strip_prefix("error: ").unwrap_or(&line);
    format!("{line}; see --help")
}

fn connect_client(connection: &ConnectionArgs) -> Result<Client, CommandError> {
    let limit = connection.registry_timeout.map(Duration::from_secs);
    let stored_token = match &connection.token {
        Some(_) => None,
        None => login::find_stored_token(&connection.registry),
    };
    let token = connection.token.as_deref().or(stored_token.as_deref());
    Client::new(&connection.registry, token, limit)
}

async fn run_cli(cli: Cli, console: &Console) -> CommandResult {
    // `serve` and `demo` start logging on their own, as configured.
    if !matches!(cli.command, Command::Serve(_) | Command::Demo(_)) {
        logging::start_logging_if_requested()?;
    }
    dispatch_command(cli.command, &cli.connection, console).await
}

async fn dispatch_command(
    command: Command,
    connection: &ConnectionArgs,
    console: &Console,
) -> CommandResult {
    let client = || connect_client(connection);
    match command {
        Command::Serve(arguments) => serve::run_serve(arguments, console).await,
        Command::Demo(arguments) => demo::run_demo(arguments, console).await,
        Command::Lint(arguments) => lint::run_lint(&arguments, console).await,
        Command::Sign(arguments) => sign::run_sign(&arguments, console).await,
        Command::Model(command) => model::run_model(&command, console).await,
        Command::Migrate(arguments) => maintenance::migrate_database(&arguments, console).await,
        Command::Backup(arguments) => backup::run_backup(&arguments, console).await,
        Command::Restore(arguments) => backup::run_restore(&arguments, console).await,
        Command::Openapi => maintenance::print_openapi(console),
        Command::Completions(arguments) => maintenance::print_completions(&arguments, console),
        Command::Man(arguments) => maintenance::write_manual_pages(&arguments),
        Command::Token(token::TokenCommand::ResetAdmin(arguments)) => {
            token::reset_admin_token(&arguments, console).await
        }
        Command::Register(arguments) => {
            register::run_register(&arguments, &client()?, console).await
        }
        Command::Domain(command) => domain::run_domain(&command, &client()?, console).await,
        Command::Search(arguments) => search::run_search(&arguments, &client()?, console).await,
        Command::Show(arguments) => show::run_show(&arguments, &client()?, console).await,
        Command::Check(arguments) => check::run_check(&arguments, &client()?, console).await,
        Command::Send(arguments) => send::run_send(&arguments, &client()?, console).await,
        Command::Mcp(arguments) => mcp::run_mcp(&arguments, client()?).await,
        Command::Credentials(command) => {
            credentials::run_credentials(&command, &client()?, console).await
        }
        Command::Task(command) => task::run_task_command(&command, &client()?, console).await,
        Command::Review(command) => review::run_review_command(&command, &client()?, console).await,
        Command::Agent(command) => agent::run_agent(&command, &client()?, console).await,
        Command::Token(command) => token::run_token(&command, &client()?, console).await,
        Command::Session(command) => {
            session::run_session_command(&command, &client()?, console).await
        }
        Command::Account(command) => account::run_account(&command, &client()?, console).await,
        Command::Group(command) => group::run_group(&command, &client()?, console).await,
        Command::Collection(command) => {
            collection::run_collection(&command, &client()?, console).await
        }
        Command::Policy(command) => policy::run_policy(&command, &client()?, console).await,
        Command::Waiver(command) => waiver::run_waiver(&command, &client()?, console).await,
        Command::Hook(command) => hook::run_hook(&command, &client()?, console).await,
        Command::Watch(arguments) => hook::run_watch(&arguments, &client()?, console).await,
        Command::Export => export::run_export(&client()?, console).await,
        Command::Import(arguments) => import::run_import(&arguments, &client()?, console).await,
        Command::Login(arguments) => login::run_login(&arguments, &client()?, console).await,
        Command::Logout => login::run_logout(&client()?, console).await,
        Command::Whoami => account::whoami(&client()?, console).await,
        Command::Waiting(arguments) => inbox::run_inbox(&arguments, &client()?, console).await,
        Command::Events(arguments) => events::run_events(&arguments, &client()?, console).await,
        Command::Reindex(arguments) => {
            maintenance::rebuild_index(&arguments, &client()?, console).await
        }
        Command::Doctor(arguments) => doctor::run_doctor(&arguments, &client()?, console).await,
    }
}

#[cfg(test)]
mod tests;
