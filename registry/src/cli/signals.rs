//! Being asked to end: SIGTERM and Ctrl-C.

use super::failure::Failure;

/// Listens for the signals that ask a process to end. From the first one of these on, the process no
/// longer ends by itself on a signal.
#[derive(Debug)]
pub struct EndSignals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
}

impl EndSignals {
    /// Begins to listen.
    ///
    /// # Errors
    /// Where the system does not let this process listen.
    #[cfg(unix)]
    pub fn listen() -> Result<Self, Failure> {
        use tokio::signal::unix::{SignalKind, signal};
        let listen = |kind| {
            signal(kind)
                .map_err(|error| Failure::new(format!("signals cannot be handled: {error}")))
        };
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    /// Begins to listen.
    ///
    /// # Errors
    /// Never on this system.
    #[cfg(not(unix))]
    pub fn listen() -> Result<Self, Failure> {
        Ok(Self {})
    }

    /// Waits for the next signal.
    #[cfg(unix)]
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    /// Waits for the next signal.
    #[cfg(not(unix))]
    pub async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            // Without a way to be asked, the process runs until it is ended from outside.
            std::future::pending::<()>().await;
        }
    }
}
