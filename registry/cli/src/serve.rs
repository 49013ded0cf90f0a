//! `serve`: the registry itself.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use a2a_crawler::SystemClock;
use a2a_registry_core::config::{self, Config, Overrides, read_secret_file};
use a2a_registry_core::context::Context;
use a2a_registry_core::descriptors::DescriptorBudget;
use a2a_registry_core::metrics::Metrics;
use a2a_registry_core::network::Network;
use a2a_registry_domain::ids::SystemEntropy;
use a2a_registry_server::jobs::{self, JobOptions, Models};
use a2a_registry_server::serve as server;
use a2a_registry_server::serve::Listeners;
use a2a_registry_server::start::{self, BOOTSTRAP_TOKEN, BOOTSTRAP_TOKEN_FILE};
use clap::{Args, ValueEnum};
use futures::FutureExt;
use serde_json::json;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::console::Console;
use super::failure::{CommandOutcome, CommandResult, Failure};
use super::signals::{EndSignals, Hangup};
use super::{logging, terminal};

/// How long everything together may take to end once it was asked to.
const SHUTDOWN: Duration = Duration::from_secs(10);

/// What `serve` and `demo` take.
#[derive(Args, Debug, Clone, Default)]
pub struct ServerArgs {
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

impl ServerArgs {
    /// The configuration these arguments lead to.
    ///
    /// # Errors
    /// With every mistake in it.
    pub fn load(&self) -> Result<Config, Failure> {
        let overrides = Overrides {
            listen: self.listen,
            data_dir: self.data_dir.clone(),
            database: self.database.clone(),
            public_url: self.public_url.clone(),
            approve_all: self.approve_all,
        };
        Ok(config::load(self.config.as_ref(), &overrides)?)
    }
}

/// What `serve` takes.
#[derive(Args, Debug, Clone)]
pub struct ServeArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// What this process does; to split, several processes share one PostgreSQL database
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "ROLES",
        default_value = "api,crawler"
    )]
    roles: Vec<Role>,
    /// Print the configuration in force as TOML, and end
    #[arg(long)]
    print_config: bool,
}

/// A part of the registry that a process may do alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Role {
    /// Answers requests, and keeps the index that searches need.
    Api,
    /// Fetches cards.
    Crawler,
}

/// Which parts a process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Roles {
    /// API, pages and index.
    pub api: bool,
    pub crawler: bool,
}

impl Roles {
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
    pub fn new(asked: &[Role], config: &Config) -> Result<Self, Failure> {
        let roles = Self {
            api: asked.contains(&Role::Api),
            crawler: asked.contains(&Role::Crawler),
        };
        if roles != Self::ALL && config.database_url().starts_with("sqlite:") {
            return Err(Failure::new(
                "--roles can be split only between processes that share a PostgreSQL database; give \
                 --database postgres://…, or leave --roles out",
            ));
        }
        Ok(roles)
    }
}

/// Serves until asked to end.
pub async fn run(arguments: ServeArgs, console: &Console) -> CommandResult {
    let config = arguments.server.load()?;
    if arguments.print_config {
        let text = config
            .to_toml()
            .map_err(|error| Failure::new(format!("the configuration cannot be shown: {error}")))?;
        console.write(text.as_bytes())?;
        return Ok(CommandOutcome::Done);
    }
    let roles = Roles::new(&arguments.roles, &config)?;
    logging::start(&config.log)?;
    let mut signals = EndSignals::listen(Hangup::ChangesNothing)?;
    let mut server = Server::start(config, roles).await?;
    if server.approve_all {
        terminal::note("every registered card is approved: --approve-all is in force");
    }
    tracing::info!(
        url = server.url,
        version = env!("CARGO_PKG_VERSION"),
        api = roles.api,
        crawler = roles.crawler,
        "started"
    );
    announce(&server, roles, console)?;
    tokio::select! {
        () = signals.next() => {}
        ended = server.ended() => {
            ended?;
            return Err(Failure::new("the server ended by itself; its log says more"));
        }
    }
    tracing::info!("shutting down; requests under way may finish first");
    server.stop(&mut signals).await?;
    tracing::info!("ended");
    announce_end(console)
}

