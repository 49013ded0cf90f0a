//! Answer on a terminal: the agent's text on standard output, everything else on standard error.

use std::collections::{HashMap, HashSet};

use a2a_client::{AgentResponse, ArtifactSummary, StreamEvent, StreamEventContent};

use super::agent_call::AgentCallArgs;
use crate::command_error::CommandError;
use crate::console::Console;
use crate::terminal;

/// Columns of the description of a part without text.
const PART_COLUMNS: usize = 120;
/// Limit for pending text, in bytes.
const MAX_PENDING_BYTES: usize = 16;
/// Columns of the text of a transient state.
const STATUS_COLUMNS: usize = 400;

/// Output so far.
pub(crate) struct Transcript<'a> {
    pub console: &'a Console,
    /// Whether the user's next line continues this answer, so that no command for it is printed.
    pub in_conversation: bool,
    raw: bool,
    /// Printed text of each artifact, by its id. The stream's limit bounds them.
    printed_artifacts: HashMap<String, String>,
    /// Artifact of the last text.
    current_artifact: Option<String>,
    printed_parts: HashSet<String>,
    last_status: Option<(String, String)>,
    /// Whether any text was printed, and whether the current line is unfinished.
    has_written_text: bool,
    is_mid_line: bool,
    /// End of the last piece of text whose meaning depends on the next piece.
    pending_text: String,
}

impl<'a> Transcript<'a> {
    /// Creates an empty transcript; with `raw`, text is printed unchanged.
    pub fn new(console: &'a Console, raw: bool) -> Self {
        Self {
            console,
            in_conversation: false,
            raw,
            printed_artifacts: HashMap::new(),
            current_artifact: None,
            printed_parts: HashSet::new(),
            last_status: None,
            has_written_text: false,
            is_mid_line: false,
            pending_text: String::new(),
        }
    }

    /// Prints what an event adds. The states of an answer without a stream are not printed, because it is printed at
    /// its end.
    pub fn print_event(
        &mut self,
        event: &StreamEvent,
        is_streamed: bool,
    ) -> Result<(), CommandError> {
        match &event.kind {
            StreamEventContent::Message(_) => Ok(()),
            StreamEventContent::Task(_) if !is_streamed => Ok(()),
            StreamEventContent::Task(task) => {
                for artifact in &task.artifacts {
                    self.print_artifact(artifact, false)?;
                }
                let state = task.state.as_deref().unwrap_or_default();
                self.print_status(state, &task.status_text)
            }
            StreamEventContent::Status(status) => {
                self.print_other_parts(&status.other_parts)?;
                self.print_status(&status.state, &status.text)
            }
            StreamEventContent::Artifact(update) => {
                self.print_artifact(&update.artifact, update.is_append)
            }
        }
    }

    /// Prints the rest of the answer, and how it ended.
    pub fn print_end(
        &mut self,
        response: &AgentResponse,
        arguments: &AgentCallArgs,
    ) -> Result<(), CommandError> {
        let state = response.state.as_deref();
        let is_told =
            state.is_none_or(|state| state == "completed" || is_transient_task_state(state));
        if !self.has_written_text {
            self.write_text(&response.text)?;
        } else if !is_told && !response.status_text.is_empty() {
            self.start_paragraph()?;
            self.write_text(&response.status_text)?;
        }
        self.end_line()?;
        let artifacts = response.artifacts.iter();
        let parts: Vec<_> = response
            .other_parts
            .iter()
            .chain(artifacts.flat_map(|artifact| &artifact.other_parts))
            .cloned()
            .collect();
        self.print_other_parts(&parts)?;
        match (
            arguments.next_step_hint(response),
            response.state.as_deref(),
        ) {
            (Some(_), Some("input-required"))
                if self.in_conversation && response.unfinished_reason.is_none() =>
            {
                terminal::eprint_note("the agent asks for more input");
            }
            (Some(step), _) => terminal::eprint_note(&step),
            (None, Some("completed") | None) if !self.has_written_text => {
                terminal::eprint_note("the agent answered without text; --json shows everything");
            }
            (None, Some("completed") | None) => {}
            (None, Some(state)) => terminal::eprint_note(&format!("the task is {state}")),
        }
        Ok(())
    }

    /// Ends an unfinished line, so that something else can be printed.
    pub fn end_line(&mut self) -> Result<(), CommandError> {
        if self.is_mid_line {
            self.console.write_bytes(b"\n")?;
            self.is_mid_line = false;
        }
        Ok(())
    }

    /// Prints a transient state on standard error, once. The text of the final state is part of the answer.
    fn print_status(&mut self, state: &str, text: &str) -> Result<(), CommandError> {
        let status = Some((state.to_owned(), text.to_owned()));
        if !is_transient_task_state(state) || text.is_empty() || self.last_status == status {
            return Ok(());
        }
        self.last_status = status;
        self.end_line_on_terminal()?;
        let text = terminal::escape_and_truncate(text, STATUS_COLUMNS);
        terminal::eprint_note(&format!("{state}: {text}"));
        Ok(())
    }

    /// Describes parts without text on standard error, each once.
    fn print_other_parts(&mut self, parts: &[String]) -> Result<(), CommandError> {
        for part in parts {
            let part = terminal::escape_and_truncate(part, PART_COLUMNS);
            if !self.printed_parts.contains(&part) {
                self.end_line_on_terminal()?;
                terminal::eprint_note(&format!("also: {part}"));
                self.printed_parts.insert(part);
            }
        }
        Ok(())
    }

