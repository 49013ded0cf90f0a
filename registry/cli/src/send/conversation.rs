//! `send -i`: a conversation in the terminal, line by line.

use std::path::PathBuf;

use a2a_client::{AgentAnswer, Message, Part};
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use super::kept::{Conversation, place};
use super::{SendArgs, agent, answered, new_message_id};
use crate::client::Client;
use crate::console::Console;
use crate::failure::{CommandOutcome, CommandResult, Failure};
use crate::signals::{EndSignals, Hangup};
use crate::terminal;

/// Columns of each earlier turn that are shown when a conversation is resumed.
const SHOWN_COLUMNS: usize = 400;
/// Earlier turns that are shown.
const SHOWN_TURNS: usize = 10;

/// Reads messages until the input ends, and prints the answer to each. What fails is told, and the conversation goes on; the last
/// answer decides about success.
pub(super) async fn run(
    arguments: &SendArgs,
    client: &Client,
    console: &Console,
    first: Vec<Part>,
) -> CommandResult {
    let agent = agent::open(&arguments.agent, client, console).await?;
    let path = place(&arguments.agent.identity(client));
    let mut said = begin(arguments, path.as_ref())?;
    if console.interactive {
        terminal::note("Ctrl-D ends the conversation");
    }
    let mut signals = EndSignals::listen(Hangup::Ends)?;
    let mut lines = Lines::new(&said)?;
    let mut outcome = CommandOutcome::Done;
    let mut next = Some(first).filter(|parts| !parts.is_empty());
    loop {
        let parts = match next.take() {
            Some(parts) => parts,
            None => match lines.next(&mut signals).await? {
                None => return Ok(outcome),
                Some(line) if line.trim().is_empty() => continue,
                Some(line) => vec![Part::Text(line)],
            },
        };
        for part in &parts {
            if let Part::Text(text) = part {
                said.add(true, text);
            }
        }
        let message = Message {
            id: new_message_id(),
            parts,
            context_id: said.context_id.clone(),
            task_id: said.task_id.clone(),
        };
        outcome = match answered(&agent, &message, arguments, &mut signals, console).await {
            Ok((outcome, Some(answer))) => {
                take(&mut said, &answer);
                outcome
            }
            Ok((outcome, None)) => outcome,
            Err(Failure::OutputClosed) => return Err(Failure::OutputClosed),
            // The user stopped waiting for this answer; the next message can be typed.
            Err(Failure::Interrupted) => CommandOutcome::No,
            Err(failure) => {
                failure.complain();
                CommandOutcome::No
            }
        };
        if let Some(path) = &path {
            said.write(path)?;
        }
    }
}

/// The conversation to go on with: the last one, or a new one. Flags say what the first message continues.
fn begin(arguments: &SendArgs, path: Option<&PathBuf>) -> Result<Conversation, Failure> {
    let kept = path.map(|path| Conversation::read(path)).transpose();
    let mut said = match (arguments.resume, kept) {
        (true, kept) => {
            let kept = kept?.flatten();
            kept.ok_or_else(|| Failure::No("there is no earlier conversation with it".to_owned()))?
        }
        (false, Ok(Some(Some(kept)))) if !kept.turns.is_empty() => {
            terminal::note("the earlier conversation can be gone on with by --resume");
            Conversation::default()
        }
        (false, _) => Conversation::default(),
    };
    let earlier = said.turns.len().saturating_sub(SHOWN_TURNS);
    for turn in &said.turns[earlier..] {
        let mark = if turn.mine { ">" } else { "<" };
        let text = terminal::short(&turn.text, SHOWN_COLUMNS);
        terminal::note(&format!("{mark} {text}"));
    }
    if arguments.context.is_some() || arguments.task.is_some() {
        said.context_id = arguments.context.clone();
        said.task_id = arguments.task.clone();
    }
    Ok(said)
}

/// What an answer leaves for the next message: its context, and its task if that waits for the user.
fn take(said: &mut Conversation, answer: &AgentAnswer) {
    said.add(false, &answer.text);
    if answer.context_id.is_some() {
        said.context_id.clone_from(&answer.context_id);
    }
    said.task_id = match answer.state.as_deref() {
        Some("input-required" | "auth-required") => answer.task_id.clone(),
        _ => None,
    };
}

/// The user's lines, edited at a terminal, or read as they come.
struct Lines(Option<DefaultEditor>);

impl Lines {
    /// Earlier messages can be taken back with the arrow keys.
    fn new(said: &Conversation) -> Result<Self, Failure> {
        let mut editor = DefaultEditor::new().map_err(unreadable)?;
        for turn in said.turns.iter().filter(|turn| turn.mine) {
            editor.add_history_entry(&turn.text).map_err(unreadable)?;
        }
        Ok(Self(Some(editor)))
    }

    /// The next line; `None` at the end of the input.
    async fn next(&mut self, signals: &mut EndSignals) -> Result<Option<String>, Failure> {
        let Some(mut editor) = self.0.take() else {
            return Ok(None);
        };
        let read = tokio::task::spawn_blocking(move || {
            let line = editor.readline("> ");
            if let Ok(line) = &line {
                let _ = editor.add_history_entry(line);
            }
            (editor, line)
        });
        let (editor, line) = tokio::select! {
            read = read => read.map_err(|error| Failure::new(error.to_string()))?,
            () = signals.next() => return Err(Failure::Interrupted),
        };
        self.0 = Some(editor);
        match line {
            Ok(line) => Ok(Some(line)),
            Err(ReadlineError::Eof) => Ok(None),
            Err(ReadlineError::Interrupted) => Err(Failure::Interrupted),
            Err(error) => Err(unreadable(error)),
        }
    }
}

fn unreadable(error: ReadlineError) -> Failure {
    Failure::new(format!("the input cannot be read: {error}"))
}
