//! Log lines on standard error, as `[log]` says.

use std::io::IsTerminal;

use a2a_registry_core::config::{LogConfig, LogFormat};
use tracing_subscriber::EnvFilter;

use super::command_error::CommandError;

/// The variable that overrides `log.filter` for one run, as is customary.
const FILTER_VARIABLE: &str = "RUST_LOG";

/// The library that speaks HTTP, and how much of it is logged.
const HTTP_LIBRARY: &str = "actix_http";
const HTTP_LIBRARY_OFF: &str = "actix_http=off";

/// Begins to write log lines. Only the first call in a process has an effect.
pub fn start_logging(config: &LogConfig) -> Result<(), CommandError> {
    let variable_value = std::env::var(FILTER_VARIABLE)
        .ok()
        .filter(|text| !text.is_empty());
    let (name, text) = match &variable_value {
        Some(text) => (FILTER_VARIABLE, text),
        None => ("log.filter", &config.filter),
    };
    let filter = EnvFilter::try_new(text).map_err(|error| {
        CommandError::new(format!("{name} is no log filter such as `info`: {error}"))
    })?;
    let filter = silence_http_library(filter, text);
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none());
    // An error says only that log lines are written already.
    let _ = match config.format {
        LogFormat::Text => subscriber.try_init(),
        LogFormat::Json => subscriber.json().flatten_event(true).try_init(),
    };
    Ok(())
}

/// Leaves out what the server's library logs as errors although only a client is to blame, one line for each malformed
/// request, unless the filter asks for it by name. The registry counts these, and logs them at debug.
fn silence_http_library(filter: EnvFilter, filter_text: &str) -> EnvFilter {
    match HTTP_LIBRARY_OFF.parse() {
        Ok(directive) if !filter_text.contains(HTTP_LIBRARY) => filter.add_directive(directive),
        _ => filter,
    }
}

/// Log lines of a client command: only where the variable asks for them.
pub fn start_if_requested() -> Result<(), CommandError> {
    match std::env::var_os(FILTER_VARIABLE) {
        Some(_) => start_logging(&LogConfig::default()),
        None => Ok(()),
    }
}
