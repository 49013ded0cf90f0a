//! Setup of a registry under test: a folder, a configuration, a database. From it, the registry is started as a
//! process of its own or built in this process.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use a2a_crawler::Clock;
use a2a_crawler::dns::Resolver;
use a2a_registry_core::config::Config;
use a2a_registry_core::error::StartError;
use a2a_registry_core::network::NetworkAccess;
use a2a_registry_domain::identifiers::SystemEntropy;
use a2a_registry_server::startup::{StartupResult, start_registry};
use tempfile::TempDir;
use tokio::process::Command;

use super::exchange::ValidatingProxy;
use super::program::{Program, allow_model, registry_command};
use super::serving_registry::ServingRegistry;

/// The admin token of every registry that a test starts.
pub const ADMIN_TOKEN: &str = "the-token-of-the-tests-0123456789abcdef";

/// Parameters of a registry's start. Dropping the last clone removes the folder.
#[derive(Debug, Clone)]
pub struct RegistrySetup {
    folder: Arc<TempDir>,
    database: Option<String>,
    approve_all: bool,
    has_model: bool,
    arguments: Vec<String>,
    configuration: String,
}

impl RegistrySetup {
    /// A registry with a folder of its own, which may crawl loopback origins.
    pub fn new() -> Self {
        Self::with_default_config().with_config_lines(
            "[crawler]\nallow_networks = [\"127.0.0.0/8\"]\nallow_http = true\nallow_ports = \"any\"",
        )
    }

    /// A registry with a folder of its own and the default configuration.
    pub fn with_default_config() -> Self {
        Self {
            folder: Arc::new(TempDir::new().unwrap()),
            database: None,
            approve_all: false,
            has_model: false,
            arguments: Vec::new(),
            configuration: String::new(),
        }
    }

    /// Uses this database instead of SQLite in the folder.
    #[must_use]
    pub fn with_database(mut self, url: &str) -> Self {
        self.database = Some(url.to_owned());
        self
    }

    /// Approves every registered card.
    #[must_use]
    pub fn approve_all(mut self) -> Self {
        self.approve_all = true;
        self
    }

    /// Uses the sentence encoder that the configuration and the data folder select, with time for slow machines to
    /// encode a query.
    #[must_use]
    pub fn with_model(mut self) -> Self {
        self.has_model = true;
        self
    }

    /// Adds a command-line argument.
    #[must_use]
    pub fn with_argument(mut self, argument: &str) -> Self {
        self.arguments.push(argument.to_owned());
        self
    }

    /// Adds lines of configuration, in a section of their own.
    #[must_use]
    pub fn with_config_lines(mut self, lines: &str) -> Self {
        writeln!(self.configuration, "{lines}").unwrap();
        self
    }

    /// A folder for files of the test, removed with the registry.
    pub fn scratch_folder(&self) -> &Path {
        self.folder.path()
    }

    /// The data folder.
    pub fn data_folder(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// The command that starts the registry as a process.
    pub fn serve_command(&self) -> Command {
        let file = self.folder.path().join("registry.toml");
        std::fs::write(&file, &self.configuration).unwrap();
        let mut command = registry_command(["serve"]);
        if !self.arguments.iter().any(|argument| argument == "--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        if let Some(database) = &self.database {
            command.arg("--database").arg(database);
        }
        if self.approve_all {
            command.arg("--approve-all");
        }
        if self.has_model {
            allow_model(&mut command);
        }
        command
            .arg("--config")
            .arg(file)
            .arg("--data-dir")
            .arg(self.data_folder())
            .args(&self.arguments)
            .env("A2A_REGISTRY_BOOTSTRAP_TOKEN", ADMIN_TOKEN);
        command
    }

    /// Starts the registry behind a [`ValidatingProxy`] and waits until it serves. The URL of the proxy is the public
    /// URL if no other is configured.
    pub async fn start(&self) -> ServingRegistry {
        let proxy = ValidatingProxy::new().await;
        let mut command = self.serve_command();
        let named = |text: &str| text.contains("public-url") || text.contains("public_url");
        if !self.arguments.iter().any(|argument| named(argument)) && !named(&self.configuration) {
            command.env("A2A_REGISTRY__SERVER__PUBLIC_URL", proxy.url());
        }
        let mut serving = ServingRegistry::start(self, command).await;
        serving.api = serving.api.with_proxy(proxy);
        serving
    }

    /// Starts the registry without a proxy and waits until it serves: for tests of connections themselves.
    pub async fn start_without_proxy(&self) -> ServingRegistry {
        ServingRegistry::start(self, self.serve_command()).await
    }

    /// Starts the registry without a proxy, from a shell that runs these commands first.
    pub async fn start_after_commands(&self, words: &str) -> ServingRegistry {
        ServingRegistry::start(
            self,
            super::program::after_shell_commands(words, &self.serve_command()),
        )
        .await
    }

    /// Starts a registry that is expected to fail, and returns its message.
    ///
    /// # Panics
    ///
    /// Unless it ends with exit code 2 and a message of one line.
    pub async fn start_expecting_failure(&self) -> String {
        let ended = Program::run(self.serve_command()).await;
        assert_eq!(ended.status.code(), Some(2), "{ended:?}");
        assert!(ended.stdout.is_empty(), "{ended:?}");
        let [line] = ended.stderr.as_slice() else {
            panic!("expected one line: {ended:?}");
        };
        line.clone()
    }

    /// The configuration that its process would read.
    pub fn config(&self) -> Config {
        let mut config: Config = toml::from_str(&self.configuration).unwrap();
        config.store.data_dir = self.data_folder();
        config.store.database = self.database.clone().unwrap_or_default().into();
        config.governance.approve_all |= self.approve_all;
        config
    }
}

/// Builds a registry in this process, with that resolver.
pub async fn build_registry(
    config: &Config,
    clock: Arc<dyn Clock>,
    resolver: Arc<dyn Resolver>,
) -> StartupResult {
    try_build_registry(config, clock, resolver).await.unwrap()
}

/// Like [`build_registry`], for a start that may be refused.
pub async fn try_build_registry(
    config: &Config,
    clock: Arc<dyn Clock>,
    resolver: Arc<dyn Resolver>,
) -> Result<StartupResult, StartError> {
    super::install_tls();
    let entropy = Arc::new(SystemEntropy::default());
    let network = NetworkAccess::with_resolver(config, Arc::clone(&clock), resolver).unwrap();
    start_registry(config.clone(), clock, entropy, network, Some(ADMIN_TOKEN)).await
}
