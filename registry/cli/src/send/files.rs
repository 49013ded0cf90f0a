//! Files and data of `send`: read from disk into a message, and out of an answer into one folder.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use a2a_client::{AgentFile, AgentResponse, FileContent, Part};
use serde_json::Value;

use crate::command_error::CommandError;
use crate::terminal;

/// Size limit of the files and data of a message, in bytes.
const MAX_SENT_BYTES: u64 = 32 * 1024 * 1024;
/// Limit for the name of a written file, in bytes; file systems allow 255.
const MAX_NAME_BYTES: usize = 120;
/// Number of files with one name in the folder.
const MAX_SAME_NAME_FILES: u32 = 1000;

/// Reads the files and data of a message. Data is JSON, or `@` with the path of a JSON file.
///
/// # Errors
/// If one cannot be read or is not JSON, or all together exceed the limit.
pub(super) fn read_message_parts(
    files: &[PathBuf],
    data: &[String],
) -> Result<Vec<Part>, CommandError> {
    let mut remaining = MAX_SENT_BYTES;
    let mut parts = Vec::new();
    for path in files {
        let bytes = read_file_within_limit(path, &mut remaining)?;
        let name = path.file_name().unwrap_or(path.as_os_str());
        parts.push(Part::File {
            name: name.to_string_lossy().into_owned(),
            media_type: mime_guess::from_path(path)
                .first_or_octet_stream()
                .to_string(),
            bytes,
        });
    }
    for datum in data {
        let bytes = match datum.strip_prefix('@') {
            Some(path) => read_file_within_limit(Path::new(path), &mut remaining)?,
            None => datum.clone().into_bytes(),
        };
        let value: Value = serde_json::from_slice(&bytes)
            .map_err(|error| CommandError::new(format!("--data {datum} is not JSON: {error}")))?;
        parts.push(Part::Data(value));
    }
    Ok(parts)
}

/// Reads a file up to the limit; a folder or an endless device is an error too.
fn read_file_within_limit(path: &Path, remaining: &mut u64) -> Result<Vec<u8>, CommandError> {
    let read_error =
        |error: io::Error| CommandError::new(format!("{} cannot be read: {error}", path.display()));
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(read_error)?;
    let length = file
        .take(*remaining + 1)
        .read_to_end(&mut bytes)
        .map_err(read_error)?;
    *remaining = remaining.checked_sub(length as u64).ok_or_else(|| {
        CommandError::new(format!(
            "the files and data of a message can have at most {MAX_SENT_BYTES} bytes in total; {} exceeds \
             this limit",
            path.display()
        ))
    })?;
    Ok(bytes)
}

/// Writes the files and data of an answer into a folder, which is created if it does not exist. Nothing is
/// overwritten, and names cannot lead out of it.
pub(super) fn save_response_files(
    response: &AgentResponse,
    folder: &Path,
) -> Result<(), CommandError> {
    let write_error = |path: &Path, error: io::Error| {
        CommandError::new(format!("{} cannot be written: {error}", path.display()))
    };
    fs::create_dir_all(folder).map_err(|error| write_error(folder, error))?;
    for (index, file) in response.files().iter().enumerate() {
        let name = safe_file_name(file, index + 1);
        let bytes = match &file.content {
            FileContent::Bytes(bytes) => bytes.clone(),
            FileContent::Data(data) => format!("{data}\n").into_bytes(),
            FileContent::Address(address) => {
                terminal::eprint_note(&format!("not fetched: {name} at {address}"));
                continue;
            }
            FileContent::Unreadable => {
                terminal::eprint_note(&format!("not saved: {name}, which is not base64"));
                continue;
            }
        };
        let path = write_new_file(folder, &name, &bytes)
            .map_err(|error| write_error(&folder.join(&name), error))?;
        terminal::eprint_note(&format!("saved {} ({} bytes)", path.display(), bytes.len()));
    }
    Ok(())
}

/// Writes a new file. If the name is taken, even by a link, a number is added before its extension.
fn write_new_file(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
    let (stem, extension) = match name.rsplit_once('.') {
        Some((stem, ending)) if !stem.is_empty() => (stem, format!(".{ending}")),
        _ => (name, String::new()),
    };
    for number in 1..=MAX_SAME_NAME_FILES {
        let path = match number {
            1 => folder.join(name),
            _ => folder.join(format!("{stem}-{number}{extension}")),
        };
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(mut file) => {
                file.write_all(bytes)?;
                return Ok(path);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// File name for an agent's file that is valid on every system: the last segment of the agent's name, reduced to
/// letters, digits and a few marks, without a leading dot.
fn safe_file_name(file: &AgentFile, number: usize) -> String {
    let own = file.name.as_deref().unwrap_or_default();
    let last = own.rsplit(['/', '\\']).next().unwrap_or_default();
    let mut name = String::new();
    for character in last.trim_start_matches(['.', ' ', '-']).chars() {
        let plain =
            character.is_alphanumeric() || ['.', '_', '-', ' ', '+', '(', ')'].contains(&character);
        let character = if plain { character } else { '_' };
        if name.len() + character.len_utf8() > MAX_NAME_BYTES {
            break;
        }
        name.push(character);
    }
    let name = name.trim_end_matches(['.', ' ']);
    match &file.content {
        _ if !name.is_empty() && !is_device_name(name) => name.to_owned(),
        FileContent::Data(_) => format!("data-{number}.json"),
        _ => format!("file-{number}"),
    }
}

/// Names that Windows reserves for devices, with any extension.
fn is_device_name(name: &str) -> bool {
    let stem = name
        .split('.')
        .next()
        .unwrap_or_default()
        .trim_end()
        .to_ascii_uppercase();
    let numbered = |prefix| {
        let number = stem.strip_prefix(prefix);
        number.is_some_and(|number| number.chars().count() == 1)
    };
    matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL") || numbered("COM") || numbered("LPT")
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
