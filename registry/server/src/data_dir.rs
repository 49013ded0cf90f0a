//! The data folder, and the locks that keep it, and a database file, to one serving process.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The lock file's name inside the data folder.
const LOCK: &str = "lock";
/// Suffix of the lock file for a database file outside of the data folder.
const DATABASE_LOCK: &str = ".lock";

/// Reasons why a data folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// The folder cannot be created or written.
    #[error("the data folder {path} cannot be used: {error}")]
    Unusable {
        /// The folder.
        path: PathBuf,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// Another process is serving from the folder.
    #[error("another process is serving from {0}; stop it, or give --data-dir another folder")]
    Taken(PathBuf),
    /// Another process is serving from the database file.
    #[error(
        "another process is serving from the database {0}; stop it, or give --database another file"
    )]
    DatabaseTaken(PathBuf),
}

/// A data folder held by this process until it is dropped.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    _lock: Lock,
    _database_lock: Option<Lock>,
}

impl DataDir {
    /// Creates the folder if it does not exist (readable for its owner only) and takes its lock, and the lock of a
    /// database file that lies outside of it.
    ///
    /// # Errors
    /// If the folder cannot be written, or another process holds the folder or the file.
    pub fn open(path: &Path, database: Option<&Path>) -> Result<Self, DataDirError> {
        let unusable = |error| DataDirError::Unusable {
            path: path.to_owned(),
            error,
        };
        make(path).map_err(unusable)?;
        let taken = || DataDirError::Taken(path.to_owned());
        let folder_lock = lock(&path.join(LOCK))
            .map_err(unusable)?
            .ok_or_else(taken)?;
        let elsewhere = database.filter(|file| !is_inside(file, path));
        let database_lock = match elsewhere {
            Some(file) => {
                let mut name = file.as_os_str().to_owned();
                name.push(DATABASE_LOCK);
                let taken = || DataDirError::DatabaseTaken(file.to_owned());
                let unusable = |error| DataDirError::Unusable {
                    path: file.to_owned(),
                    error,
                };
                Some(
                    lock(Path::new(&name))
                        .map_err(unusable)?
                        .ok_or_else(taken)?,
                )
            }
            None => None,
        };
        Ok(Self {
            path: path.to_owned(),
            _lock: folder_lock,
            _database_lock: database_lock,
        })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// A lock file that is held.
#[derive(Debug)]
struct Lock(File);

impl Drop for Lock {
    /// Unlocks before closing. Closing alone ends the lock only once all copies of the descriptor are closed, and a
    /// child process that is just being started has a copy until its own program begins.
    fn drop(&mut self) {
        if let Err(error) = self.0.unlock() {
            tracing::debug!(%error, "a lock ends with its file");
        }
    }
}

/// Takes a lock file and writes the process id into it for people to read; `None` if another process holds it.
fn lock(path: &Path) -> std::io::Result<Option<Lock>> {
    let mut file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    file.set_len(0)?;
    writeln!(file, "{}", std::process::id())?;
    Ok(Some(Lock(file)))
}

/// Whether a file lies directly in the folder, even if the two paths are spelt differently.
fn is_inside(file: &Path, folder: &Path) -> bool {
    let parent = file.parent().map(Path::canonicalize);
    matches!((parent, folder.canonicalize()), (Some(Ok(parent)), Ok(folder)) if parent == folder)
}

#[cfg(unix)]
fn make(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
}

#[cfg(not(unix))]
fn make(path: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(path)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_folder_belongs_to_one_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("registry.sqlite");
        let first = DataDir::open(folder.path(), Some(&inside)).unwrap();
        assert!(matches!(
            DataDir::open(folder.path(), None),
            Err(DataDirError::Taken(_))
        ));
        drop(first);
        DataDir::open(folder.path(), None).unwrap();
    }

    #[test]
    fn a_database_elsewhere_belongs_to_one_at_a_time() {
        let [one, other, elsewhere] = [(); 3].map(|()| tempfile::tempdir().unwrap());
        let file = elsewhere.path().join("shared.sqlite");
        let first = DataDir::open(one.path(), Some(&file)).unwrap();
        let second = DataDir::open(other.path(), Some(&file));
        assert!(matches!(second, Err(DataDirError::DatabaseTaken(taken)) if taken == file));
        // The failed attempt did not keep the folder locked.
        DataDir::open(other.path(), None).unwrap();
        drop(first);
        DataDir::open(other.path(), Some(&file)).unwrap();
    }
}
