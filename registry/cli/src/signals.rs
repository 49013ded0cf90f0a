//! Being asked to end: SIGTERM and Ctrl-C. SIGHUP, which is sent when a terminal closes, is one of these only to a program
//! that belongs to a terminal.

use super::command_error::CommandError;

/// What SIGHUP means to a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HangupAction {
    /// It is asked to end.
    Ends,
    /// Nothing: by custom it asks a service to read its configuration again, which this one does at its start only.
    ChangesNothing,
}

/// Listens for the signals that ask a process to end. From the first one of these on, the process no
/// longer ends by itself on a signal.
#[derive(Debug)]
pub struct ShutdownSignals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    hangup: tokio::signal::unix::Signal,
    #[cfg(unix)]
    hangup_action: HangupAction,
}

impl ShutdownSignals {
    #[cfg(unix)]
    pub fn listen(hangup_action: HangupAction) -> Result<Self, CommandError> {
        use tokio::signal::unix::{SignalKind, signal};
        let listen = |kind| {
            signal(kind)
                .map_err(|error| CommandError::new(format!("signals cannot be handled: {error}")))
        };
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hangup: listen(SignalKind::hangup())?,
            hangup_action,
        })
    }

    #[cfg(not(unix))]
    pub fn listen(_: HangupAction) -> Result<Self, CommandError> {
        Ok(Self {})
    }

    /// Waits for the next signal that asks to end.
    #[cfg(unix)]
    pub async fn next(&mut self) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return,
                _ = self.interrupt.recv() => return,
                _ = self.hangup.recv() => {}
            }
            if self.hangup_action == HangupAction::Ends {
                return;
            }
            tracing::info!("SIGHUP changes nothing; restart to have the configuration read again");
        }
    }

    /// Waits for the next signal that asks to end.
    #[cfg(not(unix))]
    pub async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            // Without a way to be asked, the process runs until it is ended from outside.
            std::future::pending::<()>().await;
        }
    }
}
