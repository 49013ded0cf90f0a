//! Ctrl-C during an answer: the task is cancelled if the user agrees.

use std::io::{BufRead, IsTerminal, Write};

use a2a_client::EventStream;

use super::agent_call::AgentCallArgs;
use crate::command_error::{CommandError, CommandOutcome, CommandResult};
use crate::confirm;
use crate::signals::ShutdownSignals;
use crate::terminal;

/// Ends without a cancellation, because the agent has not named a task yet.
pub(super) fn interrupt_before_task() -> CommandResult {
    terminal::eprint_note(
        "interrupted before the agent named a task; it may have received the message",
    );
    Err(CommandError::Interrupted)
}

/// Asks whether to cancel the task, if there is a terminal; a second signal ends at once.
pub(super) async fn offer_task_cancellation(
    stream: &EventStream,
    arguments: &AgentCallArgs,
    signals: &mut ShutdownSignals,
) -> CommandResult {
    let Some(task) = stream.task_id() else {
        return interrupt_before_task();
    };
    let confirmed = match std::io::stdin().is_terminal() {
        true => tokio::select! {
            agreed = confirm_cancel(task.to_owned()) => agreed,
            () = signals.wait_for_signal() => return Err(CommandError::Interrupted),
        },
        false => false,
    };
    if !confirmed {
        terminal::eprint_note(&format!(
            "interrupted; the task goes on at the agent: see {}",
            arguments.task_command("get", task)
        ));
        return Err(CommandError::Interrupted);
    }
    let canceled = tokio::select! {
        canceled = stream.cancel_task() => canceled,
        () = signals.wait_for_signal() => return Err(CommandError::Interrupted),
    };
    let response = canceled.map_err(|error| {
        CommandError::new(format!("task {task} could not be cancelled: {error}"))
    })?;
    let state = response.state.as_deref().unwrap_or("unknown");
    terminal::eprint_note(&match state {
        // Some agents respond before the task is cancelled.
        "submitted" | "working" => format!(
            "the agent was asked to cancel task {task}, which is still {state}; see {}",
            arguments.task_command("get", task)
        ),
        _ => format!("task {task} is {state}"),
    });
    Ok(CommandOutcome::Negative)
}

async fn confirm_cancel(task: String) -> bool {
    let prompting = tokio::task::spawn_blocking(move || {
        prompt_cancel(&task, &mut std::io::stdin().lock(), &mut std::io::stderr())
    });
    // Without a readable answer, the task is not cancelled.
    matches!(prompting.await, Ok(Ok(true)))
}

/// Only an explicit yes confirms.
fn prompt_cancel(
    task: &str,
    input: &mut impl BufRead,
    output: &mut impl Write,
) -> std::io::Result<bool> {
    let text = format!(
        "\ncancel task {} at the agent? [y/N] ",
        terminal::escape_and_truncate(task, 100)
    );
    confirm::prompt_yes_no(&text, input, output)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_task_is_cancelled_by_a_plain_yes_only() {
        for (answer, expected) in [
            ("y\n", true),
            (" YES \n", true),
            ("\n", false),
            ("", false),
            ("no\n", false),
        ] {
            let mut output = Vec::new();
            assert_eq!(
                prompt_cancel("t\u{1b}[2J", &mut answer.as_bytes(), &mut output).unwrap(),
                expected
            );
            let shown = String::from_utf8(output).unwrap();
            assert_eq!(shown, "\ncancel task t\\u{1b}[2J at the agent? [y/N] ");
        }
    }
}
