//! How a command ends: three exit codes, and one line for whatever went wrong.

use std::process::ExitCode;

use super::terminal;

/// How a command ended that did what it was asked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Done, or the answer is yes: exit code 0.
    Done,
    /// The answer is no, or empty: exit code 1.
    No,
}

/// Why a command ended early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// Something went wrong, in one line that says what to do about it: exit code 2.
    Failed(String),
    /// The answer is no, and this line says why: exit code 1.
    No(String),
    /// A second signal asked to end at once: exit code 130, as shells show an interrupted program.
    Interrupted,
    /// Whoever read the output has gone away, as `head` does. Nobody is left to be told: exit code 0.
    OutputClosed,
}

impl Failure {
    /// Something went wrong.
    pub fn new(line: impl Into<String>) -> Self {
        Self::Failed(line.into())
    }
}

impl From<std::io::Error> for Failure {
    /// For errors of writing to standard output only.
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            return Self::OutputClosed;
        }
        Self::Failed(format!("the output cannot be written: {error}"))
    }
}

/// Says on standard error what went wrong, and gives the exit code.
pub fn conclude(result: Result<Outcome, Failure>) -> ExitCode {
    let (line, code) = match result {
        Ok(Outcome::Done) | Err(Failure::OutputClosed) => (None, 0),
        Ok(Outcome::No) => (None, 1),
        Err(Failure::No(line)) => (Some(line), 1),
        Err(Failure::Failed(line)) => (Some(line), 2),
        Err(Failure::Interrupted) => (None, 130),
    };
    if let Some(line) = line {
        // The line may quote a card or a server; nothing of that may steer the terminal.
        terminal::complain(&line);
    }
    ExitCode::from(code)
}
