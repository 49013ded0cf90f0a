//! Vector file: the vectors of all agents, one after another, read by offset.
//!
//! The file is derived: each process writes it from the database and deletes it when it ends. Written bytes never
//! change, so readers need no lock.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Extension of the file name. Such files that exist when a process starts are left over.
const VECTOR_FILE_EXTENSION: &str = "vectors";

/// A vector file, deleted when its last reader is dropped.
#[derive(Debug)]
pub(super) struct ProcessVectorFile {
    path: PathBuf,
    file: File,
}

impl ProcessVectorFile {
    /// Creates the file, and its folder if it is missing.
    pub fn create(folder: &Path, number: u64) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let path = folder.join(format!("{number}.{VECTOR_FILE_EXTENSION}"));
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)?;
        Ok(Self { path, file })
    }

    /// Writes bytes at an offset where nothing was written before. Fails for example on a full disk.
    pub fn write(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        write_all_at(&self.file, bytes, offset)
    }

    pub fn read(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        read_exact_at(&self.file, bytes, offset)
    }
}

impl Drop for ProcessVectorFile {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::debug!(%error, "cannot delete a vector file; the next start deletes it");
        }
    }
}

/// Removes the files that earlier processes left behind.
pub fn remove_leftover_vector_files(folder: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == VECTOR_FILE_EXTENSION)
        {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

#[cfg(unix)]
fn read_exact_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, at)
}

#[cfg(unix)]
fn write_all_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, at)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut bytes: &mut [u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let read = std::os::windows::fs::FileExt::seek_read(file, bytes, at)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes = &mut bytes[read..];
        at += read as u64;
    }
    Ok(())
}

#[cfg(windows)]
fn write_all_at(file: &File, mut bytes: &[u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = std::os::windows::fs::FileExt::seek_write(file, bytes, at)?;
        bytes = &bytes[written..];
        at += written as u64;
    }
    Ok(())
}
