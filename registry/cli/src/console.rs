//! Standard output: tables for people, JSON for programs, and no panic when a reader goes away.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use serde::Serialize;

use super::client::RegistryResponse;
use super::failure::{CommandOutcome, CommandResult, Failure};
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
pub trait Document {
    fn print(&self, console: &Console) -> Result<(), Failure>;
}

impl<T> Document for RegistryResponse<T> {
    fn print(&self, console: &Console) -> Result<(), Failure> {
        console.raw_json(&self.raw)
    }
}

impl<T: Serialize> Document for T {
    fn print(&self, console: &Console) -> Result<(), Failure> {
        console.json(self)
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
    pub fn show(
        &self,
        document: &impl Document,
        text: impl FnOnce() -> Result<(), Failure>,
    ) -> CommandResult {
        match self.json {
            true => document.print(self)?,
            false => text()?,
        }
        Ok(CommandOutcome::Done)
    }

    /// Writes one line of foreign or own text, made safe.
    pub fn line(&self, text: &str) -> Result<(), Failure> {
        self.write(format!("{}\n", terminal::line(text)).as_bytes())
    }

    /// Writes a text of several lines, made safe, with a line feed at its end.
    pub fn lines(&self, text: &str) -> Result<(), Failure> {
        let safe = terminal::lines(text);
        self.write(format!("{}\n", safe.trim_end_matches('\n')).as_bytes())
    }

    /// Writes bytes as they are, and nothing else.
    pub fn write(&self, bytes: &[u8]) -> Result<(), Failure> {
        let mut out = std::io::stdout().lock();
        out.write_all(bytes)?;
        out.flush()?;
        Ok(())
    }

    /// Writes a JSON text as it was received, on a line of its own. What would steer a terminal is escaped as JSON
    /// has it, so that a program reads the same.
    pub fn raw_json(&self, bytes: &[u8]) -> Result<(), Failure> {
        let text = String::from_utf8_lossy(bytes);
        // Between members a carriage return is white space, and on a terminal goes back over what it follows.
        let safe = a2a_card::visible_json(text.trim_ascii_end()).replace('\r', " ");
        self.write(format!("{safe}\n").as_bytes())
    }

    /// How many columns the window has, where a person looks at one.
    pub fn columns(&self) -> Option<usize> {
        let table = comfy_table::Table::new();
        let columns = table.width().filter(|_| self.interactive);
        columns.map(usize::from)
    }

    /// A text for a table or a list: on a terminal at most this many columns, elsewhere all of it.
    pub fn short(&self, text: &str, columns: usize) -> String {
        if self.interactive {
            terminal::short(text, columns)
        } else {
            terminal::line(text)
        }
    }

    /// Writes a value as one line of JSON.
    pub fn json(&self, value: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_vec(value).map_err(|error| {
            Failure::new(format!("the answer cannot be written as JSON: {error}"))
        })?;
        self.raw_json(&text)
    }
}

/// Reports a failure on standard error, and with `--json` as a document on standard output too; gives the exit code.
pub fn conclude(result: CommandResult, console: &Console) -> ExitCode {
    let failure = match result {
        Ok(CommandOutcome::Done) => return ExitCode::from(0),
        Ok(CommandOutcome::No) => return ExitCode::from(1),
        Err(failure) => failure,
    };
    let code = failure.code();
    if console.json
        && let Some(document) = failure.document()
    {
        // If standard output is closed, the line on standard error still says what failed.
        let _ = console.raw_json(&document);
    }
    failure.complain();
    ExitCode::from(code)
}
