//! An answer as it is read on a terminal: the agent's text on standard output, all else beside it.

use std::collections::{HashMap, HashSet};

use a2a_client::{AgentAnswer, ArtifactSummary, EventKind, StreamEvent};

use super::agent::AgentArgs;
use crate::console::Console;
use crate::failure::Failure;
use crate::terminal;

/// How much of a part that is no text is told, in columns.
const PART_COLUMNS: usize = 120;
/// Most bytes of text that wait for the next piece.
const UNSETTLED: usize = 16;
/// How much of the text of a passing state is told, in columns.
const STATUS_COLUMNS: usize = 400;

/// What was printed so far.
pub(crate) struct Transcript<'a> {
    pub console: &'a Console,
    /// Whether the user's next line continues what this answer leaves open, so that no command for it is told.
    pub in_conversation: bool,
    raw: bool,
    /// The text of each artifact that was printed, by its id. The stream's limit bounds them.
    artifacts: HashMap<String, String>,
    /// The artifact that the last text belongs to.
    current: Option<String>,
    parts: HashSet<String>,
    status: Option<(String, String)>,
    /// Whether any text was printed, and whether a line is begun.
    written: bool,
    in_line: bool,
    /// The end of the last piece of text, as far as its meaning depends on the next one.
    held: String,
}

impl<'a> Transcript<'a> {
    /// Nothing was printed; with `raw`, text is printed as it came.
    pub fn new(console: &'a Console, raw: bool) -> Self {
        Self {
            console,
            in_conversation: false,
            raw,
            artifacts: HashMap::new(),
            current: None,
            parts: HashSet::new(),
            status: None,
            written: false,
            in_line: false,
            held: String::new(),
        }
    }

    /// Prints what an event adds. The states of an answer that was waited for are not printed: it is printed at its end.
    pub fn event(&mut self, event: &StreamEvent, streamed: bool) -> Result<(), Failure> {
        match &event.kind {
            EventKind::Message(_) => Ok(()),
            EventKind::Task(_) if !streamed => Ok(()),
            EventKind::Task(task) => {
                for artifact in &task.artifacts {
                    self.artifact(artifact, false)?;
                }
                let state = task.state.as_deref().unwrap_or_default();
                self.status(state, &task.status_text)
            }
            EventKind::Status(status) => {
                self.others(&status.other_parts)?;
                self.status(&status.state, &status.text)
            }
            EventKind::Artifact(update) => self.artifact(&update.artifact, update.append),
        }
    }

    /// Prints the rest of the answer, and how it ended.
    pub fn end(&mut self, answer: &AgentAnswer, arguments: &AgentArgs) -> Result<(), Failure> {
        let state = answer.state.as_deref();
        let is_told = state.is_none_or(|state| state == "completed" || is_passing(state));
        if !self.written {
            self.text(&answer.text)?;
        } else if !is_told && !answer.status_text.is_empty() {
            self.paragraph()?;
            self.text(&answer.status_text)?;
        }
        self.pause()?;
        let artifacts = answer.artifacts.iter();
        let parts: Vec<_> = answer
            .other_parts
            .iter()
            .chain(artifacts.flat_map(|artifact| &artifact.other_parts))
            .cloned()
            .collect();
        self.others(&parts)?;
        match (arguments.next_step(answer), answer.state.as_deref()) {
            (Some(_), Some("input-required"))
                if self.in_conversation && answer.unfinished.is_none() =>
            {
                terminal::note("the agent asks for more input");
            }
            (Some(step), _) => terminal::note(&step),
            (None, Some("completed") | None) if !self.written => {
                terminal::note("the agent answered without a text; --json shows everything");
            }
            (None, Some("completed") | None) => {}
            (None, Some(state)) => terminal::note(&format!("the task is {state}")),
        }
        Ok(())
    }

    /// Ends the line that is begun, so that something else can be printed.
    pub fn pause(&mut self) -> Result<(), Failure> {
        if self.in_line {
            self.console.write(b"\n")?;
            self.in_line = false;
        }
        Ok(())
    }

    /// A passing state is told beside the answer, once. The text of the last one is part of the answer.
    fn status(&mut self, state: &str, text: &str) -> Result<(), Failure> {
        let status = Some((state.to_owned(), text.to_owned()));
        if !is_passing(state) || text.is_empty() || self.status == status {
            return Ok(());
        }
        self.status = status;
        self.break_line()?;
        let text = terminal::short(text, STATUS_COLUMNS);
        terminal::note(&format!("{state}: {text}"));
        Ok(())
    }

