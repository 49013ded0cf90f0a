//! `serve`: runs the registry.

mod config_reload;
mod local_agents;
mod secret_files;
mod server_parts;

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use a2a_crawler::SystemClock;
use a2a_crawler::dns::Resolver;
use a2a_registry_core::config::{self, Config, ConfigOverrides, ServerConfig};
use a2a_registry_core::context::AppContext;
use a2a_registry_core::file_descriptors::DescriptorBudget;
use a2a_registry_core::network::NetworkAccess;
use a2a_registry_domain::identifiers::SystemEntropy;
use a2a_registry_server::serve::Listeners;
use a2a_registry_server::startup;
use a2a_registry_server::tls::ServerCertificate;
use a2a_registry_server::trace_export::TraceExport;
use clap::{Args, ValueEnum};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use self::config_reload::serve_until_stopped;
pub(super) use self::local_agents::allow_local_agents;
pub(super) use self::secret_files::read_bootstrap_token;
use self::secret_files::warn_about_readable_secrets;
use self::server_parts::{ServerStartInput, spawn_server};
use super::command_error::{CommandError, CommandOutcome, CommandResult};
use super::console::Console;
use super::signals::{HangupAction, ShutdownSignals};
use super::{logging, terminal};

/// Time limit for the shutdown of all parts, beside `server.drain_seconds`.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// Configuration options of `serve` and `demo`.
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
    /// URL at which others reach the registry [default: `http://<listen>`]
    #[arg(long, value_name = "URL")]
    pub public_url: Option<String>,
    /// Approve every registered card that is not forbidden
    #[arg(long)]
    pub approve_all: bool,
    /// `serve --local`: set by that command, so that a reload keeps it.
    #[arg(skip)]
    pub local: bool,
}

impl ServerConfigArgs {
    /// Loads the configuration for these arguments.
    ///
    /// # Errors
    /// All mistakes in it.
    pub fn load_config(&self) -> Result<Config, CommandError> {
        let overrides = ConfigOverrides {
            listen: self.listen,
            data_dir: self.data_dir.clone(),
            database: self.database.clone(),
            public_url: self.public_url.clone(),
            approve_all: self.approve_all,
        };
        let mut config = config::load_config(self.config.as_ref(), &overrides)?;
        if self.local {
            allow_local_agents(&mut config, "--local")?;
        }
        Ok(config)
    }
}

/// Arguments of `serve`.
#[derive(Args, Debug, Clone)]
pub struct ServeArgs {
    #[command(flatten)]
    server: ServerConfigArgs,
    /// Accept agents on this machine: loopback addresses, plain http, any port, and `localhost`; listens on loopback
    /// only
    #[arg(long)]
    local: bool,
    /// Roles of this process; to split them, several processes share one PostgreSQL database
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "ROLES",
        default_value = "api,crawler"
    )]
    roles: Vec<ServerRole>,
    /// Print the effective configuration as TOML with comments, and exit; `commented` puts `#` before every key
    #[arg(
        long,
        value_name = "FORM",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "effective"
    )]
    print_config: Option<PrintedConfig>,
}

/// Form of a printed configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PrintedConfig {
    /// Every key with its effective value.
    Effective,
    /// The same with `#` before every key, as a file to install.
    Commented,
}

/// Part of the registry that a process can run alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ServerRole {
    /// Responds to requests, and maintains the index for searches.
    Api,
    /// Fetches cards.
    Crawler,
}

/// Parts that a process runs.
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

    /// Names of the parts, as in `--roles`.
    fn role_names(self) -> Vec<&'static str> {
        let parts = [(self.api, "api"), (self.crawler, "crawler")];
        let done = parts.into_iter().filter(|(done, _)| *done);
        done.map(|(_, name)| name).collect()
    }

    /// Requested roles, if the database allows that split.
    ///
    /// # Errors
    /// If only some are requested and the database is `SQLite`, which only one process can use.
    pub fn new(requested: &[ServerRole], config: &Config) -> Result<Self, CommandError> {
        let roles = Self {
            api: requested.contains(&ServerRole::Api),
            crawler: requested.contains(&ServerRole::Crawler),
        };
        if roles != Self::ALL && config.database_url().starts_with("sqlite:") {
            return Err(CommandError::new(
                "--roles can be split only between processes that share a PostgreSQL database; give \
                 --database postgres://…, or omit --roles",
            ));
        }
        Ok(roles)
    }
}

