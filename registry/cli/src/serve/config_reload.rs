//! SIGHUP: the configuration is read again while the registry serves.

use std::time::Duration;

use a2a_registry_core::admission::rules_reload::reload_config;

use super::{RegistryServer, ServerConfigArgs};
use crate::command_error::CommandError;
use crate::logging;
use crate::signals::{ShutdownSignals, SignalRequest};

/// Delay before a reload is repeated because the database did not respond.
const REPEAT_DELAY: Duration = Duration::from_secs(5);

/// Serves until a signal to stop. On a signal to reload, the configuration is read again.
///
/// # Errors
/// If the server ends by itself.
pub(super) async fn serve_until_stopped(
    server: &mut RegistryServer,
    arguments: &ServerConfigArgs,
    signals: &mut ShutdownSignals,
) -> Result<(), CommandError> {
    let mut is_unanswered = false;
    loop {
        let repetition = async {
            match is_unanswered {
                true => tokio::time::sleep(REPEAT_DELAY).await,
                false => std::future::pending().await,
            }
        };
        tokio::select! {
            () = repetition => {}
            request = signals.next_request() => match request {
                SignalRequest::Stop => return Ok(()),
                SignalRequest::Reload => {}
            },
            ended = server.wait_for_end() => {
                ended?;
                return Err(CommandError::new("the server ended unexpectedly; see its log"));
            }
        }
        // A database that does not respond must not delay the end.
        tokio::select! {
            unanswered = server.reload(arguments) => is_unanswered = unanswered,
            () = signals.wait_for_signal() => return Ok(()),
        }
    }
}

impl RegistryServer {
    /// Reads the configuration again, and replaces what a running process can replace: certificate and key, log
    /// filter, admission rules, network lists and limits. Whatever cannot be read stays as it is. The log says what
    /// happened.
    ///
    /// Returns whether the database did not respond. It may have put agents on hold for the new rules nevertheless,
    /// and these stay undecided until a reload succeeds, so it has to be repeated.
    async fn reload(&self, arguments: &ServerConfigArgs) -> bool {
        let new = match arguments.load_config() {
            Ok(new) => new,
            Err(error) => {
                let error = error.message_without_commands();
                tracing::error!(
                    error,
                    "the configuration was not reloaded; the old one stays"
                );
                return false;
            }
        };
        let mut reloaded = "the configuration was reloaded";
        if let Some(certificate) = &self.certificate
            && let Err(error) = certificate.reload(&new.server)
        {
            reloaded = "the rest of the configuration was reloaded";
            tracing::error!(%error, "the TLS certificate was not reloaded; the old one stays");
        }
        if let Err(error) = logging::reload_log_filter(&new.log) {
            reloaded = "the rest of the configuration was reloaded";
            let error = error.message_without_commands();
            tracing::error!(error, "the log filter was not reloaded; the old one stays");
        }
        if let Err(error) = reload_config(&self.app, &new).await {
            let is_unanswered = error.is_database_failure();
            let error = error.log_message();
            match is_unanswered {
                true => tracing::error!(
                    error,
                    "rules, network lists and limits were not reloaded; this is repeated until the database responds"
                ),
                false => tracing::error!(
                    error,
                    "rules, network lists and limits were not reloaded; send SIGHUP again"
                ),
            }
            return is_unanswered;
        }
        let keys = Vec::from_iter(self.loaded.keys_needing_restart(&new));
        match keys.join(", ").as_str() {
            "" => tracing::info!("{reloaded}"),
            keys => tracing::warn!(
                needs_restart = keys,
                "{reloaded}, except for these keys: they take effect at the next start"
            ),
        }
        false
    }
}
