//! Results of commands: three exit codes, one line on standard error for every error, and with `--json` the same as a
//! document on standard output.

use a2a_client::CallError;
use a2a_registry_core::config::ConfigError;
use a2a_registry_core::error::StartError;
use a2a_registry_embed::ModelError;
use bytes::Bytes;
use serde_json::{Value, json};

use super::terminal;

/// Outcome of a command that ran without an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandOutcome {
    /// Done, or a positive result: exit code 0.
    Done,
    /// A negative or empty result: exit code 1.
    Negative,
}

/// Result of a command.
pub type CommandResult = Result<CommandOutcome, CommandError>;

impl CommandOutcome {
    /// `Done` if this holds, otherwise `Negative`.
    pub fn done_if(condition: bool) -> Self {
        match condition {
            true => Self::Done,
            false => Self::Negative,
        }
    }

    /// `Done` if the list has entries, otherwise `Negative`.
    pub fn done_unless_empty<T>(list: &[T]) -> Self {
        Self::done_if(!list.is_empty())
    }
}

/// Why a command ended early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandError {
    /// An error, in one line that says what to do about it: exit code 2.
    Failed(String),
    /// A negative result, with the reason in this line: exit code 1.
    Negative(String),
    /// One of these two, with more details than one line.
    Detailed(Box<CommandErrorDetails>),
    /// An error that was already reported where it happened: exit code 2.
    Reported,
    /// A second signal to end at once: exit code 130, which shells use for interrupted programs.
    Interrupted,
    /// The reader closed the output, as `head` does, so there is nothing to report: exit code 0.
    OutputClosed,
}

/// Details of an error beside its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandErrorDetails {
    /// Whether this is a negative result, otherwise an error.
    pub is_negative: bool,
    /// The error or the reason, in one line.
    pub summary: String,
    /// The line without flags and commands, for a reader without a shell; `None` if it has none.
    pub without_commands: Option<String>,
    /// Lines for people, printed above the summary.
    pub preamble: Vec<String>,
    /// Output of `--json`: a problem document (RFC 9457), from a registry as received.
    pub document: Bytes,
}

impl CommandError {
    pub fn new(line: impl Into<String>) -> Self {
        Self::Failed(line.into())
    }

    /// A negative result with additional members in its document.
    pub fn negative_with_problem_members(
        summary: String,
        preamble: Vec<String>,
        members: &Value,
    ) -> Self {
        let document = build_problem_document(&summary, 1, members);
        Self::Detailed(Box::new(CommandErrorDetails {
            is_negative: true,
            summary,
            without_commands: None,
            preamble,
            document,
        }))
    }

    /// The line without flags and commands.
    pub fn message_without_commands(self) -> Option<String> {
        match self {
            Self::Failed(line) | Self::Negative(line) => Some(line),
            Self::Detailed(details) => Some(details.without_commands.unwrap_or(details.summary)),
            Self::Reported | Self::Interrupted | Self::OutputClosed => None,
        }
    }

    /// The same error with this context before its line.
    #[must_use]
    pub fn with_context(self, context: &str) -> Self {
        match self {
            Self::Failed(line) => Self::Failed(format!("{context}: {line}")),
            Self::Negative(line) => Self::Negative(format!("{context}: {line}")),
            Self::Detailed(mut details) => {
                details.summary = format!("{context}: {}", details.summary);
                details.without_commands = details
                    .without_commands
                    .map(|line| format!("{context}: {line}"));
                Self::Detailed(details)
            }
            other => other,
        }
    }

    /// Output of `--json` for this error; `None` if there is nothing to report.
    pub fn problem_document(&self) -> Option<Bytes> {
        match self {
            Self::Failed(line) => Some(build_problem_document(line, 2, &Value::Null)),
            Self::Negative(line) => Some(build_problem_document(line, 1, &Value::Null)),
            Self::Detailed(details) => Some(details.document.clone()),
            Self::Reported | Self::Interrupted | Self::OutputClosed => None,
        }
    }

    /// Prints the error on standard error. The lines may quote a card or a server, so they are escaped for the
    /// terminal.
    pub fn print(self) {
        let mut lines = self.output_lines();
        let last = lines.pop();
        lines.iter().for_each(|line| terminal::eprint_note(line));
        last.iter().for_each(|line| terminal::eprint_error(line));
    }

    /// Lines on standard error, the summary last.
    fn output_lines(self) -> Vec<String> {
        match self {
            Self::Failed(line) | Self::Negative(line) => vec![line],
            Self::Detailed(details) => {
                let mut lines = details.preamble;
                lines.push(details.summary);
                lines
            }
            Self::Reported | Self::Interrupted | Self::OutputClosed => Vec::new(),
        }
    }

    pub(super) fn exit_code(&self) -> u8 {
        match self {
            Self::OutputClosed => 0,
            Self::Negative(_) => 1,
            Self::Detailed(details) if details.is_negative => 1,
            Self::Failed(_) | Self::Detailed(_) | Self::Reported => 2,
            Self::Interrupted => 130,
        }
    }
}

/// Builds a problem document of this program, for an error that did not come from a registry.
pub(super) fn build_problem_document(detail: &str, exit_code: u8, members: &Value) -> Bytes {
    let title = match exit_code {
        1 => "Negative result",
        _ => "The command failed",
    };
    let mut problem = json!({"title": title, "detail": detail, "exit_code": exit_code});
    if let (Some(problem), Some(members)) = (problem.as_object_mut(), members.as_object()) {
        problem.extend(members.clone());
    }
    Bytes::from(problem.to_string())
}

/// Converts errors whose text is one line with the error and advice.
macro_rules! failures_of {
    ($($error:ty),+) => {
        $(impl From<$error> for CommandError {
            fn from(error: $error) -> Self {
                Self::Failed(error.to_string())
            }
        })+
    };
}

failures_of!(ConfigError, ModelError, StartError, CallError);

impl From<std::io::Error> for CommandError {
    /// For errors of writing to standard output only.
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            return Self::OutputClosed;
        }
        Self::Failed(format!("the output cannot be written: {error}"))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn every_end_has_one_code_and_one_document() {
        let told = |no| {
            CommandError::Detailed(Box::new(CommandErrorDetails {
                is_negative: no,
                summary: "the line".into(),
                without_commands: None,
                preamble: vec!["above".into()],
                document: Bytes::from_static(b"{\"type\":\"/problems/not-found\"}"),
            }))
        };
        for (failure, code, member, value) in [
            (
                CommandError::new("the line"),
                2,
                "title",
                "The command failed",
            ),
            (
                CommandError::Negative("the line".into()),
                1,
                "title",
                "Negative result",
            ),
            (told(true), 1, "type", "/problems/not-found"),
            (told(false), 2, "type", "/problems/not-found"),
            (
                CommandError::negative_with_problem_members(
                    "the line".into(),
                    Vec::new(),
                    &json!({"of": "mine"}),
                ),
                1,
                "of",
                "mine",
            ),
        ] {
            assert_eq!(failure.exit_code(), code);
            let document = failure.problem_document().unwrap();
            let document: Value = serde_json::from_slice(&document).unwrap();
            assert_eq!(document[member], value, "{document}");
            let named = failure.with_context("a.example").output_lines().pop();
            assert_eq!(named.as_deref(), Some("a.example: the line"));
        }
        for (silent, code) in [
            (CommandError::Reported, 2),
            (CommandError::Interrupted, 130),
            (CommandError::OutputClosed, 0),
        ] {
            assert_eq!(
                (silent.exit_code(), silent.problem_document()),
                (code, None)
            );
        }
    }
}
