//! `send -i`: a conversation in the terminal, line by line.

use std::path::PathBuf;

use a2a_client::{AgentResponse, Message, Part};
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use super::saved_conversations::{SavedConversation, conversation_path};
use super::{SendArgs, agent_call, new_message_id, send_and_print_answer};
use crate::client::Client;
use crate::command_error::{CommandError, CommandOutcome, CommandResult};
use crate::console::Console;
use crate::signals::{HangupAction, ShutdownSignals};
use crate::terminal;

/// Columns of each earlier turn when a conversation is resumed.
const TURN_COLUMNS: usize = 400;
/// Number of earlier turns shown.
const MAX_LISTED_TURNS: usize = 10;

/// Reads messages until the input ends, and prints the answer to each. Errors are printed and the conversation
/// continues; the last answer decides the outcome.
pub(super) async fn run_conversation(
    arguments: &SendArgs,
    client: &Client,
    console: &Console,
    first_parts: Vec<Part>,
) -> CommandResult {
    let agent = agent_call::open_agent_client(&arguments.agent, client, console).await?;
    let path = conversation_path(&arguments.agent.agent_identity_key(client));
    let mut conversation = start_or_resume_conversation(arguments, path.as_ref())?;
    if console.interactive {
        terminal::eprint_note("Ctrl-D ends the conversation");
    }
    let mut signals = ShutdownSignals::listen(HangupAction::Ends)?;
    let mut lines = InputLines::new(&conversation)?;
    let mut outcome = CommandOutcome::Done;
    let mut next = Some(first_parts).filter(|parts| !parts.is_empty());
    loop {
        let parts = match next.take() {
            Some(parts) => parts,
            None => match lines.next_line(&mut signals).await? {
                None => return Ok(outcome),
                Some(line) if line.trim().is_empty() => continue,
                Some(line) => vec![Part::Text(line)],
            },
        };
        for part in &parts {
            if let Part::Text(text) = part {
                conversation.push_turn(true, text);
            }
        }
        let message = Message {
            id: new_message_id(),
            parts,
            context_id: conversation.context_id.clone(),
            task_id: conversation.task_id.clone(),
        };
        outcome =
            match send_and_print_answer(&agent, &message, arguments, &mut signals, console).await {
                Ok((outcome, Some(answer))) => {
                    record_response(&mut conversation, &answer);
                    outcome
                }
                Ok((outcome, None)) => outcome,
                Err(CommandError::OutputClosed) => return Err(CommandError::OutputClosed),
                // The user stopped waiting for this answer, and can type the next message.
                Err(CommandError::Interrupted) => CommandOutcome::Negative,
                Err(failure) => {
                    failure.print();
                    CommandOutcome::Negative
                }
            };
        if let Some(path) = &path {
            conversation.save(path)?;
        }
    }
}

/// Conversation to continue: the last one, or a new one. Flags select what the first message continues.
fn start_or_resume_conversation(
    arguments: &SendArgs,
    path: Option<&PathBuf>,
) -> Result<SavedConversation, CommandError> {
    let saved = path.map(|path| SavedConversation::load(path)).transpose();
    let mut conversation = match (arguments.resume, saved) {
        (true, kept) => {
            let saved = kept?.flatten();
            saved.ok_or_else(|| {
                CommandError::Negative(
                    "there is no earlier conversation with this agent".to_owned(),
                )
            })?
        }
        (false, Ok(Some(Some(kept)))) if !kept.turns.is_empty() => {
            terminal::eprint_note("--resume continues the earlier conversation");
            SavedConversation::default()
        }
        (false, _) => SavedConversation::default(),
    };
    let earlier = conversation.turns.len().saturating_sub(MAX_LISTED_TURNS);
    for turn in &conversation.turns[earlier..] {
        let mark = if turn.mine { ">" } else { "<" };
        let text = terminal::escape_and_truncate(&turn.text, TURN_COLUMNS);
        terminal::eprint_note(&format!("{mark} {text}"));
    }
    if arguments.context.is_some() || arguments.task.is_some() {
        conversation.context_id = arguments.context.clone();
        conversation.task_id = arguments.task.clone();
    }
    Ok(conversation)
}

/// Stores what the next message needs of an answer: its context, and its task if that waits for the user.
fn record_response(conversation: &mut SavedConversation, response: &AgentResponse) {
    conversation.push_turn(false, &response.text);
    if response.context_id.is_some() {
        conversation.context_id.clone_from(&response.context_id);
    }
    conversation.task_id = match response.state.as_deref() {
        Some("input-required" | "auth-required") => response.task_id.clone(),
        _ => None,
    };
}

/// Input lines of the user, edited at a terminal, or read as they come.
struct InputLines(Option<DefaultEditor>);

impl InputLines {
    /// Earlier messages are available with the arrow keys.
    fn new(conversation: &SavedConversation) -> Result<Self, CommandError> {
        let mut editor = DefaultEditor::new().map_err(input_error)?;
        for turn in conversation.turns.iter().filter(|turn| turn.mine) {
            editor.add_history_entry(&turn.text).map_err(input_error)?;
        }
        Ok(Self(Some(editor)))
    }

    /// Reads the next line; `None` at the end of the input.
    async fn next_line(
        &mut self,
        signals: &mut ShutdownSignals,
    ) -> Result<Option<String>, CommandError> {
        let Some(mut editor) = self.0.take() else {
            return Ok(None);
        };
        let reading = tokio::task::spawn_blocking(move || {
            let line = editor.readline("> ");
            if let Ok(line) = &line {
                let _ = editor.add_history_entry(line);
            }
            (editor, line)
        });
        let (editor, line) = tokio::select! {
            read = reading => read.map_err(|error| CommandError::new(error.to_string()))?,
            () = signals.wait_for_signal() => return Err(CommandError::Interrupted),
        };
        self.0 = Some(editor);
        match line {
            Ok(line) => Ok(Some(line)),
            Err(ReadlineError::Eof) => Ok(None),
            Err(ReadlineError::Interrupted) => Err(CommandError::Interrupted),
            Err(error) => Err(input_error(error)),
        }
    }
}

fn input_error(error: ReadlineError) -> CommandError {
    CommandError::new(format!("the input cannot be read: {error}"))
}
