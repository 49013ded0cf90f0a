//! Errors in policies, with their position.

use std::fmt;

use miette::Diagnostic;

/// An error in a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyError {
    pub policy: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// The text of that line, cut to 120 characters.
    pub excerpt: String,
    pub message: String,
}

const MAX_EXCERPT_CHARS: usize = 120;

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            policy,
            line,
            column,
            message,
            ..
        } = self;
        write!(f, "{policy}:{line}:{column}: {message}")
    }
}

impl PolicyError {
    /// An error about a whole policy, positioned at its start.
    pub fn at_start(policy: &str, text: &str, message: impl Into<String>) -> Self {
        let begin = text.len() - text.trim_start().len();
        Self::at_byte(policy, text, begin, message)
    }

    /// An error at a byte offset of a policy.
    pub(crate) fn at_byte(
        policy: &str,
        text: &str,
        byte: usize,
        message: impl Into<String>,
    ) -> Self {
        let mut byte = byte.min(text.len());
        while !text.is_char_boundary(byte) {
            byte -= 1;
        }
        let before = &text[..byte];
        let line_begin = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = text[line_begin..].lines().next().unwrap_or_default();
        Self {
            policy: policy.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_begin..].chars().count() + 1,
            excerpt: line.chars().take(MAX_EXCERPT_CHARS).collect(),
            message: message.into(),
        }
    }

    /// Converts a Cedar diagnostic, with its position and help text.
    pub(crate) fn from_diagnostic(policy: &str, text: &str, told: &dyn Diagnostic) -> Self {
        let first_label = told.labels().and_then(|mut labels| labels.next());
        let message = match told.help() {
            Some(help) => format!("{told}: {help}"),
            None => told.to_string(),
        };
        // Cedar's messages repeat the policy's name, which this error contains already.
        let prefix = format!("for policy `{policy}`, ");
        let message = message.strip_prefix(&prefix).unwrap_or(&message);
        match first_label {
            Some(label) => Self::at_byte(policy, text, label.offset(), message),
            None => Self::at_start(policy, text, message),
        }
    }
}