    /// Parts that are no text are told beside the answer, each once.
    fn others(&mut self, parts: &[String]) -> Result<(), Failure> {
        for part in parts {
            let part = terminal::short(part, PART_COLUMNS);
            if !self.parts.contains(&part) {
                self.break_line()?;
                terminal::note(&format!("also: {part}"));
                self.parts.insert(part);
            }
        }
        Ok(())
    }

    fn artifact(&mut self, artifact: &ArtifactSummary, append: bool) -> Result<(), Failure> {
        let id = artifact.id.clone().unwrap_or_default();
        let shown = self.artifacts.entry(id.clone()).or_default();
        let more = match (append, remainder(shown, &artifact.text)) {
            (true, _) => artifact.text.clone(),
            (false, Some(rest)) => rest.to_owned(),
            // It was replaced by something else, which is printed as a whole.
            (false, None) => {
                shown.clear();
                self.current = None;
                artifact.text.clone()
            }
        };
        shown.push_str(&more);
        if !more.is_empty() {
            if self.current.as_ref() != Some(&id) {
                self.paragraph()?;
                self.current = Some(id);
            }
            self.text(&more)?;
        }
        self.others(&artifact.other_parts)
    }

    /// Separates the next text from the one before it by an empty line.
    fn paragraph(&mut self) -> Result<(), Failure> {
        self.pause()?;
        if self.written {
            self.console.write(b"\n")?;
        }
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), Failure> {
        if text.is_empty() {
            return Ok(());
        }
        let safe = match self.raw {
            true => text.to_owned(),
            false => {
                let mut whole = std::mem::take(&mut self.held) + text;
                self.held = unsettled(&mut whole);
                terminal::lines(&whole)
            }
        };
        if safe.is_empty() {
            return Ok(());
        }
        self.console.write(safe.as_bytes())?;
        self.written = true;
        self.in_line = !safe.ends_with('\n');
        Ok(())
    }

    /// On a terminal, where both outputs meet, a note begins a line of its own.
    fn break_line(&mut self) -> Result<(), Failure> {
        match self.console.interactive {
            true => self.pause(),
            false => Ok(()),
        }
    }
}

/// Takes the end of a piece of text off whose meaning depends on the next piece: the beginning of a line break of two characters.
fn unsettled(text: &mut String) -> String {
    let settled = text.trim_end_matches('\r').len();
    match text.len() - settled {
        // More of them than any text needs is a text of its own.
        more if more > UNSETTLED => String::new(),
        _ => text.split_off(settled),
    }
}

/// Whether the agent leaves a state by itself; its text is told when it arrives.
fn is_passing(state: &str) -> bool {
    matches!(state, "submitted" | "working" | "unknown")
}

/// What `whole` has beyond the text that was shown; `None` if it does not begin with that. Line breaks do not count:
/// between the parts of an artifact they are the reader's.
fn remainder<'a>(shown: &str, whole: &'a str) -> Option<&'a str> {
    let is_break = |character: &char| matches!(character, '\n' | '\r');
    let mut rest = whole.char_indices();
    for known in shown.chars().filter(|character| !is_break(character)) {
        let (_, next) = rest.find(|(_, character)| !is_break(character))?;
        if next != known {
            return None;
        }
    }
    // Those at the end of the shown text were shown.
    let mut rest = rest.as_str();
    for _ in shown.chars().rev().take_while(is_break) {
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
        let (mut shown, mut held) = (String::new(), String::new());
        for piece in ["one\r", "\ntwo\r\n", "\r", "\nthree\r"] {
            let mut text = held + piece;
            held = unsettled(&mut text);
            shown.push_str(&terminal::lines(&text));
        }
        assert_eq!(held, "\r");
        assert_eq!(shown, terminal::lines(whole.trim_end_matches('\r')));
        assert!(!shown.contains("\\u{"), "{shown}");
        let mut many = "\r".repeat(UNSETTLED + 1);
        assert_eq!(unsettled(&mut many), "");
        assert_eq!(many.len(), UNSETTLED + 1);
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
            assert_eq!(remainder(shown, whole), expected, "{shown:?} {whole:?}");
        }
    }
}
