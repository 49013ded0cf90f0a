//! Standard output: tables for people, JSON for programs, and no panic when a reader goes away.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use serde::Serialize;

use super::client::RegistryResponse;
use super::command_error::{CommandError, CommandOutcome, CommandResult};
use super::terminal;

/// How the answer is to be written.
#[derive(Debug, Clone, Copy)]
pub struct Console {
    /// `--json`: exactly what the API answered.
    pub json: bool,
    /// Whether a person is looking at standard output.
    pub interactive: bool,
}

/// What `--json` prints of an answer.
pub trait JsonOutput {
    fn print_json(&self, console: &Console) -> Result<(), CommandError>;
}

impl<T> JsonOutput for RegistryResponse<T> {
    fn print_json(&self, console: &Console) -> Result<(), CommandError> {
        console.print_raw_json(&self.raw)
    }
}

impl<T: Serialize> JsonOutput for T {
    fn print_json(&self, console: &Console) -> Result<(), CommandError> {
        console.print_json(self)
    }
}

impl Console {
    /// A console on this process's standard output.
    pub fn new(json: bool) -> Self {
        Self {
            json,
            interactive: std::io::stdout().is_terminal(),
        }
    }

    /// Shows an answer: with `--json` the document, else the text that `text` writes.
    pub fn print_result(
        &self,
        document: &impl JsonOutput,
        print_text: impl FnOnce() -> Result<(), CommandError>,
    ) -> CommandResult {
        match self.json {
            true => document.print_json(self)?,
            false => print_text()?,
        }
        Ok(CommandOutcome::Done)
    }

    /// Writes one line of foreign or own text, made safe.
    pub fn print_line(&self, text: &str) -> Result<(), CommandError> {
        self.write_bytes(format!("{}\n", terminal::escape_line(text)).as_bytes())
    }

    /// Writes a text of several lines, made safe, with a line feed at its end.
    pub fn print_lines(&self, text: &str) -> Result<(), CommandError> {
        let safe = terminal::escape_lines(text);
        self.write_bytes(format!("{}\n", safe.trim_end_matches('\n')).as_bytes())
    }

    /// Writes bytes as they are, and nothing else.
    pub fn write_bytes(&self, bytes: &[u8]) -> Result<(), CommandError> {
        let mut out = std::io::stdout().lock();
        out.write_all(bytes)?;
        out.flush()?;
        Ok(())
    }

    /// Writes a JSON text as it was received, on a line of its own. What would steer a terminal is escaped as JSON
    /// has it, so that a program reads the same.
    pub fn print_raw_json(&self, bytes: &[u8]) -> Result<(), CommandError> {
        let text = String::from_utf8_lossy(bytes);
        // Between members a carriage return is white space, and on a terminal goes back over what it follows.
        let safe = a2a_card::terminal_safe_json(text.trim_ascii_end()).replace('\r', " ");
        self.write_bytes(format!("{safe}\n").as_bytes())
    }

    /// How many columns the window has, where a person looks at one.
    pub fn terminal_width(&self) -> Option<usize> {
        let table = comfy_table::Table::new();
        let columns = table.width().filter(|_| self.interactive);
        columns.map(usize::from)
    }

    /// A text for a table or a list: on a terminal at most this many columns, elsewhere all of it.
    pub fn shorten(&self, text: &str, columns: usize) -> String {
        if self.interactive {
            terminal::escape_and_truncate(text, columns)
        } else {
            terminal::escape_line(text)
        }
    }

    /// Writes a value as one line of JSON.
    pub fn print_json(&self, value: &impl Serialize) -> Result<(), CommandError> {
        let text = serde_json::to_vec(value).map_err(|error| {
            CommandError::new(format!("the answer cannot be written as JSON: {error}"))
        })?;
        self.print_raw_json(&text)
    }
}

/// Reports a failure on standard error, and with `--json` as a document on standard output too; gives the exit code.
pub fn report_result(result: CommandResult, console: &Console) -> ExitCode {
    let error = match result {
        Ok(CommandOutcome::Done) => return ExitCode::from(0),
        Ok(CommandOutcome::Negative) => return ExitCode::from(1),
        Err(failure) => failure,
    };
    let code = error.exit_code();
    if console.json
        && let Some(document) = error.problem_document()
    {
        // If standard output is closed, the line on standard error still says what failed.
        let _ = console.print_raw_json(&document);
    }
    error.print();
    ExitCode::from(code)
}