/// Serves until stopped.
pub async fn run_serve(mut arguments: ServeArgs, console: &Console) -> CommandResult {
    arguments.server.local = arguments.local;
    let config = arguments.server.load_config()?;
    if let Some(form) = arguments.print_config {
        let text = match form {
            PrintedConfig::Effective => config.to_toml(),
            PrintedConfig::Commented => config.to_commented_toml(),
        };
        let text = text.map_err(|error| {
            CommandError::new(format!("the configuration cannot be shown: {error}"))
        })?;
        console.write_bytes(text.as_bytes())?;
        return Ok(CommandOutcome::Done);
    }
    let roles = ServerRoles::new(&arguments.roles, &config)?;
    let traces = TraceExport::start(&config.tracing, Arc::new(SystemClock))?;
    logging::start_logging(&config.log, traces.as_ref())?;
    let mut signals = ShutdownSignals::listen(HangupAction::Reloads)?;
    let mut server = RegistryServer::start(config, roles, traces, None).await?;
    if server.approve_all {
        terminal::eprint_note("every registered card is approved, because --approve-all is set");
    }
    print_server_started(&server, roles, console)?;
    if let Err(error) = serve_until_stopped(&mut server, &arguments.server, &mut signals).await {
        logging::log_ended("failure", None);
        return Err(error);
    }
    let reason = signals.received().unwrap_or_default();
    tracing::info!(reason, "shutting down; requests in progress can finish");
    let stopped = server.stop(&mut signals).await;
    logging::log_ended(reason, stopped.as_ref().ok().copied());
    stopped?;
    print_server_stopped(console)
}

/// Prints that the process serves, and where. With `--json` that is one line, so that a program that starts it with
/// port 0 learns the port, and when to continue, without parsing sentences.
fn print_server_started(
    server: &RegistryServer,
    roles: ServerRoles,
    console: &Console,
) -> CommandResult {
    let mut document = json!({"state": "serving", "roles": roles.role_names()});
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
                "admin token: {token} (shown only once; `a2a-registry token reset-admin` replaces it)"
            ))?;
        }
        if let Some(url) = &server.metrics_url {
            console.print_line(&format!("metrics on {url}"))?;
        }
        if roles.api {
            console.print_line(&format!("listening on {}", server.url))
        } else {
            console.print_line("crawling only; another process with the role api must answer requests")
        }
    })
}

/// Prints that the process has ended properly.
pub(super) fn print_server_stopped(console: &Console) -> CommandResult {
    console.print_result(&json!({"state": "stopped"}), || {
        console.print_line("stopped")
    })
}

/// Registry that runs in this process.
#[derive(Debug)]
pub struct RegistryServer {
    /// URL for this machine, such as `http://127.0.0.1:8080`.
    pub url: String,
    /// URL of its metrics, if they have a port of their own.
    pub metrics_url: Option<String>,
    /// Admin token, if this start has created it.
    pub admin_token: Option<String>,
    /// Whether every card is approved.
    pub approve_all: bool,
    /// Configuration as it was read at the start, which a reload is compared with.
    loaded: Config,
    app: Arc<AppContext>,
    certificate: Option<Arc<ServerCertificate>>,
    shutdown: CancellationToken,
    task: JoinHandle<Result<i64, CommandError>>,
}

