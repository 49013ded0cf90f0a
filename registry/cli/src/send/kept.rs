//! The last conversation with each agent, kept on this machine so that it can be resumed.

use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// Most turns that are kept; older ones are dropped.
const TURNS: usize = 100;
/// Most bytes of the text of a turn that are kept.
const TURN: usize = 16 * 1024;
/// Most bytes of a file that are read: more than what is written at most, each character escaped.
const FILE: u64 = 16 * 1024 * 1024;

/// What was said so far, and what the next message continues.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Conversation {
    /// The context that the agent named.
    pub context_id: Option<String>,
    /// The task that waits for the user's next message.
    pub task_id: Option<String>,
    /// The turns, oldest first.
    pub turns: Vec<Turn>,
}

/// One message of the user, or one answer of the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Turn {
    /// Whether the user said it.
    pub mine: bool,
    /// Its text, as it was said.
    pub text: String,
}

impl Conversation {
    /// Adds a turn, and forgets the oldest if there are too many.
    pub fn add(&mut self, mine: bool, text: &str) {
        let mut end = text.len().min(TURN);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let text = text[..end].to_owned();
        self.turns.push(Turn { mine, text });
        let too_many = self.turns.len().saturating_sub(TURNS);
        self.turns.drain(..too_many);
    }

    /// The conversation in a file; `None` if there is no file.
    pub fn read(path: &Path) -> Result<Option<Self>, Failure> {
        let failed = |why: String| Failure::new(format!("{}: {why}", path.display()));
        let file = match fs::File::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(|error| failed(error.to_string()))?,
        };
        let mut bytes = Vec::new();
        let read = file.take(FILE).read_to_end(&mut bytes);
        read.map_err(|error| failed(error.to_string()))?;
        serde_json::from_slice(&bytes).map(Some).map_err(|error| {
            failed(format!(
                "this is no conversation ({error}); remove the file"
            ))
        })
    }

    /// Writes the file as a whole, so that it is never half a conversation. Nobody else may read it.
    pub fn write(&self, path: &Path) -> Result<(), Failure> {
        let write = || -> std::io::Result<()> {
            let folder = path.parent().unwrap_or(Path::new("."));
            fs::create_dir_all(folder)?;
            // Temporary files are the user's alone from the beginning.
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            serde_json::to_writer(&mut file, self)?;
            file.flush()?;
            file.persist(path)?;
            Ok(())
        };
        write().map_err(|error| Failure::new(format!("{}: {error}", path.display())))
    }
}

/// Where the conversation with an agent is kept; `None` where the system names no folder for it. `agent` tells it from all others.
pub(super) fn place(agent: &str) -> Option<PathBuf> {
    let named = |name: &str| {
        let value = std::env::var_os(name)?;
        Some(PathBuf::from(value)).filter(|path| path.is_absolute())
    };
    let state = named("XDG_STATE_HOME").or_else(|| Some(named("HOME")?.join(".local/state")))?;
    let digest = a2a_card::digest(agent.as_bytes());
    let name: String = digest.chars().filter(char::is_ascii_hexdigit).collect();
    let name = format!("{}.json", &name[name.len().saturating_sub(32)..]);
    Some(state.join("a2a-registry/conversations").join(name))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_conversation_is_kept_within_bounds_and_for_its_user_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b.json");
        assert_eq!(Conversation::read(&path).unwrap(), None);
        let mut said = Conversation {
            context_id: Some("c".to_owned()),
            ..Conversation::default()
        };
        for nth in 0..=TURNS {
            said.add(nth % 2 == 0, &format!("{nth}"));
        }
        said.add(true, &"é".repeat(TURN));
        assert_eq!(
            (said.turns.len(), said.turns[0].text.as_str()),
            (TURNS, "2")
        );
        assert!(said.turns[TURNS - 1].text.len() <= TURN);
        said.write(&path).unwrap();
        assert_eq!(Conversation::read(&path).unwrap(), Some(said));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        fs::write(&path, "{").unwrap();
        let error = Conversation::read(&path).unwrap_err();
        assert!(
            format!("{error:?}").contains("remove the file"),
            "{error:?}"
        );
    }
}
