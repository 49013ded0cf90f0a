//! `serve`: the registry itself.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use a2a_crawler::SystemClock;
use a2a_registry_core::config::{self, Config, Overrides, read_secret_file};
use a2a_registry_core::context::AppContext;
use a2a_registry_core::file_descriptors::DescriptorBudget;
use a2a_registry_core::metrics::Metrics;
use a2a_registry_core::network::Network;
use a2a_registry_domain::identifiers::SystemEntropy;
use a2a_registry_server::jobs::{self, JobOptions, ModelSource};
use a2a_registry_server::serve as server;
use a2a_registry_server::serve::Listeners;
use a2a_registry_server::startup::{self, BOOTSTRAP_TOKEN_FILE_VAR, BOOTSTRAP_TOKEN_VAR};
use clap::{Args, ValueEnum};
use futures::FutureExt;
use serde_json::json;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::command_error::{CommandError, CommandOutcome, CommandResult};
use super::console::Console;
use super::signals::{HangupAction, ShutdownSignals};
use super::{logging, terminal};

/// How long everything together may take to end once it was asked to.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// What `serve` and `demo` take.
#[derive(Args, Debug, Clone, Default)]
pub struct ServerConfigArgs {
    /// Read the configuration from this TOML file
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Address and port to listen on; port 0 takes a free one [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Option<SocketAddr>,
    /// Folder for the lock, the index and, with SQLite, the database
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// `sqlite:…` or `postgres://…` [default: SQLite in the data folder]
    #[arg(long, value_name = "URL")]
    pub database: Option<String>,
    /// The URL under which others reach the registry [default: `http://<listen>`]
    #[arg(long, value_name = "URL")]
    pub public_url: Option<String>,
    /// Approve every registered card that is not forbidden
    #[arg(long)]
    pub approve_all: bool,
}

impl ServerConfigArgs {
    /// The configuration these arguments lead to.
    ///
    /// # Errors
    /// With every mistake in it.
    pub fn load_config(&self) -> Result<Config, CommandError> {
        let overrides = Overrides {
            listen: self.listen,
            data_dir: self.data_dir.clone(),
            database: self.database.clone(),
            public_url: self.public_url.clone(),
            approve_all: self.approve_all,
        };
        Ok(config::load_config(self.config.as_ref(), &overrides)?)
    }
}

/// What `serve` takes.
#[derive(Args, Debug, Clone)]
pub struct ServeArgs {
    #[command(flatten)]
    server: ServerConfigArgs,
    /// What this process does; to split, several processes share one PostgreSQL database
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "ROLES",
        default_value = "api,crawler"
    )]
    roles: Vec<ServerRole>,
    /// Print the configuration in force as TOML, and end
    #[arg(long)]
    print_config: bool,
}

/// A part of the registry that a process may do alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ServerRole {
    /// Answers requests, and keeps the index that searches need.
    Api,
    /// Fetches cards.
    Crawler,
}

/// Which parts a process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerRoles {
    /// API, pages and index.
    pub api: bool,
    pub crawler: bool,
}

impl ServerRoles {
    /// Everything in one process.
    pub const ALL: Self = Self {
        api: true,
        crawler: true,
    };

    /// The names of the parts, as `--roles` takes them.
    fn names(self) -> Vec<&'static str> {
        let parts = [(self.api, "api"), (self.crawler, "crawler")];
        let done = parts.into_iter().filter(|(done, _)| *done);
        done.map(|(_, name)| name).collect()
    }

    /// The roles asked for, where the database allows that split.
    ///
    /// # Errors
    /// Where only some are asked for and the database is `SQLite`, which belongs to one process.
    pub fn new(requested: &[ServerRole], config: &Config) -> Result<Self, CommandError> {
        let roles = Self {
            api: requested.contains(&ServerRole::Api),
            crawler: requested.contains(&ServerRole::Crawler),
        };
        if roles != Self::ALL && config.database_url().starts_with("sqlite:") {
            return Err(CommandError::new(
                "--roles can be split only between processes that share a PostgreSQL database; give \
                 --database postgres://…, or leave --roles out",
            ));
        }
        Ok(roles)
    }
}

