//! The data folder, and the locks that reserve it and a database file for one serving process.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Name of the lock file inside the data folder.
const LOCK_FILE_NAME: &str = "lock";
/// Suffix of the lock file for a database file outside the data folder.
const DATABASE_LOCK_SUFFIX: &str = ".lock";

#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    #[error("the data folder {path} cannot be used: {error}")]
    Unusable {
        path: PathBuf,
        error: std::io::Error,
    },
    #[error("another process is serving from {0}; stop it, or set --data-dir to another folder")]
    InUse(PathBuf),
    #[error(
        "another process is serving from the database {0}; stop it, or set --database to another file"
    )]
    DatabaseInUse(PathBuf),
    #[error("the data folder {0} does not exist; set --data-dir to the folder of a registry")]
    Missing(PathBuf),
    #[error(
        "the database {0} does not exist; set --data-dir to the folder of a registry, or --database to its file"
    )]
    DatabaseMissing(PathBuf),
}

/// A data folder that this process keeps locked until this value is dropped.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    _lock: FileLock,
    /// The lock on the folder itself, which remains if the lock file is deleted.
    _folder_lock: Option<FileLock>,
    _database_lock: Option<FileLock>,
    /// The lock on the database file itself, for the same reason, and because other folders and paths may lead to the
    /// file.
    database_file_lock: Option<FileLock>,
}

impl DataDir {
    /// Creates the folder if it does not exist (readable only by its owner) and takes its lock, and the lock of a
    /// database file.
    pub fn open(path: &Path, database: Option<&Path>) -> Result<Self, DataDirError> {
        create_private_dir(path).map_err(|error| unusable_dir_error(path, error))?;
        Self::lock_dir_and_database(path, database)
    }

    /// Takes the locks as [`DataDir::open`] does, but creates neither the folder nor a database.
    pub fn open_existing(path: &Path, database: Option<&Path>) -> Result<Self, DataDirError> {
        if !path.is_dir() {
            return Err(DataDirError::Missing(path.to_owned()));
        }
        match database {
            Some(file) if !file.exists() => Err(DataDirError::DatabaseMissing(file.to_owned())),
            _ => Self::lock_dir_and_database(path, database),
        }
    }

    fn lock_dir_and_database(path: &Path, database: Option<&Path>) -> Result<Self, DataDirError> {
        let in_use = || DataDirError::InUse(path.to_owned());
        let lock = take_lock_file(&path.join(LOCK_FILE_NAME))
            .map_err(|error| unusable_dir_error(path, error))?
            .ok_or_else(in_use)?;
        let folder_lock = try_lock_path(path, cfg!(unix)).map_err(|LockConflict| in_use())?;
        let outside_database = database.filter(|file| !is_directly_inside(file, path));
        let mut data_dir = Self {
            path: path.to_owned(),
            _lock: lock,
            _folder_lock: folder_lock,
            _database_lock: outside_database.map(take_database_lock_file).transpose()?,
            database_file_lock: None,
        };
        if let Some(file) = database {
            data_dir.lock_database(file)?;
        }
        Ok(data_dir)
    }

