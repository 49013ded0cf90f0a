//! A registry in a process of its own.

use std::ops::Deref;

use serde::Deserialize;
use tokio::process::Command;

use super::api::Api;
use super::program::{Finished, Program};
use super::setup::Setup;

/// A line that the program prints about itself with `--json`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum StatusLine {
    /// It serves.
    Serving {
        /// Where it is asked, without a slash at the end; nothing where another process answers requests.
        url: Option<String>,
        /// Where its metrics are, where these have a port of their own.
        metrics_url: Option<String>,
        /// The admin token, where this start has made one.
        admin_token: Option<String>,
    },
    /// It has ended in order.
    Stopped,
}

impl StatusLine {
    /// What a line tells, where it tells anything of that kind.
    pub fn by(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }

    /// Where it is asked.
    ///
    /// # Panics
    ///
    /// When it is asked nowhere.
    pub fn url(&self) -> &str {
        match self {
            Self::Serving { url: Some(url), .. } => url,
            _ => panic!("it answers no requests: {self:?}"),
        }
    }

    /// The admin token, where this start has made one.
    pub fn admin_token(&self) -> Option<&str> {
        match self {
            Self::Serving { admin_token, .. } => admin_token.as_deref(),
            Self::Stopped => None,
        }
    }
}

/// Starts a command of the program that serves, and waits until it does.
pub async fn started(mut command: Command) -> (Program, StatusLine) {
    command.arg("--json");
    let program = Program::start(command);
    let serves = |told: &StatusLine| matches!(told, StatusLine::Serving { .. });
    let told = program
        .find(|line| StatusLine::by(line).filter(serves))
        .await;
    (program, told)
}

/// A registry that serves, which is asked as its [`Api`]. Dropping it kills it.
pub struct ServingRegistry {
    /// Its process.
    pub program: Program,
    /// How it is asked.
    pub api: Api,
    /// What it said when it served.
    pub told: StatusLine,
    /// What it was started from.
    pub setup: Setup,
}

impl ServingRegistry {
    /// Starts what `command` starts and waits until it serves.
    pub(super) async fn of(setup: &Setup, command: Command) -> Self {
        let (program, told) = started(command).await;
        Self {
            program,
            api: Api::at(told.url()),
            told,
            setup: setup.clone(),
        }
    }

    /// Asks it to end, and checks that it ended in order.
    pub async fn stop(self) -> Finished {
        let ended = self.program.terminate().await;
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
        let last = ended.stdout.last().and_then(|line| StatusLine::by(line));
        assert_eq!(last, Some(StatusLine::Stopped), "{ended:?}");
        ended
    }
}

impl Deref for ServingRegistry {
    type Target = Api;

    fn deref(&self) -> &Api {
        &self.api
    }
}