/// Serves until asked to end.
pub async fn run(arguments: ServeArgs, console: &Console) -> CommandResult {
    let config = arguments.server.load_config()?;
    if arguments.print_config {
        let text = config.to_toml().map_err(|error| {
            CommandError::new(format!("the configuration cannot be shown: {error}"))
        })?;
        console.write_bytes(text.as_bytes())?;
        return Ok(CommandOutcome::Done);
    }
    let roles = ServerRoles::new(&arguments.roles, &config)?;
    logging::start_logging(&config.log)?;
    let mut signals = ShutdownSignals::listen(HangupAction::ChangesNothing)?;
    let mut server = RegistryServer::start(config, roles).await?;
    if server.approve_all {
        terminal::eprint_note("every registered card is approved: --approve-all is in force");
    }
    tracing::info!(
        url = server.url,
        version = env!("CARGO_PKG_VERSION"),
        api = roles.api,
        crawler = roles.crawler,
        "started"
    );
    print_started(&server, roles, console)?;
    tokio::select! {
        () = signals.next() => {}
        ended = server.wait_for_end() => {
            ended?;
            return Err(CommandError::new("the server ended by itself; its log says more"));
        }
    }
    tracing::info!("shutting down; requests under way may finish first");
    server.stop(&mut signals).await?;
    tracing::info!("ended");
    print_stopped(console)
}

/// Says that it serves, and where. With `--json` that is one line, so that a program that starts it with port 0 learns
/// the port, and when to go on, without reading sentences.
fn print_started(server: &RegistryServer, roles: ServerRoles, console: &Console) -> CommandResult {
    let mut document = json!({"state": "serving", "roles": roles.names()});
    let url = roles.api.then_some(&server.url);
    for (name, value) in [
        ("url", url),
        ("metrics_url", server.metrics_url.as_ref()),
        ("admin_token", server.admin_token.as_ref()),
    ] {
        if let Some(value) = value {
            document[name] = value.as_str().into();
        }
    }
    console.print_result(&document, || {
        if let Some(token) = &server.admin_token {
            console.print_line(&format!(
                "admin token: {token} (shown this once; `a2a-registry token reset-admin` replaces it)"
            ))?;
        }
        if let Some(url) = &server.metrics_url {
            console.print_line(&format!("metrics on {url}"))?;
        }
        if roles.api {
            console.print_line(&format!("listening on {}", server.url))
        } else {
            console.print_line("crawling; another process answers requests")
        }
    })
}

/// Says that it has ended in order.
pub(super) fn print_stopped(console: &Console) -> CommandResult {
    console.print_result(&json!({"state": "stopped"}), || {
        console.print_line("stopped")
    })
}

/// A registry that runs in this process.
#[derive(Debug)]
pub struct RegistryServer {
    /// Where it can be reached from this machine, such as `http://127.0.0.1:8080`.
    pub url: String,
    /// Where its metrics are, where these have a port of their own.
    pub metrics_url: Option<String>,
    /// The admin token, where this start has made it.
    pub admin_token: Option<String>,
    /// Whether every card is approved.
    pub approve_all: bool,
    shutdown: CancellationToken,
    task: JoinHandle<Result<(), CommandError>>,
}

