//! What this program does to a data folder and database by itself, without a running registry.

use std::path::PathBuf;
use std::sync::Arc;

use a2a_crawler::SystemClock;
use a2a_registry_domain::ids::SystemEntropy;
use a2a_registry_server::config::{Config, Overrides};
use a2a_registry_server::data_dir::DataDirError;
use a2a_registry_server::error::StartError;
use a2a_registry_server::offline::VerifiedCards;
use a2a_registry_server::{config, offline};
use clap::Args;

use super::failure::Failure;

/// Which data a command works on.
#[derive(Args, Debug, Clone, Default)]
pub struct LocalArgs {
    /// Read the configuration from this TOML file
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Folder for the lock, the index and, with SQLite, the database [default: ./a2a-registry-data]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// `sqlite:…` or `postgres://…` [default: SQLite in the data folder]
    #[arg(long, value_name = "URL", hide_env_values = true)]
    pub database: Option<String>,
}

impl LocalArgs {
    /// The configuration these arguments lead to.
    ///
    /// # Errors
    /// With every mistake in it.
    pub fn load(&self) -> Result<Config, Failure> {
        let overrides = Overrides {
            data_dir: self.data_dir.clone(),
            database: self.database.clone(),
            ..Overrides::default()
        };
        config::load(self.config.as_ref(), &overrides)
            .map_err(|error| Failure::new(error.to_string()))
    }
}

/// Refuses a data folder that does not exist: only `serve` and `demo` make one.
pub fn demand_data_dir(config: &Config) -> Result<(), Failure> {
    let folder = &config.store.data_dir;
    match folder.is_dir() {
        true => Ok(()),
        false => Err(Failure::new(
            DataDirError::Missing(folder.to_owned()).to_string(),
        )),
    }
}

/// Hashes every stored card, names up to `max_named` damaged ones, and calls `progress` with the number of cards done and
/// of all.
pub async fn verify_cards(
    config: Config,
    max_named: usize,
    progress: impl FnMut(u64, u64),
) -> Result<VerifiedCards, Failure> {
    offline::verify_cards(&config, max_named, progress)
        .await
        .map_err(failed)
}

/// Replaces the admin token. Gives the new one.
pub async fn reset_admin_token(config: Config) -> Result<String, Failure> {
    offline::reset_admin_token(&config, &SystemClock, &SystemEntropy::default())
        .await
        .map_err(failed)
}

/// Brings the database to this program's schema. Gives the names of the migrations that were run.
pub async fn migrate(config: Config) -> Result<Vec<String>, Failure> {
    offline::migrate(&config).await.map_err(failed)
}

/// Builds the index of a data folder anew that no server holds. Gives how many agents it holds.
pub async fn reindex(config: Config) -> Result<usize, Failure> {
    offline::reindex(
        config,
        Arc::new(SystemClock),
        Arc::new(SystemEntropy::default()),
    )
    .await
    .map_err(failed)
}

/// Asks the database for a sign of life, without changing anything. Gives what answered.
pub async fn ping_database(config: Config) -> Result<String, Failure> {
    offline::ping_database(&config).await.map_err(failed)
}

/// Accounts and groups with names that mean something else, each as a sentence.
pub async fn reserved_names(config: Config) -> Result<Vec<String>, Failure> {
    offline::reserved_names(&config).await.map_err(failed)
}

fn failed(error: StartError) -> Failure {
    Failure::new(error.to_string())
}
