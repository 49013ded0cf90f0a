//! Data that a command works on by itself, without a running registry.

use std::path::PathBuf;

use a2a_registry_core::config::{self, Config, ConfigOverrides};
use a2a_registry_core::data_dir::DataDirError;
use clap::Args;

use super::command_error::CommandError;

/// Options that select the data of a command.
#[derive(Args, Debug, Clone, Default)]
pub struct OfflineArgs {
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

impl OfflineArgs {
    /// Loads the configuration for these arguments.
    ///
    /// # Errors
    /// All mistakes in it.
    pub fn load_config(&self) -> Result<Config, CommandError> {
        let overrides = ConfigOverrides {
            data_dir: self.data_dir.clone(),
            database: self.database.clone(),
            ..ConfigOverrides::default()
        };
        Ok(config::load_config(self.config.as_ref(), &overrides)?)
    }
}

/// Rejects a data folder that does not exist: only `serve` and `demo` create one.
pub fn require_data_dir(config: &Config) -> Result<(), CommandError> {
    let folder = &config.store.data_dir;
    match folder.is_dir() {
        true => Ok(()),
        false => Err(CommandError::new(
            DataDirError::Missing(folder.to_owned()).to_string(),
        )),
    }
}
