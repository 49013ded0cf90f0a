//! A registry in a process of its own.

use std::ops::Deref;

use serde::Deserialize;
use tokio::process::Command;

use super::api::RegistryClient;
use super::program::{FinishedProgram, Program};
use super::setup::RegistrySetup;

/// A status line that the program prints with `--json`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum StatusLine {
    /// The process is serving.
    Serving {
        /// Its URL, without a trailing slash; `None` if another process answers requests.
        url: Option<String>,
        /// The URL of its metrics, if they have a port of their own.
        metrics_url: Option<String>,
        /// The admin token, if this start has made one.
        admin_token: Option<String>,
    },
    /// The process has ended properly.
    Stopped,
}

impl StatusLine {
    /// Parses a line, if it is a status line.
    pub fn parse(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }

    /// The URL of the registry.
    ///
    /// # Panics
    ///
    /// If it has none.
    pub fn url(&self) -> &str {
        match self {
            Self::Serving { url: Some(url), .. } => url,
            _ => panic!("the process serves no requests: {self:?}"),
        }
    }

    /// The admin token, if this start has made one.
    pub fn admin_token(&self) -> Option<&str> {
        match self {
            Self::Serving { admin_token, .. } => admin_token.as_deref(),
            Self::Stopped => None,
        }
    }
}

/// Starts a command that serves a registry, and waits until it serves.
pub async fn start_serving(mut command: Command) -> (Program, StatusLine) {
    command.arg("--json");
    let program = Program::start(command);
    let serves = |status_line: &StatusLine| matches!(status_line, StatusLine::Serving { .. });
    let status_line = program
        .wait_for_match(|line| StatusLine::parse(line).filter(serves))
        .await;
    (program, status_line)
}

/// A serving registry with its client. Dropping it kills its process.
pub struct ServingRegistry {
    /// Its process.
    pub program: Program,
    /// Its client.
    pub api: RegistryClient,
    /// Its status line.
    pub status_line: StatusLine,
    /// Its setup.
    pub setup: RegistrySetup,
}

impl ServingRegistry {
    /// Starts the command and waits until the registry serves.
    pub(super) async fn start(setup: &RegistrySetup, command: Command) -> Self {
        let (program, status_line) = start_serving(command).await;
        Self {
            program,
            api: RegistryClient::new(status_line.url()),
            status_line,
            setup: setup.clone(),
        }
    }

    /// Ends the registry, and checks that it ended properly.
    pub async fn stop(self) -> FinishedProgram {
        let ended = self.program.terminate().await;
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
        let last = ended.stdout.last().and_then(|line| StatusLine::parse(line));
        assert_eq!(last, Some(StatusLine::Stopped), "{ended:?}");
        ended
    }
}

impl Deref for ServingRegistry {
    type Target = RegistryClient;

    fn deref(&self) -> &RegistryClient {
        &self.api
    }
}
