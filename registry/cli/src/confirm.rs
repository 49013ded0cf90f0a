//! Confirmation before an action that cannot be undone, or that has effects which are easily overlooked.

use std::io::{BufRead, IsTerminal, Write};

use super::failure::Failure;
use super::terminal;

/// Asks for confirmation of an action that cannot be undone: `yes` confirms it on the command line, else the person at the
/// terminal does. The action is printed first in any case.
///
/// # Errors
/// Where it is not confirmed, or there is no terminal.
pub fn confirm(what: &str, yes: bool) -> Result<(), Failure> {
    confirm_consequence(what, "this cannot be undone", yes)
}

/// The same for an action with another consequence.
pub fn confirm_consequence(what: &str, consequence: &str, yes: bool) -> Result<(), Failure> {
    if yes {
        terminal::note(what);
        return Ok(());
    }
    let input = std::io::stdin();
    if !input.is_terminal() {
        return Err(Failure::new(format!(
            "{what}: there is no terminal to ask for confirmation; confirm with --yes"
        )));
    }
    let said = asked(what, consequence, &mut input.lock(), &mut std::io::stderr())
        .map_err(|error| Failure::new(format!("{what}: no answer can be read: {error}")))?;
    match said {
        true => Ok(()),
        false => Err(Failure::No("nothing was changed".to_owned())),
    }
}

/// Only a plain yes is one.
fn asked(
    what: &str,
    consequence: &str,
    answers: &mut impl BufRead,
    question: &mut impl Write,
) -> std::io::Result<bool> {
    let text = format!("{}; {consequence}. Continue? [y/N] ", terminal::line(what));
    agreed(&text, answers, question)
}

/// Asks a question as it is written; whether the answer is yes.
pub fn agreed(
    text: &str,
    answers: &mut impl BufRead,
    question: &mut impl Write,
) -> std::io::Result<bool> {
    question.write_all(text.as_bytes())?;
    question.flush()?;
    let mut answer = String::new();
    answers.read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn only_a_plain_yes_is_one() {
        for (answer, meant) in [
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
            let said = asked(what, "it is final", &mut answer.as_bytes(), &mut shown).unwrap();
            assert_eq!(said, meant, "{answer:?}");
            let shown = String::from_utf8(shown).unwrap();
            assert!(
                shown.starts_with("retiring Echo\\u{1b}[2J of a.example; it is final. "),
                "{shown}"
            );
        }
    }
}