    fn print_artifact(
        &mut self,
        artifact: &ArtifactSummary,
        append: bool,
    ) -> Result<(), CommandError> {
        let id = artifact.id.clone().unwrap_or_default();
        let printed = self.printed_artifacts.entry(id.clone()).or_default();
        let new_text = match (append, unprinted_text(printed, &artifact.text)) {
            (true, _) => artifact.text.clone(),
            (false, Some(rest)) => rest.to_owned(),
            // The text was replaced by another one, which is printed as a whole.
            (false, None) => {
                printed.clear();
                self.current_artifact = None;
                artifact.text.clone()
            }
        };
        printed.push_str(&new_text);
        if !new_text.is_empty() {
            if self.current_artifact.as_ref() != Some(&id) {
                self.start_paragraph()?;
                self.current_artifact = Some(id);
            }
            self.write_text(&new_text)?;
        }
        self.print_other_parts(&artifact.other_parts)
    }

    /// Separates the next text from the previous one by an empty line.
    fn start_paragraph(&mut self) -> Result<(), CommandError> {
        self.end_line()?;
        if self.has_written_text {
            self.console.write_bytes(b"\n")?;
        }
        Ok(())
    }

    fn write_text(&mut self, text: &str) -> Result<(), CommandError> {
        if text.is_empty() {
            return Ok(());
        }
        let safe = match self.raw {
            true => text.to_owned(),
            false => {
                let mut whole = std::mem::take(&mut self.pending_text) + text;
                self.pending_text = split_incomplete_line_break(&mut whole);
                terminal::escape_lines(&whole)
            }
        };
        if safe.is_empty() {
            return Ok(());
        }
        self.console.write_bytes(safe.as_bytes())?;
        self.has_written_text = true;
        self.is_mid_line = !safe.ends_with('\n');
        Ok(())
    }

    /// Ends an unfinished line on a terminal, where both outputs meet, before a note.
    fn end_line_on_terminal(&mut self) -> Result<(), CommandError> {
        match self.console.interactive {
            true => self.end_line(),
            false => Ok(()),
        }
    }
}

/// Cuts off the end of a piece of text whose meaning depends on the next piece: the first character of a two-character
/// line break.
fn split_incomplete_line_break(text: &mut String) -> String {
    let settled = text.trim_end_matches('\r').len();
    match text.len() - settled {
        // A longer sequence is ordinary text.
        more if more > MAX_PENDING_BYTES => String::new(),
        _ => text.split_off(settled),
    }
}

/// Whether the agent leaves a state by itself; its text is printed on arrival.
fn is_transient_task_state(state: &str) -> bool {
    matches!(state, "submitted" | "working" | "unknown")
}

/// Text of `full_text` after the printed one; `None` if it does not start with that. Line breaks do not count: those
/// between the parts of an artifact were added by the reader.
fn unprinted_text<'a>(printed: &str, full_text: &'a str) -> Option<&'a str> {
    let is_break = |character: &char| matches!(character, '\n' | '\r');
    let mut rest = full_text.char_indices();
    for printed_character in printed.chars().filter(|character| !is_break(character)) {
        let (_, next) = rest.find(|(_, character)| !is_break(character))?;
        if next != printed_character {
            return None;
        }
    }
    // Line breaks at the end of the printed text were printed.
    let mut rest = rest.as_str();
    for _ in printed.chars().rev().take_while(is_break) {
        rest = rest.strip_prefix(['\n', '\r']).unwrap_or(rest);
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_in_pieces_is_shown_as_in_one() {
        let whole = "one\r\ntwo\r\n\r\nthree\r";
        let (mut printed, mut pending) = (String::new(), String::new());
        for piece in ["one\r", "\ntwo\r\n", "\r", "\nthree\r"] {
            let mut text = pending + piece;
            pending = split_incomplete_line_break(&mut text);
            printed.push_str(&terminal::escape_lines(&text));
        }
        assert_eq!(pending, "\r");
        assert_eq!(
            printed,
            terminal::escape_lines(whole.trim_end_matches('\r'))
        );
        assert!(!printed.contains("\\u{"), "{printed}");
        let mut many = "\r".repeat(MAX_PENDING_BYTES + 1);
        assert_eq!(split_incomplete_line_break(&mut many), "");
        assert_eq!(many.len(), MAX_PENDING_BYTES + 1);
    }

    #[test]
    fn only_what_is_new_of_a_text_is_printed_again() {
        for (shown, whole, expected) in [
            ("", "day 1", Some("day 1")),
            ("day 1", "day 1", Some("")),
            ("day 1", "day 1\nday 2", Some("\nday 2")),
            ("day 1\nday 2", "day 1day 2!", Some("!")),
            ("one\n", "one\n", Some("")),
            ("one\n", "one\n\ntwo", Some("\ntwo")),
            ("one\n", "onetwo", Some("two")),
            ("day 1", "day", None),
            ("day 1", "night 1", None),
            ("é東", "é東京", Some("京")),
        ] {
            assert_eq!(
                unprinted_text(shown, whole),
                expected,
                "{shown:?} {whole:?}"
            );
        }
    }
}
