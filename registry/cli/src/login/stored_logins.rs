//! The file with the tokens of `login`: one for each registry, sent to that registry and to nobody else.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use a2a_crawler::{Clock as _, SystemClock};
use a2a_registry_domain::timestamp::Timestamp;
use serde::{Deserialize, Serialize};
use url::Url;
use uuid::Uuid;

use crate::agent_credentials::credentials_file::{
    CredentialsFile, lock_private_file, replace_private_file,
};
use crate::agent_credentials::secret::{Secret, read_private_file};
use crate::command_error::CommandError;
use crate::terminal;

/// Size limit of the file, in bytes.
const MAX_FILE_BYTES: u64 = 256 * 1024;
/// Maximum number of registries in the file.
const MAX_REGISTRIES: usize = 100;

/// The token of one registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredLogin {
    pub token: Secret,
    pub id: Uuid,
    pub account: String,
    pub expires_at: Option<Timestamp>,
}

/// The content of the file.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredLogins {
    /// By URL of the registry.
    pub registries: BTreeMap<String, StoredLogin>,
}

impl StoredLogins {
    /// Reads the user's file; empty if there is none.
    ///
    /// # Errors
    /// If it cannot be read, or others can read it.
    pub fn load() -> Result<Self, CommandError> {
        let path = logins_path()?;
        if fs::symlink_metadata(&path).is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            return Ok(Self::default());
        }
        let read = read_private_file(&path, MAX_FILE_BYTES).and_then(|text| {
            serde_json::from_slice(&text)
                .map_err(|error| format!("it is not a file of logins: {error}"))
        });
        read.map_err(|reason| file_error(&path, &reason))
    }

    /// Sets the login of a registry, or removes it, while no other process changes the file; returns the earlier one.
    ///
    /// # Errors
    /// If the file cannot be read or written, or has too many registries.
    pub fn replace_login(
        registry: &Url,
        login: Option<StoredLogin>,
    ) -> Result<Option<StoredLogin>, CommandError> {
        let path = logins_path()?;
        let write_error =
            |error: std::io::Error| file_error(&path, &format!("it cannot be written: {error}"));
        let _lock = lock_private_file(&path).map_err(write_error)?;
        let mut logins = Self::load()?;
        let earlier = match login {
            Some(login) => logins.registries.insert(registry.to_string(), login),
            None => logins.registries.remove(registry.as_str()),
        };
        if logins.registries.len() > MAX_REGISTRIES {
            let reason = format!("it has {MAX_REGISTRIES} registries; log out of some first");
            return Err(file_error(&path, &reason));
        }
        let mut text =
            serde_json::to_vec_pretty(&logins).map_err(|error| write_error(error.into()))?;
        text.push(b'\n');
        replace_private_file(&path, &text).map_err(write_error)?;
        Ok(earlier)
    }
}

/// The token of a login at this registry, unless it has expired. A file that cannot be read is no reason to fail: most
/// commands work without a token, and without a home folder.
pub(crate) fn find_stored_token(registry: &str) -> Option<String> {
    logins_path().ok()?;
    let registry = Url::parse(registry.trim_end_matches('/')).ok()?;
    let mut logins = match StoredLogins::load() {
        Ok(logins) => logins,
        Err(CommandError::Failed(line)) => {
            terminal::eprint_note(&format!("warning: no login is used: {line}"));
            return None;
        }
        Err(_) => return None,
    };
    let login = logins.registries.remove(registry.as_str())?;
    let now: Timestamp = SystemClock.now().into();
    if login.expires_at.is_some_and(|end| end <= now) {
        terminal::eprint_note(&format!(
            "the login at {registry} has expired; run `a2a-registry login` again"
        ));
        return None;
    }
    Some(login.token.0)
}

/// The file beside the credentials of agents.
fn logins_path() -> Result<PathBuf, CommandError> {
    Ok(CredentialsFile::for_user()?
        .path()
        .with_file_name("logins.json"))
}

fn file_error(path: &Path, reason: &str) -> CommandError {
    CommandError::new(format!("the file of logins {}: {reason}", path.display()))
}