impl RegistryServer {
    /// Binds the port, builds the registry and starts it. `resolver` looks up names instead of the system's.
    pub async fn start(
        mut config: Config,
        roles: ServerRoles,
        traces: Option<TraceExport>,
        resolver: Option<Arc<dyn Resolver>>,
    ) -> Result<Self, CommandError> {
        if let Some(line) = DescriptorBudget::for_process(&config).shortage_message() {
            return Err(CommandError::new(line));
        }
        warn_about_readable_secrets(&config);
        let loaded = config.clone();
        let certificate = match roles.api {
            true => ServerCertificate::from_config(&config.server)?,
            false => None,
        };
        let listener = bind_listener(config.server.listen, "--listen")?;
        // Port 0 is now a real port, which links and the default public URL must contain.
        config.server.listen = local_address(&listener)?;
        let metrics_listener = bind_metrics_listener(&mut config.server)?;
        let metrics_listen = config.server.metrics_listen;
        let scheme = certificate.as_ref().map_or("http", |_| "https");
        let url = format!("{scheme}://{}", config.server.listen);
        let approve_all = config.governance.approve_all;
        let chosen = read_bootstrap_token()?;
        let entropy = Arc::new(SystemEntropy::default());
        let clock = Arc::new(SystemClock);
        let network = match resolver {
            Some(resolver) => NetworkAccess::with_resolver(&config, clock.clone(), resolver)?,
            None => NetworkAccess::with_system_resolver(&config, clock.clone())?,
        };
        let built =
            startup::start_registry(config, clock, entropy, network, chosen.as_deref()).await?;
        if let Some(reason) = &built.rebuild_reason {
            tracing::info!(reason, "the search index is being rebuilt");
        }
        let shutdown = CancellationToken::new();
        let app = built.context;
        let parts = ServerStartInput {
            app: Arc::clone(&app),
            roles,
            rebuild: built.rebuild_reason,
            traces,
        };
        let listeners = Listeners {
            // Without the API, the port is released at once.
            main: roles.api.then_some(listener),
            metrics: metrics_listener,
            certificate: certificate.clone(),
        };
        let task = spawn_server(parts, listeners, shutdown.clone()).await?;
        logging::log_started(&app.config(), &roles.role_names().join(","));
        Ok(Self {
            url,
            metrics_url: metrics_listen.map(|address| format!("http://{address}/metrics")),
            admin_token: built.admin_token,
            approve_all,
            loaded,
            app,
            certificate,
            shutdown,
            task,
        })
    }

    /// Its context, for what only this process may do.
    pub fn context(&self) -> Arc<AppContext> {
        Arc::clone(&self.app)
    }

    /// Waits until it ends, which it does by itself only on an error. Returns the number of requests that had no
    /// response when the time to finish was over.
    pub async fn wait_for_end(&mut self) -> Result<i64, CommandError> {
        (&mut self.task).await.unwrap_or_else(|error| {
            Err(CommandError::new(format!(
                "the server was aborted: {error}"
            )))
        })
    }

    /// Stops it and waits for its end: at most `server.drain_seconds` and ten seconds, and no longer than until a
    /// further signal. Returns the number of requests that had no response when the time to finish was over.
    ///
    /// # Errors
    /// [`CommandError::Interrupted`] after a further signal.
    pub async fn stop(mut self, signals: &mut ShutdownSignals) -> Result<i64, CommandError> {
        let limit = SHUTDOWN_TIMEOUT + Duration::from_secs(self.app.config().server.drain_seconds);
        self.shutdown.cancel();
        tokio::select! {
            ended = tokio::time::timeout(limit, self.wait_for_end()) => ended.unwrap_or_else(|_| {
                Err(CommandError::new(format!(
                    "the shutdown took longer than {} s; the rest was aborted", limit.as_secs()
                )))
            }),
            () = signals.wait_for_signal() => Err(CommandError::Interrupted),
        }
    }
}

/// Binds a listener; `setting` is the option or key with the address.
fn bind_listener(address: SocketAddr, setting: &str) -> Result<TcpListener, CommandError> {
    let bind_error = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::AddrInUse => CommandError::new(format!(
            "{address} is in use by another process; stop that one, or give {setting} another port, \
             such as {setting} {}:0 for a free one",
            address.ip()
        )),
        _ => CommandError::new(format!(
            "cannot listen on {address}: {error}; check {setting}"
        )),
    };
    let listener = TcpListener::bind(address).map_err(bind_error)?;
    listener.set_nonblocking(true).map_err(bind_error)?;
    Ok(listener)
}

/// Binds the listener of the metrics, if they have one, and sets its real port.
fn bind_metrics_listener(server: &mut ServerConfig) -> Result<Option<TcpListener>, CommandError> {
    let Some(address) = server.metrics_listen else {
        return Ok(None);
    };
    let listener = bind_listener(address, "server.metrics_listen")?;
    server.metrics_listen = Some(local_address(&listener)?);
    Ok(Some(listener))
}

fn local_address(listener: &TcpListener) -> Result<SocketAddr, CommandError> {
    listener
        .local_addr()
        .map_err(|error| CommandError::new(format!("the port cannot be read: {error}")))
}

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
