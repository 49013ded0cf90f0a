//! Secrets: read from files, standard input, variables or a terminal, and never displayed.

use std::fmt;
use std::fs::File;
use std::io::{IsTerminal, Read};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::command_error::CommandError;
use crate::terminal;

/// Size limit of a secret, in bytes.
const MAX_SECRET_BYTES: u64 = 64 * 1024;

/// A secret that debug output does not show.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Sources of a secret, other than a terminal.
pub(crate) struct SecretSources<'a> {
    /// The flag, such as `--bearer`.
    pub flag: &'static str,
    /// Value of the flag: the secret, `@FILE`, or `@-` for standard input.
    pub flag_value: Option<&'a str>,
    /// Variable that is read if the flag is absent.
    pub variable: &'static str,
}

impl SecretSources<'_> {
    /// Reads the secret; `None` if it is not given. An empty variable counts as unset.
    ///
    /// # Errors
    /// If a file cannot be read or contains no secret.
    pub fn read(&self) -> Result<Option<Secret>, CommandError> {
        let Some(flag_value) = self.flag_value else {
            let set = std::env::var(self.variable).ok();
            return Ok(set.filter(|text| !text.is_empty()).map(Secret));
        };
        let flag_error = |what: String| CommandError::new(format!("{}: {what}", self.flag));
        let text = match flag_value.strip_prefix('@') {
            None => flag_value.to_owned(),
            Some("-") => read_bounded_text(std::io::stdin().lock())
                .map_err(|reason| flag_error(format!("standard input cannot be read: {reason}")))?,
            Some(file) => File::open(file)
                .map_err(|error| error.to_string())
                .and_then(read_bounded_text)
                .map_err(|reason| flag_error(format!("{file} cannot be read: {reason}")))?,
        };
        let text = text.trim_end_matches(['\r', '\n']);
        if text.is_empty() {
            return Err(flag_error("the secret is empty".to_owned()));
        }
        Ok(Some(Secret(text.to_owned())))
    }

    /// Whether the secret itself was typed, so that others can see it in the list of processes.
    pub fn is_exposed(&self) -> bool {
        self.flag_value.is_some_and(|given| !given.starts_with('@'))
    }
}

fn read_bounded_text(input: impl Read) -> Result<String, String> {
    let mut text = String::new();
    let read = input.take(MAX_SECRET_BYTES + 1).read_to_string(&mut text);
    read.map_err(|error| error.to_string())?;
    match text.len() as u64 > MAX_SECRET_BYTES {
        true => Err(format!("it is longer than {MAX_SECRET_BYTES} bytes")),
        false => Ok(text),
    }
}

/// Prompts for a secret without echo; `alternative` says how to give it if there is no terminal.
///
/// # Errors
/// If there is no terminal, or nothing was typed.
pub(crate) fn prompt_hidden(label: &str, alternative: &str) -> Result<Secret, CommandError> {
    prompt_terminal(label, alternative, rpassword::prompt_password).map(Secret)
}

/// Prompts for a text at the terminal.
///
/// # Errors
/// If there is no terminal, or nothing was typed.
pub(crate) fn prompt_visible(label: &str, alternative: &str) -> Result<String, CommandError> {
    prompt_terminal(label, alternative, |prompt| {
        use std::io::Write as _;
        let mut question = std::io::stderr().lock();
        question.write_all(prompt.as_bytes())?;
        question.flush()?;
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer)?;
        Ok(answer)
    })
}

fn prompt_terminal(
    label: &str,
    alternative: &str,
    read_answer: impl FnOnce(String) -> std::io::Result<String>,
) -> Result<String, CommandError> {
    let label = terminal::escape_line(label);
    if !std::io::stdin().is_terminal() {
        return Err(CommandError::new(format!(
            "{label} is needed, and there is no terminal to ask for it; {alternative}"
        )));
    }
    let answer = read_answer(format!("{label}: "))
        .map_err(|error| CommandError::new(format!("{label} cannot be read: {error}")))?;
    let answer = answer.trim_end_matches(['\r', '\n']);
    match answer.is_empty() {
        true => Err(CommandError::new(format!(
            "{label} is needed; {alternative}"
        ))),
        false => Ok(answer.to_owned()),
    }
}

/// Reads a file that only its owner may read, such as a private key.
///
/// # Errors
/// If it cannot be read, is too long, or others can read it.
pub(crate) fn read_private_file(path: &Path, limit: u64) -> Result<Vec<u8>, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    check_private_file(&file, path)?;
    let mut content = Vec::new();
    let read = file.take(limit + 1).read_to_end(&mut content);
    read.map_err(|error| error.to_string())?;
    match content.len() as u64 > limit {
        true => Err(format!("it is longer than {limit} bytes")),
        false => Ok(content),
    }
}

#[cfg(unix)]
fn check_private_file(file: &File, path: &Path) -> Result<(), String> {
    use std::os::unix::fs::MetadataExt as _;
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    if metadata.mode() & 0o077 != 0 {
        return Err(format!(
            "other users may read it (mode {:o}); run chmod 600 {}",
            metadata.mode() & 0o777,
            crate::program_name::shell_quote(&path.to_string_lossy())
        ));
    }
    let owner = metadata.uid();
    // Files of root are accepted, because root can read all files.
    if owner != rustix::process::geteuid().as_raw() && owner != 0 {
        return Err("it belongs to another user".to_owned());
    }
    Ok(())
}

#[cfg(not(unix))]
fn check_private_file(_: &File, _: &Path) -> Result<(), String> {
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn sources(flag_value: Option<&str>) -> SecretSources<'_> {
        SecretSources {
            flag: "--bearer",
            flag_value,
            variable: "A2A_TEST_NO_SUCH_VARIABLE",
        }
    }

    fn read(flag_value: &str) -> Result<String, String> {
        match sources(Some(flag_value)).read() {
            Ok(secret) => Ok(secret.unwrap().0),
            Err(CommandError::Failed(line)) => Err(line),
            Err(other) => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn a_secret_is_typed_or_in_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str, content: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, content).unwrap();
            format!("@{}", path.display())
        };
        assert_eq!(read("typed").unwrap(), "typed");
        assert_eq!(read(&at("a", b"in a file\r\n")).unwrap(), "in a file");
        for (wrong, why) in [
            (at("b", b"\n"), "empty"),
            (
                at("c", &[b'x'; MAX_SECRET_BYTES as usize + 1]),
                "longer than",
            ),
            (at("d", &[0xff]), "UTF-8"),
            ("@/nowhere/at/all".to_owned(), "/nowhere/at/all"),
            (String::new(), "empty"),
        ] {
            let error = read(&wrong).unwrap_err();
            assert!(
                error.starts_with("--bearer: ") && error.contains(why),
                "{error}"
            );
        }
        assert!(sources(None).read().unwrap().is_none());
        assert!(sources(Some("typed")).is_exposed() && !sources(Some("@f")).is_exposed());
        assert!(!sources(None).is_exposed());
        assert_eq!(format!("{:?}", Secret("s3cret".to_owned())), "Secret");
    }

    #[cfg(unix)]
    #[test]
    fn a_private_file_that_others_may_read_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key.pem");
        std::fs::write(&path, b"key").unwrap();
        for (mode, good) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let read = read_private_file(&path, 3);
            assert_eq!(read.is_ok(), good, "{mode:o}: {read:?}");
            if let Err(reason) = read {
                assert!(reason.contains("chmod 600"), "{reason}");
            }
        }
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert!(
            read_private_file(&path, 2)
                .unwrap_err()
                .contains("longer than 2")
        );
    }
}
