//! Log lines on standard error, as configured in `[log]`.

use std::io::IsTerminal;

use a2a_registry_core::commit::decision_maker::SYSTEM_ACTOR;
use a2a_registry_core::config::{Config, LogConfig, LogFormat};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::JsonFields;

use super::command_error::CommandError;
use super::log_format::{JsonLine, TextFields};

/// Variable that overrides `log.filter` for one run, as usual for Rust programs.
const FILTER_VARIABLE: &str = "RUST_LOG";

/// HTTP library, and the filter that silences it.
const HTTP_LIBRARY: &str = "actix_http";
const HTTP_LIBRARY_OFF: &str = "actix_http=off";

/// Starts logging. Only the first call in a process has an effect.
pub fn start_logging(config: &LogConfig) -> Result<(), CommandError> {
    let variable_value = std::env::var(FILTER_VARIABLE)
        .ok()
        .filter(|text| !text.is_empty());
    let (name, text) = match &variable_value {
        Some(text) => (FILTER_VARIABLE, text),
        None => ("log.filter", &config.filter),
    };
    let filter = EnvFilter::try_new(text).map_err(|error| {
        CommandError::new(format!(
            "{name} is not a log filter such as `info`: {error}"
        ))
    })?;
    let filter = silence_http_library(filter, text);
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none());
    // An error only means that logging was started already.
    let _ = match config.format {
        LogFormat::Text => subscriber.fmt_fields(TextFields).try_init(),
        LogFormat::Json => subscriber
            .fmt_fields(JsonFields::new())
            .event_format(JsonLine::new())
            .try_init(),
    };
    Ok(())
}

/// Silences the HTTP library, unless the filter names it: it logs malformed requests of clients as errors, one line
/// each. The registry counts these, and logs them at debug.
fn silence_http_library(filter: EnvFilter, filter_text: &str) -> EnvFilter {
    match HTTP_LIBRARY_OFF.parse() {
        Ok(directive) if !filter_text.contains(HTTP_LIBRARY) => filter.add_directive(directive),
        _ => filter,
    }
}

/// Starts logging for a client command, only if the variable requests it.
pub fn start_logging_if_requested() -> Result<(), CommandError> {
    match std::env::var_os(FILTER_VARIABLE) {
        Some(_) => start_logging(&LogConfig::default()),
        None => Ok(()),
    }
}

/// Logs that the process serves with these roles, separated by commas.
pub fn log_started(config: &Config, roles: &str) {
    let database = match config.database_url().starts_with("sqlite:") {
        true => "sqlite",
        false => "postgresql",
    };
    tracing::info!(
        event = "process.started",
        actor = SYSTEM_ACTOR,
        version = env!("CARGO_PKG_VERSION"),
        database,
        listen = %config.server.listen,
        public_url = config.public_url(),
        roles,
        "started"
    );
}

/// Logs the end with its reason, and how many requests had no response when the time to finish was over. Without that
/// number, the shutdown was interrupted or failed.
pub fn log_ended(reason: &str, unanswered: Option<i64>) {
    tracing::info!(
        event = "process.ended",
        actor = SYSTEM_ACTOR,
        reason,
        clean = unanswered.is_some(),
        unanswered,
        "ended"
    );
}
