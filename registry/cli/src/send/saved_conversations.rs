//! Last conversation with each agent, stored on this machine so that it can be resumed.

use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::command_error::CommandError;

/// Number of turns stored; older ones are dropped.
const MAX_TURNS: usize = 100;
/// Size limit of a stored turn's text, in bytes.
const MAX_TURN_BYTES: usize = 16 * 1024;
/// Size limit of a file that is read, in bytes: more than the maximum that is written, with each character escaped.
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// Turns so far, and what the next message continues.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SavedConversation {
    /// The context that the agent named.
    pub context_id: Option<String>,
    /// The task that waits for the user's next message.
    pub task_id: Option<String>,
    /// The turns, oldest first.
    pub turns: Vec<ConversationTurn>,
}

/// One message of the user, or one answer of the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ConversationTurn {
    /// Whether the user said it.
    pub mine: bool,
    /// Its text, as it was said.
    pub text: String,
}

impl SavedConversation {
    /// Adds a turn, and drops the oldest if there are too many.
    pub fn push_turn(&mut self, mine: bool, text: &str) {
        let mut end = text.len().min(MAX_TURN_BYTES);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let text = text[..end].to_owned();
        self.turns.push(ConversationTurn { mine, text });
        let too_many = self.turns.len().saturating_sub(MAX_TURNS);
        self.turns.drain(..too_many);
    }

    /// Loads a conversation from a file; `None` if there is no file.
    pub fn load(path: &Path) -> Result<Option<Self>, CommandError> {
        let file_error = |why: String| CommandError::new(format!("{}: {why}", path.display()));
        let file = match fs::File::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(|error| file_error(error.to_string()))?,
        };
        let mut bytes = Vec::new();
        let read = file.take(MAX_FILE_BYTES).read_to_end(&mut bytes);
        read.map_err(|error| file_error(error.to_string()))?;
        serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| file_error(format!("not a conversation ({error}); remove the file")))
    }

    /// Writes the file as a whole, so that it never has half a conversation. Others cannot read it.
    pub fn save(&self, path: &Path) -> Result<(), CommandError> {
        let write = || -> std::io::Result<()> {
            let folder = path.parent().unwrap_or(Path::new("."));
            fs::create_dir_all(folder)?;
            // Temporary files are readable only by the user from the start.
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            serde_json::to_writer(&mut file, self)?;
            file.flush()?;
            file.persist(path)?;
            Ok(())
        };
        write().map_err(|error| CommandError::new(format!("{}: {error}", path.display())))
    }
}

/// Path of the conversation with an agent; `None` if the system has no folder for it. `agent_key` distinguishes
/// agents.
pub(super) fn conversation_path(agent_key: &str) -> Option<PathBuf> {
    let absolute_path_variable = |name: &str| {
        let value = std::env::var_os(name)?;
        Some(PathBuf::from(value)).filter(|path| path.is_absolute())
    };
    let state = absolute_path_variable("XDG_STATE_HOME")
        .or_else(|| Some(absolute_path_variable("HOME")?.join(".local/state")))?;
    let digest = a2a_card::bytes_digest(agent_key.as_bytes());
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
        assert_eq!(SavedConversation::load(&path).unwrap(), None);
        let mut conversation = SavedConversation {
            context_id: Some("c".to_owned()),
            ..SavedConversation::default()
        };
        for nth in 0..=MAX_TURNS {
            conversation.push_turn(nth % 2 == 0, &format!("{nth}"));
        }
        conversation.push_turn(true, &"é".repeat(MAX_TURN_BYTES));
        assert_eq!(
            (
                conversation.turns.len(),
                conversation.turns[0].text.as_str()
            ),
            (MAX_TURNS, "2")
        );
        assert!(conversation.turns[MAX_TURNS - 1].text.len() <= MAX_TURN_BYTES);
        conversation.save(&path).unwrap();
        assert_eq!(SavedConversation::load(&path).unwrap(), Some(conversation));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        fs::write(&path, "{").unwrap();
        let error = SavedConversation::load(&path).unwrap_err();
        assert!(
            format!("{error:?}").contains("remove the file"),
            "{error:?}"
        );
    }
}