impl RegistryServer {
    /// Takes the port, puts the registry together and starts it.
    pub async fn start(mut config: Config, roles: ServerRoles) -> Result<Self, CommandError> {
        if let Some(line) = DescriptorBudget::for_process(&config).shortage() {
            return Err(CommandError::new(line));
        }
        let listener = bind_listener(config.server.listen, "--listen")?;
        // Port 0 has become a real one, which links and the default public URL must name.
        config.server.listen = local_address(&listener)?;
        let metrics_listener = match config.server.metrics_listen {
            Some(address) if roles.api => {
                let listener = bind_listener(address, "server.metrics_listen")?;
                config.server.metrics_listen = Some(local_address(&listener)?);
                Some(listener)
            }
            _ => None,
        };
        let metrics_listen = config.server.metrics_listen;
        let scheme = if config.server.tls_cert.is_some() {
            "https"
        } else {
            "http"
        };
        let url = format!("{scheme}://{}", config.server.listen);
        let approve_all = config.governance.approve_all;
        let chosen = read_bootstrap_token()?;
        let entropy = Arc::new(SystemEntropy::default());
        let clock = Arc::new(SystemClock);
        let network = Network::with_system_resolver(&config, clock.clone())?;
        let built =
            startup::start_registry(config, clock, entropy, network, chosen.as_deref()).await?;
        if let Some(reason) = &built.rebuild_reason {
            tracing::info!(reason, "the search index is being rebuilt");
        }
        let shutdown = CancellationToken::new();
        let parts = ServerParts {
            app: built.context,
            roles,
            rebuild: built.rebuild_reason,
        };
        let listeners = Listeners {
            main: listener,
            metrics: metrics_listener,
        };
        let task = spawn_server(parts, listeners, shutdown.clone()).await?;
        Ok(Self {
            url,
            metrics_url: metrics_listen.map(|address| format!("http://{address}/metrics")),
            admin_token: built.admin_token,
            approve_all,
            shutdown,
            task,
        })
    }

    /// Waits until it ends by itself, which it does only when something is wrong.
    pub async fn wait_for_end(&mut self) -> Result<(), CommandError> {
        (&mut self.task).await.unwrap_or_else(|error| {
            Err(CommandError::new(format!("the server broke off: {error}")))
        })
    }

    /// Asks it to end, and waits until it has: ten seconds at most, and no longer than a further signal.
    ///
    /// # Errors
    /// [`Failure::Interrupted`] after a further signal.
    pub async fn stop(mut self, signals: &mut ShutdownSignals) -> Result<(), CommandError> {
        self.shutdown.cancel();
        tokio::select! {
            ended = tokio::time::timeout(SHUTDOWN_TIMEOUT, self.wait_for_end()) => ended.unwrap_or_else(|_| {
                Err(CommandError::new(format!(
                    "not everything ended within {} s; the rest was cut off", SHUTDOWN_TIMEOUT.as_secs()
                )))
            }),
            () = signals.next() => Err(CommandError::Interrupted),
        }
    }
}

/// The admin token that the operator chose, from the environment or the file that it names.
///
/// # Errors
/// Where both are given, or the file cannot be read.
pub(super) fn read_bootstrap_token() -> Result<Option<String>, CommandError> {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    match (
        variable(BOOTSTRAP_TOKEN_VAR),
        variable(BOOTSTRAP_TOKEN_FILE_VAR),
    ) {
        (Some(_), Some(_)) => Err(CommandError::new(format!(
            "{BOOTSTRAP_TOKEN_VAR} and {BOOTSTRAP_TOKEN_FILE_VAR} say the same: set one of them"
        ))),
        (token, None) => Ok(token),
        (None, Some(file)) => read_secret_file(BOOTSTRAP_TOKEN_FILE_VAR, file.as_ref())
            .map(Some)
            .map_err(CommandError::new),
    }
}

/// Listens there; `setting` is what chose the address.
fn bind_listener(address: SocketAddr, setting: &str) -> Result<TcpListener, CommandError> {
    let bind_error = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::AddrInUse => CommandError::new(format!(
            "{address} is in use by another process; stop that one, or give {setting} another port, \
             such as {setting} {}:0 for a free one",
            address.ip()
        )),
        _ => CommandError::new(format!(
            "{address} cannot be listened on: {error}; check {setting}"
        )),
    };
    let listener = TcpListener::bind(address).map_err(bind_error)?;
    listener.set_nonblocking(true).map_err(bind_error)?;
    Ok(listener)
}

fn local_address(listener: &TcpListener) -> Result<SocketAddr, CommandError> {
    listener
        .local_addr()
        .map_err(|error| CommandError::new(format!("the port cannot be read: {error}")))
}

