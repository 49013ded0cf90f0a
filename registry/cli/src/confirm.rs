//! Confirmation of actions that cannot be undone, or whose effects are easily overlooked.

use std::io::{BufRead, IsTerminal, Write};

use super::command_error::CommandError;
use super::terminal;

/// Asks for confirmation of an action that cannot be undone: `yes` confirms it on the command line, otherwise the user
/// at the terminal does. The action is always printed first.
///
/// # Errors
/// If it is not confirmed, or there is no terminal.
pub fn confirm_irreversible_action(action: &str, yes: bool) -> Result<(), CommandError> {
    confirm_consequence(action, "this cannot be undone", yes)
}

/// The same for an action with another consequence.
pub fn confirm_consequence(action: &str, consequence: &str, yes: bool) -> Result<(), CommandError> {
    if yes {
        terminal::eprint_note(action);
        return Ok(());
    }
    let input = std::io::stdin();
    if !input.is_terminal() {
        return Err(CommandError::new(format!(
            "{action}: there is no terminal to ask for confirmation; confirm with --yes"
        )));
    }
    let confirmed = prompt_confirmation(
        action,
        consequence,
        &mut input.lock(),
        &mut std::io::stderr(),
    )
    .map_err(|error| CommandError::new(format!("{action}: the answer cannot be read: {error}")))?;
    match confirmed {
        true => Ok(()),
        false => Err(CommandError::Negative("nothing was changed".to_owned())),
    }
}

/// Only an explicit yes confirms.
fn prompt_confirmation(
    action: &str,
    consequence: &str,
    input: &mut impl BufRead,
    output: &mut impl Write,
) -> std::io::Result<bool> {
    let text = format!(
        "{}; {consequence}. Continue? [y/N] ",
        terminal::escape_line(action)
    );
    prompt_yes_no(&text, input, output)
}

/// Asks a question as given; returns whether the answer is yes.
pub fn prompt_yes_no(
    prompt: &str,
    input: &mut impl BufRead,
    output: &mut impl Write,
) -> std::io::Result<bool> {
    output.write_all(prompt.as_bytes())?;
    output.flush()?;
    let mut answer = String::new();
    input.read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn only_a_plain_yes_is_one() {
        for (answer, expected) in [
            ("y\n", true),
            ("YES\n", true),
            (" yes \r\n", true),
            ("\n", false),
            ("", false),
            ("n\n", false),
            ("yesterday\n", false),
            ("no\nyes\n", false),
        ] {
            let mut shown = Vec::new();
            let what = "retiring Echo\u{1b}[2J of a.example";
            let confirmed =
                prompt_confirmation(what, "it is final", &mut answer.as_bytes(), &mut shown)
                    .unwrap();
            assert_eq!(confirmed, expected, "{answer:?}");
            let shown = String::from_utf8(shown).unwrap();
            assert!(
                shown.starts_with("retiring Echo\\u{1b}[2J of a.example; it is final. "),
                "{shown}"
            );
        }
    }
}
