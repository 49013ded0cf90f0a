//! The data folder, and the lock that keeps it to one serving process.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The lock file's name inside the data folder.
const LOCK: &str = "lock";

/// Why a data folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// It cannot be made or written.
    #[error("the data folder {path} cannot be used: {error}")]
    Unusable {
        /// The folder.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// Another process serves from it.
    #[error("another process is serving from {0}; stop it, or give --data-dir another folder")]
    Taken(PathBuf),
}

/// A data folder held by this process until it is dropped.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    _lock: File,
}

impl DataDir {
    /// Makes the folder where it does not exist (readable for its owner only) and takes its lock.
    ///
    /// # Errors
    /// Where it cannot be written, or another process holds it.
    pub fn open(path: &Path) -> Result<Self, DataDirError> {
        let unusable = |error| DataDirError::Unusable {
            path: path.to_owned(),
            error,
        };
        make(path).map_err(unusable)?;
        let mut lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path.join(LOCK))
            .map_err(unusable)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(DataDirError::Taken(path.to_owned())),
            Err(TryLockError::Error(error)) => return Err(unusable(error)),
        }
        lock.set_len(0).map_err(unusable)?;
        writeln!(lock, "{}", std::process::id()).map_err(unusable)?;
        Ok(Self {
            path: path.to_owned(),
            _lock: lock,
        })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
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
        let first = DataDir::open(folder.path()).unwrap();
        assert!(matches!(
            DataDir::open(folder.path()),
            Err(DataDirError::Taken(_))
        ));
        drop(first);
        DataDir::open(folder.path()).unwrap();
    }
}