/// Says that it serves, and where. With `--json` that is one line, so that a program that starts it with port 0 learns
/// the port, and when to go on, without reading sentences.
fn announce(server: &Server, roles: Roles, console: &Console) -> CommandResult {
    let mut told = json!({"state": "serving", "roles": roles.names()});
    let url = roles.api.then_some(&server.url);
    for (name, value) in [
        ("url", url),
        ("metrics_url", server.metrics_url.as_ref()),
        ("admin_token", server.admin_token.as_ref()),
    ] {
        if let Some(value) = value {
            told[name] = value.as_str().into();
        }
    }
    console.show(&told, || {
        if let Some(token) = &server.admin_token {
            console.line(&format!(
                "admin token: {token} (shown this once; `a2a-registry token reset-admin` replaces it)"
            ))?;
        }
        if let Some(url) = &server.metrics_url {
            console.line(&format!("metrics on {url}"))?;
        }
        if roles.api {
            console.line(&format!("listening on {}", server.url))
        } else {
            console.line("crawling; another process answers requests")
        }
    })
}

/// Says that it has ended in order.
pub(super) fn announce_end(console: &Console) -> CommandResult {
    console.show(&json!({"state": "stopped"}), || console.line("stopped"))
}

/// A registry that runs in this process.
#[derive(Debug)]
pub struct Server {
    /// Where it can be reached from this machine, such as `http://127.0.0.1:8080`.
    pub url: String,
    /// Where its metrics are, where these have a port of their own.
    pub metrics_url: Option<String>,
    /// The admin token, where this start has made it.
    pub admin_token: Option<String>,
    /// Whether every card is approved.
    pub approve_all: bool,
    shutdown: CancellationToken,
    task: JoinHandle<Result<(), Failure>>,
}