struct ServerParts {
    app: Arc<AppContext>,
    roles: ServerRoles,
    rebuild: Option<String>,
}

/// What runs beside the requests of a process with these roles.
fn job_options(roles: ServerRoles, rebuild: Option<String>, metrics: Arc<Metrics>) -> JobOptions {
    JobOptions {
        crawl: roles.crawler,
        rebuild,
        on_outcome: Arc::new(move |outcome| metrics.count_crawl_outcome(outcome.as_str())),
        // Only who answers searches needs to know what they mean.
        models: if roles.api {
            ModelSource::Configured
        } else {
            ModelSource::None
        },
    }
}

/// Starts the parts, and gives the task in which they run until `shutdown`. They end in the order of
/// docs/architecture.md#shutdown: nothing new is leased or accepted, requests drain, fetches are given up and
/// their leases returned, the index is committed, the database closed.
///
/// # Errors
/// Where a part does not start; nothing runs then.
async fn spawn_server(
    parts: ServerParts,
    listeners: Listeners,
    shutdown: CancellationToken,
) -> Result<JoinHandle<Result<(), CommandError>>, CommandError> {
    let ServerParts {
        app,
        roles,
        rebuild,
    } = parts;
    let metrics = Arc::new(Metrics::new());
    let options = job_options(roles, rebuild, Arc::clone(&metrics));
    let jobs = jobs::start_jobs(&app, options);
    let mut serving: ServerFuture = if roles.api {
        Box::pin(server::run_server(
            Arc::clone(&app),
            listeners,
            shutdown.clone(),
            metrics,
        ))
    } else {
        // Without the API the port is let go at once.
        drop(listeners);
        Box::pin(shutdown.clone().cancelled_owned().map(Ok))
    };
    // What is wrong from the start, such as a certificate that cannot be read, shows at the first poll.
    if let Poll::Ready(ended) = futures::poll!(serving.as_mut()) {
        jobs.stop().await;
        startup::close_store(&app.store).await;
        let why = ended.map_or_else(
            |error| error.to_string(),
            |()| "it ended at once".to_owned(),
        );
        return Err(CommandError::new(format!("the server cannot start: {why}")));
    }
    Ok(tokio::spawn(async move {
        let serving = async {
            let served = serving.await;
            // Where the server ended by itself, everything else ends with it.
            shutdown.cancel();
            served
        };
        let stop_crawler = async {
            shutdown.cancelled().await;
            jobs.stop_crawling();
        };
        let (served, ()) = tokio::join!(serving, stop_crawler);
        jobs.stop().await;
        startup::close_store(&app.store).await;
        served.map_err(|error| CommandError::new(format!("the server failed: {error}")))
    }))
}

/// The API and the pages, while they run.
type ServerFuture = Pin<Box<dyn Future<Output = std::io::Result<()>> + Send>>;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn roles_are_split_only_on_postgresql() {
        let mut config = Config::default();
        assert_eq!(
            ServerRoles::new(&[ServerRole::Crawler, ServerRole::Api], &config).unwrap(),
            ServerRoles::ALL
        );
        assert!(ServerRoles::new(&[ServerRole::Api], &config).is_err());
        config.store.database = "postgres://127.0.0.1/registry".into();
        let split = ServerRoles::new(&[ServerRole::Crawler], &config).unwrap();
        assert_eq!(
            split,
            ServerRoles {
                api: false,
                crawler: true
            }
        );
    }

    #[test]
    fn a_taken_port_is_one_line_with_a_way_out() {
        let first = bind_listener(SocketAddr::from(([127, 0, 0, 1], 0)), "--listen").unwrap();
        let CommandError::Failed(line) =
            bind_listener(first.local_addr().unwrap(), "--listen").unwrap_err()
        else {
            panic!("another kind of failure");
        };
        assert!(line.contains("--listen 127.0.0.1:0"), "{line}");
        assert_eq!(line.lines().count(), 1);
    }
}
