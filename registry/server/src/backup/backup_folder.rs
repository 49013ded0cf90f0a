//! Files of backups: private to their owner, hashed while they are read, and on disk before they are relied on.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};

use a2a_registry_core::error::StartError;
use data_encoding::HEXLOWER;
use ring::digest::{Context, SHA256};

use super::manifest::BackupFile;

/// How much of a file is read at once.
const CHUNK_BYTES: usize = 256 * 1024;
/// Number of bytes between two reports of progress.
const REPORT_BYTES: u64 = 16 * 1024 * 1024;
/// Maximum depth of folders below the one whose files are listed. Models have two.
const MAX_DEPTH: usize = 8;
/// Maximum number of files in a folder that is copied. A model has a dozen.
const MAX_FILES: usize = 10_000;

pub(super) fn file_error(path: &Path, error: &std::io::Error) -> StartError {
    StartError(format!("{}: {error}", path.display()))
}

/// Creates the folder of a new backup, readable only by its owner. An existing folder must be empty.
pub(super) fn create_backup_folder(folder: &Path) -> Result<(), StartError> {
    let mut entries = std::fs::read_dir(folder).into_iter().flatten();
    if entries.next().is_some() {
        return Err(StartError(format!(
            "{} is not empty; give a folder that does not exist yet",
            folder.display()
        )));
    }
    create_private_folder(folder).map_err(|error| file_error(folder, &error))
}

pub(super) fn create_private_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Creates or empties a file that only its owner can read.
pub(super) fn create_private_file(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Writes a small file completely, or not at all.
pub(super) fn write_private_file(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let unfinished = unfinished_path(path);
    let mut file = create_private_file(&unfinished)?;
    file.write_all(content)?;
    file.sync_all()?;
    std::fs::rename(&unfinished, path)?;
    sync_parent(path)
}

/// Copies a file completely, or not at all, and returns its size and digest.
pub(super) fn copy_private_file(
    from: &Path,
    to: &Path,
    report: &dyn Fn(u64),
) -> std::io::Result<BackupFile> {
    if let Some(folder) = to.parent() {
        create_private_folder(folder)?;
    }
    let unfinished = unfinished_path(to);
    let mut target = create_private_file(&unfinished)?;
    let copied = read_chunks(from, report, |chunk| target.write_all(chunk))?;
    target.sync_all()?;
    std::fs::rename(&unfinished, to)?;
    sync_parent(to)?;
    Ok(copied)
}

/// The size and digest of a file.
pub(super) fn hash_file(path: &Path, report: &dyn Fn(u64)) -> std::io::Result<BackupFile> {
    read_chunks(path, report, |_| Ok(()))
}

fn read_chunks(
    path: &Path,
    report: &dyn Fn(u64),
    mut use_chunk: impl FnMut(&[u8]) -> std::io::Result<()>,
) -> std::io::Result<BackupFile> {
    let mut file = File::open(path)?;
    let mut digest = Context::new(&SHA256);
    let mut chunk = vec![0; CHUNK_BYTES];
    let (mut bytes, mut reported) = (0, 0);
    loop {
        let length = file.read(&mut chunk)?;
        if length == 0 {
            break;
        }
        digest.update(&chunk[..length]);
        use_chunk(&chunk[..length])?;
        bytes += length as u64;
        if bytes - reported >= REPORT_BYTES {
            reported = bytes;
            report(bytes);
        }
    }
    Ok(BackupFile {
        bytes,
        sha256: HEXLOWER.encode(digest.finish().as_ref()),
    })
}

/// Makes the content of a file, and then its name, survive a power failure.
pub(super) fn sync_file(path: &Path) -> std::io::Result<()> {
    File::open(path)?.sync_all()?;
    sync_parent(path)
}

/// Folders cannot be opened as files everywhere.
fn sync_parent(path: &Path) -> std::io::Result<()> {
    match path.parent() {
        Some(folder) if cfg!(unix) => File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}

fn unfinished_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".unfinished");
    name.into()
}

/// The regular files below a folder, by paths relative to it, in a fixed order; none if it does not exist. Hidden ones
/// are left out, because an installation of a model may still write them, and so are symbolic links.
pub(super) fn list_files(folder: &Path) -> Result<Vec<String>, StartError> {
    let mut files = Vec::new();
    let mut folders = vec![(String::new(), 0)];
    while let Some((prefix, depth)) = folders.pop() {
        let path = folder.join(&prefix);
        let entries = match std::fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if depth == 0 && error.kind() == std::io::ErrorKind::NotFound => break,
            Err(error) => return Err(file_error(&path, &error)),
        };
        for entry in entries {
            let entry = entry.map_err(|error| file_error(&path, &error))?;
            let kind = entry
                .file_type()
                .map_err(|error| file_error(&entry.path(), &error))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') {
                continue;
            }
            let relative = match prefix.is_empty() {
                true => name,
                false => format!("{prefix}/{name}"),
            };
            if kind.is_dir() && depth < MAX_DEPTH {
                folders.push((relative, depth + 1));
            } else if kind.is_file() {
                files.push(relative);
            }
        }
        if files.len() > MAX_FILES {
            return Err(StartError(format!(
                "{} has more than {MAX_FILES} files; remove those that no model needs",
                folder.display()
            )));
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_backup_needs_an_empty_folder() {
        let folder = tempfile::tempdir().unwrap();
        let backup = folder.path().join("a/b");
        create_backup_folder(&backup).unwrap();
        create_backup_folder(&backup).unwrap();
        std::fs::write(backup.join("x"), "").unwrap();
        let error = create_backup_folder(&backup).unwrap_err();
        assert!(error.0.contains("is not empty"), "{error}");
    }

    #[test]
    fn a_copy_is_private_and_has_the_digest_of_its_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("in/to"));
        std::fs::write(&from, vec![7; CHUNK_BYTES + 1]).unwrap();
        let copied = copy_private_file(&from, &to, &|_| {}).unwrap();
        assert_eq!(copied.bytes, CHUNK_BYTES as u64 + 1);
        assert_eq!(hash_file(&to, &|_| {}).unwrap(), copied);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(&to), 0o600);
            assert_eq!(mode(to.parent().unwrap()), 0o700);
        }
        assert_eq!(list_files(&folder.path().join("in")).unwrap(), ["to"]);
    }

    #[test]
    fn as_many_files_as_allowed_are_listed_and_no_more() {
        let folder = tempfile::tempdir().unwrap();
        assert!(
            list_files(&folder.path().join("missing"))
                .unwrap()
                .is_empty()
        );
        for number in 0..MAX_FILES {
            std::fs::write(folder.path().join(number.to_string()), "").unwrap();
        }
        std::fs::write(folder.path().join(".hidden"), "").unwrap();
        assert_eq!(list_files(folder.path()).unwrap().len(), MAX_FILES);
        std::fs::write(folder.path().join("more"), "").unwrap();
        assert!(list_files(folder.path()).is_err());
    }
}
