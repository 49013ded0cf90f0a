//! Credentials file: only its owner can read it, it is replaced as a whole, and one process changes it at a time.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::file_format::StoredCredentials;
use super::secret::read_private_file;
use crate::command_error::CommandError;

/// Size limit of the file, in bytes.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// Location of the stored credentials.
#[derive(Debug, Clone)]
pub(crate) struct CredentialsFile {
    path: PathBuf,
}

/// Credentials file that only this process may change.
pub(crate) struct LockedCredentials {
    file: CredentialsFile,
    _lock: File,
    /// Its content, to be changed and then saved.
    pub stored: StoredCredentials,
}

impl CredentialsFile {
    /// The user's file, in the folder for configuration (XDG Base Directory Specification), which may not exist yet.
    ///
    /// # Errors
    /// If the user has no home folder.
    pub fn for_user() -> Result<Self, CommandError> {
        let absolute_path_variable = |name: &str| {
            let path = std::env::var_os(name).map(PathBuf::from);
            path.filter(|path| path.is_absolute())
        };
        let home = || absolute_path_variable("HOME").map(|home| home.join(".config"));
        let folder = match cfg!(windows) {
            true => absolute_path_variable("APPDATA"),
            false => absolute_path_variable("XDG_CONFIG_HOME").or_else(home),
        };
        let folder = folder.ok_or_else(|| {
            CommandError::new("there is no folder for credentials: set HOME or XDG_CONFIG_HOME")
        })?;
        Ok(Self::new(folder.join("a2a-registry/credentials.json")))
    }

    fn new(path: PathBuf) -> Self {
        Self { path }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the content; it is empty if there is no file.
    ///
    /// # Errors
    /// If it cannot be read, has another format, or others can read it.
    pub fn read(&self) -> Result<StoredCredentials, CommandError> {
        match fs::symlink_metadata(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok(StoredCredentials::default());
            }
            _ => {}
        }
        let text = read_private_file(&self.path, MAX_FILE_BYTES);
        let stored = text.and_then(|text| StoredCredentials::parse(&text));
        stored.map_err(|reason| self.error(&reason))
    }

    /// Locks the file, once no other process changes it.
    ///
    /// # Errors
    /// If the folder cannot be written to, and as for [`Self::read`].
    pub async fn lock(&self) -> Result<LockedCredentials, CommandError> {
        let file = self.clone();
        let locked = tokio::task::spawn_blocking(move || file.lock_blocking()).await;
        locked.map_err(|error| self.error(&error.to_string()))?
    }

    fn lock_blocking(self) -> Result<LockedCredentials, CommandError> {
        let lock = lock_private_file(&self.path)
            .map_err(|error| self.error(&format!("it cannot be written: {error}")))?;
        let stored = self.read()?;
        Ok(LockedCredentials {
            file: self,
            _lock: lock,
            stored,
        })
    }

    fn error(&self, reason: &str) -> CommandError {
        CommandError::new(format!(
            "the credentials file {}: {reason}",
            self.path.display()
        ))
    }
}

impl LockedCredentials {
    /// Replaces the file by one with the changed content, readable by its owner only. Readers see either the old or
    /// the new content.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(&self) -> Result<(), CommandError> {
        let write_error = |reason: String| {
            let reason = format!("it cannot be written: {reason}");
            self.file.error(&reason)
        };
        let mut text = serde_json::to_vec_pretty(&self.stored)
            .map_err(|error| write_error(error.to_string()))?;
        text.push(b'\n');
        replace_private_file(&self.file.path, &text).map_err(|error| write_error(error.to_string()))
    }
}

/// Waits until no other process changes the file. None does while the result exists.
pub(crate) fn lock_private_file(path: &Path) -> std::io::Result<File> {
    create_private_folder(folder_of(path))?;
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let lock = options.open(path.with_extension("lock"))?;
    lock.lock()?;
    Ok(lock)
}

/// Replaces the file by one that only its owner can read, at once for all readers.
pub(crate) fn replace_private_file(path: &Path, text: &[u8]) -> std::io::Result<()> {
    // The file is created with mode 600.
    let mut new = NamedTempFile::new_in(folder_of(path))?;
    new.write_all(text)?;
    new.as_file().sync_all()?;
    new.persist(path)?;
    Ok(())
}

fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

/// Creates the folder, accessible to its owner only if it is new.
fn create_private_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::super::secret::Secret;
    use super::*;

    fn line(failure: CommandError) -> String {
        match failure {
            CommandError::Failed(line) => line,
            other => format!("{other:?}"),
        }
    }

    async fn add(file: &CredentialsFile, origin: &str) {
        let mut locked = file.lock().await.unwrap();
        let agent = locked.stored.agents.entry(origin.to_owned()).or_default();
        agent.bearer = Some(Secret(format!("of {origin}")));
        locked.save().unwrap();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn many_writers_lose_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = CredentialsFile::new(folder.path().join("new/credentials.json"));
        assert_eq!(file.read().unwrap(), StoredCredentials::default());
        let origins: Vec<String> = (0..32)
            .map(|nth| format!("https://a{nth}.example"))
            .collect();
        let writers = origins.iter().map(|origin| add(&file, origin));
        futures::future::join_all(writers).await;
        let stored = file.read().unwrap();
        assert_eq!(stored.agents.len(), origins.len());
        for (origin, agent) in &stored.agents {
            assert_eq!(agent.bearer, Some(Secret(format!("of {origin}"))));
        }
        // No unfinished file remains.
        assert_eq!(fs::read_dir(folder.path().join("new")).unwrap().count(), 2);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn only_the_owner_can_read_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let file = CredentialsFile::new(folder.path().join("a/credentials.json"));
        add(&file, "https://a.example").await;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(file.path()), 0o600);
        assert_eq!(mode(&folder.path().join("a")), 0o700);
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o644)).unwrap();
        let before = fs::read(file.path()).unwrap();
        for refused in [file.read().map(drop), file.lock().await.map(drop)] {
            let line = line(refused.unwrap_err());
            assert!(
                line.contains("mode 644") && line.contains("chmod 600"),
                "{line}"
            );
        }
        assert_eq!(fs::read(file.path()).unwrap(), before);
    }

    #[tokio::test]
    async fn a_broken_file_is_neither_used_nor_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let file = CredentialsFile::new(folder.path().join("credentials.json"));
        add(&file, "https://a.example").await;
        let whole = fs::read(file.path()).unwrap();
        fs::write(file.path(), &whole[..whole.len() / 2]).unwrap();
        for refused in [file.read().map(drop), file.lock().await.map(drop)] {
            let line = line(refused.unwrap_err());
            assert!(line.contains("not a credentials file"), "{line}");
        }
        assert_eq!(fs::read(file.path()).unwrap(), &whole[..whole.len() / 2]);
        let large = vec![b' '; usize::try_from(MAX_FILE_BYTES).unwrap() + 1];
        fs::write(file.path(), large).unwrap();
        assert!(line(file.read().unwrap_err()).contains("longer than"));
    }
}