impl Server {
    /// Takes the port, puts the registry together and starts it.
    pub async fn start(mut config: Config, roles: Roles) -> Result<Self, Failure> {
        if let Some(line) = DescriptorBudget::of(&config).shortage() {
            return Err(Failure::new(line));
        }
        let listener = bind(config.server.listen, "--listen")?;
        // Port 0 has become a real one, which links and the default public URL must name.
        config.server.listen = local_address(&listener)?;
        let metrics_listener = match config.server.metrics_listen {
            Some(address) if roles.api => {
                let listener = bind(address, "server.metrics_listen")?;
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
        let chosen = bootstrap_token()?;
        let entropy = Arc::new(SystemEntropy::default());
        let clock = Arc::new(SystemClock);
        let network = Network::of_system(&config, clock.clone())?;
        let started =
            start::start_registry(config, clock, entropy, network, chosen.as_deref()).await?;
        if let Some(reason) = &started.rebuild {
            tracing::info!(reason, "the search index is being rebuilt");
        }
        let shutdown = CancellationToken::new();
        let parts = ServerParts {
            app: started.context,
            roles,
            rebuild: started.rebuild,
        };
        let listeners = Listeners {
            main: listener,
            metrics: metrics_listener,
        };
        let task = run_server(parts, listeners, shutdown.clone()).await?;
        Ok(Self {
            url,
            metrics_url: metrics_listen.map(|address| format!("http://{address}/metrics")),
            admin_token: started.admin_token,
            approve_all,
            shutdown,
            task,
        })
    }

    /// Waits until it ends by itself, which it does only when something is wrong.
    pub async fn ended(&mut self) -> Result<(), Failure> {
        (&mut self.task)
            .await
            .unwrap_or_else(|error| Err(Failure::new(format!("the server broke off: {error}"))))
    }

    /// Asks it to end, and waits until it has: ten seconds at most, and no longer than a further signal.
    ///
    /// # Errors
    /// [`Failure::Interrupted`] after a further signal.
    pub async fn stop(mut self, signals: &mut EndSignals) -> Result<(), Failure> {
        self.shutdown.cancel();
        tokio::select! {
            ended = tokio::time::timeout(SHUTDOWN, self.ended()) => ended.unwrap_or_else(|_| {
                Err(Failure::new(format!(
                    "not everything ended within {} s; the rest was cut off", SHUTDOWN.as_secs()
                )))
            }),
            () = signals.next() => Err(Failure::Interrupted),
        }
    }
}

/// The admin token that the operator chose, from the environment or the file that it names.
///
/// # Errors
/// Where both are given, or the file cannot be read.
pub(super) fn bootstrap_token() -> Result<Option<String>, Failure> {
    let given = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    match (given(BOOTSTRAP_TOKEN), given(BOOTSTRAP_TOKEN_FILE)) {
        (Some(_), Some(_)) => Err(Failure::new(format!(
            "{BOOTSTRAP_TOKEN} and {BOOTSTRAP_TOKEN_FILE} say the same: set one of them"
        ))),
        (token, None) => Ok(token),
        (None, Some(file)) => read_secret_file(BOOTSTRAP_TOKEN_FILE, file.as_ref())
            .map(Some)
            .map_err(Failure::new),
    }
}

/// Listens there; `setting` is what chose the address.
fn bind(address: SocketAddr, setting: &str) -> Result<TcpListener, Failure> {
    let failed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::AddrInUse => Failure::new(format!(
            "{address} is in use by another process; stop that one, or give {setting} another port, \
             such as {setting} {}:0 for a free one",
            address.ip()
        )),
        _ => Failure::new(format!(
            "{address} cannot be listened on: {error}; check {setting}"
        )),
    };
    let listener = TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}

fn local_address(listener: &TcpListener) -> Result<SocketAddr, Failure> {
    listener
        .local_addr()
        .map_err(|error| Failure::new(format!("the port cannot be read: {error}")))
}

struct ServerParts {
    app: Arc<Context>,
    roles: Roles,
    rebuild: Option<String>,
}

/// What runs beside the requests of a process with these roles.
fn job_options(roles: Roles, rebuild: Option<String>, metrics: Arc<Metrics>) -> JobOptions {
    JobOptions {
        crawl: roles.crawler,
        rebuild,
        on_outcome: Arc::new(move |outcome| metrics.crawl_outcome(outcome.as_str())),
        // Only who answers searches needs to know what they mean.
        models: if roles.api {
            Models::Configured
        } else {
            Models::None
        },
    }
}

/// Starts the parts, and gives the task in which they run until `shutdown`. They end in the order of
/// docs/architecture.md#shutdown: nothing new is leased or accepted, requests drain, fetches are given up and
/// their leases returned, the index is committed, the database closed.
///
/// # Errors
/// Where a part does not start; nothing runs then.
async fn run_server(
    parts: ServerParts,
    listeners: Listeners,
    shutdown: CancellationToken,
) -> Result<JoinHandle<Result<(), Failure>>, Failure> {
    let ServerParts {
        app,
        roles,
        rebuild,
    } = parts;
    let metrics = Arc::new(Metrics::new());
    let options = job_options(roles, rebuild, Arc::clone(&metrics));
    let jobs = jobs::start(&app, options);
    let mut serving: ServerFuture = if roles.api {
        Box::pin(server::run(
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
        start::close(&app.store).await;
        let why = ended.map_or_else(
            |error| error.to_string(),
            |()| "it ended at once".to_owned(),
        );
        return Err(Failure::new(format!("the server cannot start: {why}")));
    }
    Ok(tokio::spawn(async move {
        let serving = async {
            let served = serving.await;
            // Where the server ended by itself, everything else ends with it.
            shutdown.cancel();
            served
        };
        let hold_crawler = async {
            shutdown.cancelled().await;
            jobs.stop_crawling();
        };
        let (served, ()) = tokio::join!(serving, hold_crawler);
        jobs.stop().await;
        start::close(&app.store).await;
        served.map_err(|error| Failure::new(format!("the server failed: {error}")))
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
            Roles::new(&[Role::Crawler, Role::Api], &config).unwrap(),
            Roles::ALL
        );
        assert!(Roles::new(&[Role::Api], &config).is_err());
        config.store.database = "postgres://127.0.0.1/registry".into();
        let split = Roles::new(&[Role::Crawler], &config).unwrap();
        assert_eq!(
            split,
            Roles {
                api: false,
                crawler: true
            }
        );
    }

    #[test]
    fn a_taken_port_is_one_line_with_a_way_out() {
        let first = bind(SocketAddr::from(([127, 0, 0, 1], 0)), "--listen").unwrap();
        let Failure::Failed(line) = bind(first.local_addr().unwrap(), "--listen").unwrap_err()
        else {
            panic!("another kind of failure");
        };
        assert!(line.contains("--listen 127.0.0.1:0"), "{line}");
        assert_eq!(line.lines().count(), 1);
    }
}
