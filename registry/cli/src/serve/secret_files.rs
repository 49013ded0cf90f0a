//! Files with secrets at a start: the chosen admin token, and those that others can read.

use std::path::Path;

use a2a_registry_core::config::secret_file::readable_secret_warning;
use a2a_registry_core::config::{Config, read_secret_file};
use a2a_registry_server::startup::{BOOTSTRAP_TOKEN_FILE_VAR, BOOTSTRAP_TOKEN_VAR};

use crate::command_error::CommandError;

/// Logs every file with a secret that its group or others can read.
pub(super) fn warn_about_readable_secrets(config: &Config) {
    for (key, path) in config.secret_files() {
        warn_if_readable(&key, &path);
    }
}

/// Reads the admin token that the operator chose, from the environment or from the file named there.
///
/// # Errors
/// If both are given, or the file cannot be read.
pub(crate) fn read_bootstrap_token() -> Result<Option<String>, CommandError> {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    match (
        variable(BOOTSTRAP_TOKEN_VAR),
        variable(BOOTSTRAP_TOKEN_FILE_VAR),
    ) {
        (Some(_), Some(_)) => Err(CommandError::new(format!(
            "{BOOTSTRAP_TOKEN_VAR} and {BOOTSTRAP_TOKEN_FILE_VAR} set the same value: use only one of them"
        ))),
        (token, None) => Ok(token),
        (None, Some(file)) => {
            warn_if_readable(BOOTSTRAP_TOKEN_FILE_VAR, file.as_ref());
            read_secret_file(BOOTSTRAP_TOKEN_FILE_VAR, file.as_ref())
                .map(Some)
                .map_err(CommandError::new)
        }
    }
}

fn warn_if_readable(setting: &str, path: &Path) {
    if let Some(warning) = readable_secret_warning(setting, path) {
        tracing::warn!("{warning}");
    }
}
