//! How a command ends, in one way for all of them: three exit codes, one line on standard error for whatever went
//! wrong, and with `--json` the same as a document on standard output.

use a2a_client::CallError;
use a2a_registry_core::config::ConfigError;
use a2a_registry_core::error::StartError;
use a2a_registry_embed::ModelError;
use bytes::Bytes;
use serde_json::{Value, json};

use super::terminal;

/// Result of a command that succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandOutcome {
    /// Done, or the answer is yes: exit code 0.
    Done,
    /// The answer is no, or empty: exit code 1.
    Negative,
}

/// How a command ends.
pub type CommandResult = Result<CommandOutcome, CommandError>;

impl CommandOutcome {
    /// Done where this holds; otherwise the answer is no.
    pub fn done_if(condition: bool) -> Self {
        match condition {
            true => Self::Done,
            false => Self::Negative,
        }
    }

    /// Done where a list has something in it; an empty one is the answer no.
    pub fn done_unless_empty<T>(list: &[T]) -> Self {
        Self::done_if(!list.is_empty())
    }
}

/// Why a command ended early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandError {
    /// Something went wrong, in one line that says what to do about it: exit code 2.
    Failed(String),
    /// The answer is no, and this line says why: exit code 1.
    Negative(String),
    /// One of these two, with more details than one line.
    Detailed(Box<CommandErrorDetails>),
    /// Something went wrong and was already reported where it happened: exit code 2.
    Reported,
    /// A second signal asked to end at once: exit code 130, as shells show an interrupted program.
    Interrupted,
    /// The reader of the output has closed it, as `head` does, so there is nothing to report: exit code 0.
    OutputClosed,
}

/// Details of a failure beside its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandErrorDetails {
    /// Whether the answer is no; else something went wrong.
    pub is_negative: bool,
    /// What went wrong or why not, in one line.
    pub summary: String,
    /// The line without flags and commands, for a reader who has no shell; `None` where it names none.
    pub without_commands: Option<String>,
    /// What people read above that line.
    pub preamble: Vec<String>,
    /// What `--json` prints: a problem document (RFC 9457), a registry's as it was received.
    pub document: Bytes,
}

impl CommandError {
    pub fn new(line: impl Into<String>) -> Self {
        Self::Failed(line.into())
    }

    /// The answer is no, for a reason with members of its own in the document.
    pub fn negative_with_members(summary: String, preamble: Vec<String>, members: &Value) -> Self {
        let document = build_problem(&summary, 1, members);
        Self::Detailed(Box::new(CommandErrorDetails {
            is_negative: true,
            summary,
            without_commands: None,
            preamble,
            document,
        }))
    }

    /// What went wrong or why not, without flags and commands.
    pub fn without_commands(self) -> Option<String> {
        match self {
            Self::Failed(line) | Self::Negative(line) => Some(line),
            Self::Detailed(details) => Some(details.without_commands.unwrap_or(details.summary)),
            Self::Reported | Self::Interrupted | Self::OutputClosed => None,
        }
    }

    /// The same failure with these words before its line.
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

    /// What `--json` prints of it; `None` if there is nothing to report.
    pub fn problem_document(&self) -> Option<Bytes> {
        match self {
            Self::Failed(line) => Some(build_problem(line, 2, &Value::Null)),
            Self::Negative(line) => Some(build_problem(line, 1, &Value::Null)),
            Self::Detailed(details) => Some(details.document.clone()),
            Self::Reported | Self::Interrupted | Self::OutputClosed => None,
        }
    }

    /// Prints the failure on standard error. The lines may quote a card or a server, so they are escaped for the
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

/// A problem document of this program, which no registry has answered.
pub(super) fn build_problem(detail: &str, exit_code: u8, members: &Value) -> Bytes {
    let title = match exit_code {
        1 => "The answer is no",
        _ => "The command failed",
    };
    let mut problem = json!({"title": title, "detail": detail, "exit_code": exit_code});
    if let (Some(problem), Some(members)) = (problem.as_object_mut(), members.as_object()) {
        problem.extend(members.clone());
    }
    Bytes::from(problem.to_string())
}

/// Makes failures of errors that say in one line what went wrong, and what to do about it.
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
                "The answer is no",
            ),
            (told(true), 1, "type", "/problems/not-found"),
            (told(false), 2, "type", "/problems/not-found"),
            (
                CommandError::negative_with_members(
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
