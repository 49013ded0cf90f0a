//! Log lines on standard error, as `[log]` says.

use std::io::IsTerminal;

use a2a_registry_core::config::{LogConfig, LogFormat};
use tracing_subscriber::EnvFilter;

use super::failure::Failure;

/// The variable that overrides `log.filter` for one run, as is customary.
const VARIABLE: &str = "RUST_LOG";

/// The library that speaks HTTP, and how much of it is logged.
const LIBRARY: &str = "actix_http";
const QUIET: &str = "actix_http=off";

/// Begins to write log lines. Only the first call in a process has an effect.
pub fn start(config: &LogConfig) -> Result<(), Failure> {
    let given = std::env::var(VARIABLE).ok().filter(|text| !text.is_empty());
    let (name, text) = match &given {
        Some(text) => (VARIABLE, text),
        None => ("log.filter", &config.filter),
    };
    let filter = EnvFilter::try_new(text).map_err(|error| {
        Failure::new(format!("{name} is no log filter such as `info`: {error}"))
    })?;
    let filter = quiet(filter, text);
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none());
    // An error says only that log lines are written already.
    let _ = match config.format {
        LogFormat::Text => lines.try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
    Ok(())
}

/// Leaves out what the server's library logs as errors although only a client is to blame, one line for each malformed
/// request, unless the filter asks for it by name. The registry counts these, and logs them at debug.
fn quiet(filter: EnvFilter, text: &str) -> EnvFilter {
    match QUIET.parse() {
        Ok(directive) if !text.contains(LIBRARY) => filter.add_directive(directive),
        _ => filter,
    }
}

/// Log lines of a client command: only where the variable asks for them.
pub fn start_if_asked() -> Result<(), Failure> {
    match std::env::var_os(VARIABLE) {
        Some(_) => start(&LogConfig::default()),
        None => Ok(()),
    }
}
