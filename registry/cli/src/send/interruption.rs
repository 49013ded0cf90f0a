//! Ctrl-C during an answer: the task is cancelled if the user says so.

use std::io::{BufRead, IsTerminal, Write};

use a2a_client::EventStream;

use super::agent::AgentArgs;
use crate::confirm;
use crate::failure::{CommandOutcome, CommandResult, Failure};
use crate::signals::EndSignals;
use crate::terminal;

/// Before the agent named a task there is nothing to cancel.
pub(super) fn before_a_task() -> CommandResult {
    terminal::note("interrupted before the agent named a task; it may have received the message");
    Err(Failure::Interrupted)
}

/// Asks whether to cancel the task, where there is a terminal; a second signal ends at once.
pub(super) async fn of_a_task(
    stream: &EventStream,
    arguments: &AgentArgs,
    signals: &mut EndSignals,
) -> CommandResult {
    let Some(task) = stream.task_id() else {
        return before_a_task();
    };
    let agreed = match std::io::stdin().is_terminal() {
        true => tokio::select! {
            agreed = ask(task.to_owned()) => agreed,
            () = signals.next() => return Err(Failure::Interrupted),
        },
        false => false,
    };
    if !agreed {
        terminal::note(&format!(
            "interrupted; the task goes on at the agent: see {}",
            arguments.task_command("get", task)
        ));
        return Err(Failure::Interrupted);
    }
    let canceled = tokio::select! {
        canceled = stream.cancel() => canceled,
        () = signals.next() => return Err(Failure::Interrupted),
    };
    let answer = canceled
        .map_err(|error| Failure::new(format!("task {task} could not be cancelled: {error}")))?;
    let state = answer.state.as_deref().unwrap_or("unknown");
    terminal::note(&match state {
        // Some agents answer before they have done it.
        "submitted" | "working" => format!(
            "the agent was asked to cancel task {task}, which is still {state}; see {}",
            arguments.task_command("get", task)
        ),
        _ => format!("task {task} is {state}"),
    });
    Ok(CommandOutcome::No)
}

async fn ask(task: String) -> bool {
    let asked = tokio::task::spawn_blocking(move || {
        agreed(&task, &mut std::io::stdin().lock(), &mut std::io::stderr())
    });
    // Without a legible answer the task is left alone.
    matches!(asked.await, Ok(Ok(true)))
}

/// Only a plain yes is one.
fn agreed(
    task: &str,
    answers: &mut impl BufRead,
    question: &mut impl Write,
) -> std::io::Result<bool> {
    let text = format!(
        "\ncancel task {} at the agent? [y/N] ",
        terminal::short(task, 100)
    );
    confirm::agreed(&text, answers, question)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_task_is_cancelled_by_a_plain_yes_only() {
        for (answer, meant) in [
            ("y\n", true),
            (" YES \n", true),
            ("\n", false),
            ("", false),
            ("no\n", false),
        ] {
            let mut shown = Vec::new();
            assert_eq!(
                agreed("t\u{1b}[2J", &mut answer.as_bytes(), &mut shown).unwrap(),
                meant
            );
            let shown = String::from_utf8(shown).unwrap();
            assert_eq!(shown, "\ncancel task t\\u{1b}[2J at the agent? [y/N] ");
        }
    }
}
