//! Standard output: tables for people, JSON for programs, and no panic when a reader goes away.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use serde::Serialize;

use super::client::RegistryResponse;
use super::command_error::{CommandError, CommandOutcome, CommandResult};
use super::terminal;

/// Output of a command, as text or JSON.
#[derive(Debug, Clone, Copy)]
pub struct Console {
    /// `--json`: exactly what the API returned.
    pub json: bool,
    /// Whether standard output is a terminal.
    pub interactive: bool,
}

/// Result with a form for `--json`.
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
    /// Console for the standard output of this process.
    pub fn new(json: bool) -> Self {
        Self {
            json,
            interactive: std::io::stdout().is_terminal(),
        }
    }

    /// Prints a result: with `--json` the document, otherwise the text that `text` writes.
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

    /// Prints one line, escaped for the terminal.
    pub fn print_line(&self, text: &str) -> Result<(), CommandError> {
        self.write_bytes(format!("{}\n", terminal::escape_line(text)).as_bytes())
    }

    /// Prints a text of several lines, escaped for the terminal, with a final line feed.
    pub fn print_lines(&self, text: &str) -> Result<(), CommandError> {
        let safe = terminal::escape_lines(text);
        self.write_bytes(format!("{}\n", safe.trim_end_matches('\n')).as_bytes())
    }

    /// Writes bytes unchanged.
    pub fn write_bytes(&self, bytes: &[u8]) -> Result<(), CommandError> {
        let mut out = std::io::stdout().lock();
        out.write_all(bytes)?;
        out.flush()?;
        Ok(())
    }

    /// Writes a JSON text as received, on a line of its own. Characters that would control a terminal become JSON
    /// escapes, so that a program reads the same value.
    pub fn print_raw_json(&self, bytes: &[u8]) -> Result<(), CommandError> {
        let text = String::from_utf8_lossy(bytes);
        // Between members a carriage return is white space, but on a terminal it moves the cursor back over the line.
        let safe = a2a_card::terminal_safe_json(text.trim_ascii_end()).replace('\r', " ");
        self.write_bytes(format!("{safe}\n").as_bytes())
    }

    /// Columns of the terminal, if standard output is one.
    pub fn terminal_width(&self) -> Option<usize> {
        let table = comfy_table::Table::new();
        let columns = table.width().filter(|_| self.interactive);
        columns.map(usize::from)
    }

    /// Text for a table or a list: cut to this many columns on a terminal, complete elsewhere.
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
            CommandError::new(format!("the result cannot be written as JSON: {error}"))
        })?;
        self.print_raw_json(&text)
    }
}

/// Reports an error on standard error, and with `--json` as a document on standard output too; returns the exit code.
pub fn report_command_result(result: CommandResult, console: &Console) -> ExitCode {
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
