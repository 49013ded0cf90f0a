//! Signals that stop a process: SIGTERM and Ctrl-C. SIGHUP, which is sent when a terminal closes, stops only programs
//! that belong to a terminal; a service reloads its configuration.

use super::command_error::CommandError;

/// Effect of SIGHUP on a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HangupAction {
    /// It is stopped.
    Ends,
    /// It reloads its configuration, as services do.
    Reloads,
}

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalRequest {
    Stop,
    Reload,
}

/// Listener for the signals that stop a process. From the first one of these on, the process no longer ends by itself
/// on a signal.
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
    /// The last signal to stop.
    received: Option<&'static str>,
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
            received: None,
        })
    }

    #[cfg(not(unix))]
    pub fn listen(_: HangupAction) -> Result<Self, CommandError> {
        Ok(Self { received: None })
    }

    /// The name of the last signal to stop, for the log.
    pub const fn received(&self) -> Option<&'static str> {
        self.received
    }

    /// Waits for the next signal.
    #[cfg(unix)]
    pub async fn next_request(&mut self) -> SignalRequest {
        let (name, request) = tokio::select! {
            _ = self.terminate.recv() => ("SIGTERM", SignalRequest::Stop),
            _ = self.interrupt.recv() => ("SIGINT", SignalRequest::Stop),
            _ = self.hangup.recv() => match self.hangup_action {
                HangupAction::Ends => ("SIGHUP", SignalRequest::Stop),
                HangupAction::Reloads => return SignalRequest::Reload,
            },
        };
        self.received = Some(name);
        request
    }

    /// Waits for the next signal.
    #[cfg(not(unix))]
    pub async fn next_request(&mut self) -> SignalRequest {
        if tokio::signal::ctrl_c().await.is_err() {
            // Without signals, the process runs until it is killed.
            std::future::pending::<()>().await;
        }
        self.received = Some("Ctrl-C");
        SignalRequest::Stop
    }

    /// Waits for the next signal to stop. Where SIGHUP reloads, it waits meanwhile and is not lost.
    #[cfg(unix)]
    pub async fn wait_for_signal(&mut self) {
        let ends = self.hangup_action == HangupAction::Ends;
        let name = tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.hangup.recv(), if ends => "SIGHUP",
        };
        self.received = Some(name);
    }

    /// Waits for the next signal to stop.
    #[cfg(not(unix))]
    pub async fn wait_for_signal(&mut self) {
        self.next_request().await;
    }
}