    /// Locks a database file, if it exists, whatever its name and wherever its lock file is.
    pub fn lock_database(&mut self, file: &Path) -> Result<(), DataDirError> {
        if self.database_file_lock.is_none() {
            // Only on Linux are these locks independent of those that SQLite takes on the same file.
            let lock = try_lock_path(file, cfg!(target_os = "linux"));
            self.database_file_lock =
                lock.map_err(|LockConflict| DataDirError::DatabaseInUse(file.to_owned()))?;
        }
        Ok(())
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn unusable_dir_error(path: &Path, error: std::io::Error) -> DataDirError {
    DataDirError::Unusable {
        path: path.to_owned(),
        error,
    }
}

struct LockConflict;

/// Locks a folder or file itself, for as long as it exists. `None` if that is not possible, as on some network file
/// systems: there only the lock files protect it.
///
/// Closing any descriptor of a database file releases the locks that SQLite has on it in this process. So the file
/// stays open until the data folder is released, after the database.
fn try_lock_path(path: &Path, supported: bool) -> Result<Option<FileLock>, LockConflict> {
    if !supported {
        return Ok(None);
    }
    let file = File::open(path).map_err(TryLockError::Error);
    match file.and_then(|file| file.try_lock().map(|()| FileLock(file))) {
        Ok(lock) => Ok(Some(lock)),
        Err(TryLockError::WouldBlock) => Err(LockConflict),
        Err(TryLockError::Error(error)) => {
            tracing::debug!(
                path = %path.display(),
                %error,
                "the path itself cannot be locked, so only its lock file is locked"
            );
            Ok(None)
        }
    }
}

/// Takes the lock file next to a database file outside the data folder.
fn take_database_lock_file(file: &Path) -> Result<FileLock, DataDirError> {
    let mut name = file.as_os_str().to_owned();
    name.push(DATABASE_LOCK_SUFFIX);
    take_lock_file(Path::new(&name))
        .map_err(|error| unusable_dir_error(file, error))?
        .ok_or_else(|| DataDirError::DatabaseInUse(file.to_owned()))
}

#[derive(Debug)]
struct FileLock(File);

impl Drop for FileLock {
    /// Unlocks before closing. Closing alone releases the lock only once all copies of the descriptor are closed, and
    /// a child process that is just being started has a copy until its own program begins.
    fn drop(&mut self) {
        if let Err(error) = self.0.unlock() {
            tracing::debug!(%error, "a lock was not released; closing its file releases it");
        }
    }
}

/// Takes a lock file and writes the process id into it for people to read; `None` if another process holds it.
fn take_lock_file(path: &Path) -> std::io::Result<Option<FileLock>> {
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
    Ok(Some(FileLock(file)))
}

/// Whether a file is directly in the folder, even if the two paths are spelled differently.
fn is_directly_inside(file: &Path, folder: &Path) -> bool {
    let parent = file.parent().map(Path::canonicalize);
    matches!((parent, folder.canonicalize()), (Some(Ok(parent)), Ok(folder)) if parent == folder)
}

#[cfg(unix)]
fn create_private_dir(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
}

#[cfg(not(unix))]
fn create_private_dir(path: &Path) -> std::io::Result<()> {
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
            Err(DataDirError::InUse(_))
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
        assert!(matches!(second, Err(DataDirError::DatabaseInUse(taken)) if taken == file));
        // The failed attempt did not leave the folder locked.
        DataDir::open(other.path(), None).unwrap();
        drop(first);
        DataDir::open(other.path(), Some(&file)).unwrap();
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_deleted_lock_file_frees_nothing() {
        let [folder, other, elsewhere] = [(); 3].map(|()| tempfile::tempdir().unwrap());
        let file = elsewhere.path().join("shared.sqlite");
        std::fs::write(&file, "").unwrap();
        let first = DataDir::open(folder.path(), Some(&file)).unwrap();
        std::fs::remove_file(folder.path().join(LOCK_FILE_NAME)).unwrap();
        std::fs::remove_file(elsewhere.path().join("shared.sqlite.lock")).unwrap();
        let second = DataDir::open(folder.path(), None);
        assert!(matches!(second, Err(DataDirError::InUse(_))), "{second:?}");
        let second = DataDir::open(other.path(), Some(&file));
        assert!(
            matches!(second, Err(DataDirError::DatabaseInUse(_))),
            "{second:?}"
        );
        drop(first);
        DataDir::open(folder.path(), Some(&file)).unwrap();
    }

    /// A process with another folder opens the database of the first folder, also under another name.
    #[test]
    #[cfg(target_os = "linux")]
    fn a_database_inside_a_folder_in_use_is_taken_too() {
        let [one, other] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let file = one.path().join("registry.sqlite");
        let alias = other.path().join("alias.sqlite");
        let mut first = DataDir::open(one.path(), Some(&file)).unwrap();
        std::fs::write(&file, "").unwrap();
        first.lock_database(&file).unwrap();
        std::os::unix::fs::symlink(&file, &alias).unwrap();
        for named in [&file, &alias] {
            let second = DataDir::open(other.path(), Some(named));
            assert!(
                matches!(second, Err(DataDirError::DatabaseInUse(_))),
                "{second:?}"
            );
        }
        drop(first);
        DataDir::open(other.path(), Some(&alias)).unwrap();
    }

    #[test]
    fn what_is_missing_is_not_created() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing");
        let opened = DataDir::open_existing(&missing, None);
        assert!(
            matches!(opened, Err(DataDirError::Missing(_))),
            "{opened:?}"
        );
        let file = folder.path().join("registry.sqlite");
        let opened = DataDir::open_existing(folder.path(), Some(&file));
        assert!(
            matches!(opened, Err(DataDirError::DatabaseMissing(_))),
            "{opened:?}"
        );
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
