//! The file that holds the vectors of all agents, one after another, to be read by place.
//!
//! It is derived like everything here: made anew by each process from the database, and gone with it. What is written
//! once is never changed, so readers need no lock.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Prefix of the file's name; any such file in the folder is left over when a process starts.
const EXTENSION: &str = "vectors";

/// The file, which is deleted with its last reader.
#[derive(Debug)]
pub(super) struct VectorFile {
    path: PathBuf,
    file: File,
}

impl VectorFile {
    /// Makes an empty file in the folder, which is made when it is missing.
    ///
    /// # Errors
    /// The error of the system.
    pub fn create(folder: &Path, number: u64) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let path = folder.join(format!("{number}.{EXTENSION}"));
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)?;
        Ok(Self { path, file })
    }

    /// Writes at a place where nothing was written before.
    ///
    /// # Errors
    /// The error of the system, such as a full disk.
    pub fn write(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        write_all_at(&self.file, bytes, at)
    }

    /// Reads what was written at a place.
    ///
    /// # Errors
    /// The error of the system.
    pub fn read(&self, bytes: &mut [u8], at: u64) -> io::Result<()> {
        read_exact_at(&self.file, bytes, at)
    }
}

impl Drop for VectorFile {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::debug!(%error, "a file of vectors stays until the next start");
        }
    }
}

/// Removes what processes before this one have left.
///
/// # Errors
/// Where the folder is there and cannot be read.
pub fn remove_left_over(folder: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == EXTENSION)
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
