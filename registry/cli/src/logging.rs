//! Log lines on standard error, as configured in `[log]`.

use std::fmt::Display;
use std::io::IsTerminal;
use std::sync::OnceLock;

use a2a_crawler::trace_spans::TRACE_TARGET;
use a2a_registry_core::commit::decision_maker::SYSTEM_ACTOR;
use a2a_registry_core::config::{Config, LogConfig, LogFormat};
use a2a_registry_server::trace_export::TraceExport;
use tracing::Subscriber;
use tracing_subscriber::fmt::format::JsonFields;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, Registry, reload};

use super::command_error::CommandError;
use super::log_format::{JsonLine, TextFields};

/// Variable that overrides `log.filter` for one run, as usual for Rust programs.
const FILTER_VARIABLE: &str = "RUST_LOG";

/// HTTP library, and the filter that silences it.
const HTTP_LIBRARY: &str = "actix_http";
const HTTP_LIBRARY_OFF: &str = "actix_http=off";

/// Replaces the filter of the log lines that were started.
type FilterReload = Box<dyn Fn(EnvFilter) -> Result<(), String> + Send + Sync>;

static FILTER_RELOAD: OnceLock<FilterReload> = OnceLock::new();

/// Starts logging, and the export of traces if there is one. Only the first call in a process has an effect.
pub fn start_logging(config: &LogConfig, traces: Option<&TraceExport>) -> Result<(), CommandError> {
    let (filter, handle) = reload::Layer::<EnvFilter, Registry>::new(build_filter(config)?);
    keep_filter_reload(move |filter| handle.reload(filter));
    let lines = tracing_subscriber::fmt::layer::<Registry>()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none());
    match config.format {
        LogFormat::Text => {
            let lines = lines.fmt_fields(TextFields).with_filter(filter);
            set_subscriber(tracing_subscriber::registry().with(lines), traces);
        }
        LogFormat::Json => {
            let lines = lines
                .fmt_fields(JsonFields::new())
                .event_format(JsonLine::new())
                .with_filter(filter);
            set_subscriber(tracing_subscriber::registry().with(lines), traces);
        }
    }
    Ok(())
}

/// Makes this the subscriber of the process.
fn set_subscriber<S>(subscriber: S, traces: Option<&TraceExport>)
where
    S: Subscriber + for<'span> LookupSpan<'span> + Send + Sync + 'static,
{
    // An error only means that logging was started already.
    let _ = match traces {
        Some(traces) => subscriber.with(traces.layer::<S>()).try_init(),
        None => subscriber.try_init(),
    };
}

fn keep_filter_reload<E: Display>(
    reload: impl Fn(EnvFilter) -> Result<(), E> + Send + Sync + 'static,
) {
    let reload = move |filter| reload(filter).map_err(|error| error.to_string());
    let _ = FILTER_RELOAD.set(Box::new(reload));
}

/// Replaces the filter by the configured one. The variable still overrides it.
pub fn reload_log_filter(config: &LogConfig) -> Result<(), CommandError> {
    let filter = build_filter(config)?;
    match FILTER_RELOAD.get() {
        Some(reload) => reload(filter).map_err(CommandError::new),
        None => Ok(()),
    }
}

fn build_filter(config: &LogConfig) -> Result<EnvFilter, CommandError> {
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
    Ok(silence_trace_spans(silence_http_library(filter, text)))
}

/// Silences the HTTP library, unless the filter names it: it logs malformed requests of clients as errors, one line
/// each. The registry counts these, and logs them at debug.
fn silence_http_library(filter: EnvFilter, filter_text: &str) -> EnvFilter {
    match HTTP_LIBRARY_OFF.parse() {
        Ok(directive) if !filter_text.contains(HTTP_LIBRARY) => filter.add_directive(directive),
        _ => filter,
    }
}

/// Keeps the spans for traces out of log lines at any level: these have the same fields, and more.
fn silence_trace_spans(filter: EnvFilter) -> EnvFilter {
    match format!("{TRACE_TARGET}=off").parse() {
        Ok(directive) => filter.add_directive(directive),
        Err(_) => filter,
    }
}

/// Starts logging for a client command, only if the variable requests it.
pub fn start_logging_if_requested() -> Result<(), CommandError> {
    match std::env::var_os(FILTER_VARIABLE) {
        Some(_) => start_logging(&LogConfig::default(), None),
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
