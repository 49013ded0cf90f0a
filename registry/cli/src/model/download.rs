//! Download of a model's files from a hub: bounded, continued where it stopped, and checked against the digests.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use a2a_registry_embed::{ModelError, ModelFile, first_model_file, list_model_files};
use data_encoding::HEXLOWER;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ring::digest::{Context, SHA256};

use super::hub::{Hub, HubError, HubFile};
use super::pins::{HubRequest, ModelPins};
use crate::command_error::CommandError;

/// Revision that is requested until the hub has named its newest commit.
const NEWEST_REVISION: &str = "main";
/// How often a file is continued after its connection broke, each time only if bytes had arrived.
const MAX_CONTINUATIONS: usize = 5;
/// Suffix of a file that is not complete.
const PART_SUFFIX: &str = ".part";
/// Bytes that are hashed at a time.
const HASH_BUFFER_BYTES: usize = 64 * 1024;

/// Why a model could not be downloaded.
#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    #[error(transparent)]
    Hub(#[from] HubError),
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error(
        "the hub has no {0} of this model at this revision; check both, and choose a model with safetensors: pickle \
         files (.bin) are not taken"
    )]
    Missing(String),
    #[error("the digest of {0} is missing; give --sha256 FILE=HASH for each of these files")]
    NotPinned(String),
    #[error("{0} is not a file of this model; omit its --sha256")]
    NotAModelFile(String),
    #[error(
        "the SHA-256 of {file} is {actual}, not {expected}; nothing was installed: check the digest, and do not use \
         this hub if it is right"
    )]
    WrongDigest {
        file: String,
        actual: String,
        expected: String,
    },
    #[error("the hub does not name the commit of its files; choose one with --revision")]
    UnknownCommit,
}

impl From<DownloadError> for CommandError {
    fn from(error: DownloadError) -> Self {
        Self::new(error.to_string())
    }
}

/// Download in progress.
struct DownloadSession<'a> {
    hub: &'a Hub,
    request: &'a HubRequest,
    folder: &'a Path,
    progress: ProgressBar,
    /// The requested commit, or the one that the hub has named.
    revision: Option<String>,
    /// Digests of the complete files.
    digests: BTreeMap<String, String>,
}

/// Downloads the requested files to a folder, and returns what they are. Complete and incomplete files in the folder
/// are continued.
pub async fn download_model(
    hub: &Hub,
    request: &HubRequest,
    folder: &Path,
) -> Result<ModelPins, DownloadError> {
    let mut session = DownloadSession {
        hub,
        request,
        folder,
        progress: new_progress_bar(),
        revision: request.revision.clone(),
        digests: BTreeMap::new(),
    };
    let downloaded = session.download_files().await;
    session.progress.finish_and_clear();
    downloaded?;
    Ok(ModelPins {
        name: request.name.clone(),
        revision: session.revision.ok_or(DownloadError::UnknownCommit)?,
        sha256: session.digests,
    })
}

/// Progress of one file, shown on standard error if it is a terminal.
fn new_progress_bar() -> ProgressBar {
    let progress = ProgressBar::no_length();
    progress.set_draw_target(ProgressDrawTarget::stderr());
    if let Ok(style) =
        ProgressStyle::with_template("{msg} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left")
    {
        progress.set_style(style);
    }
    progress
}

impl DownloadSession<'_> {
    async fn download_files(&mut self) -> Result<(), DownloadError> {
        let first = first_model_file();
        self.download_file(&first).await?;
        let modules = match self.digests.contains_key(&first.path) {
            true => Some(read_small_file(&self.folder.join(&first.path))?),
            false => None,
        };
        let files = list_model_files(modules.as_deref())?;
        self.check_pins(&first, &files)?;
        for file in &files {
            self.download_file(file).await?;
        }
        Ok(())
    }

    /// Compares the files of the model with the pinned ones before the large ones are requested.
    fn check_pins(&self, first: &ModelFile, files: &[ModelFile]) -> Result<(), DownloadError> {
        let Some(pins) = &self.request.pins else {
            return Ok(());
        };
        let is_model_file = |path: &str| files.iter().chain([first]).any(|file| file.path == path);
        if let Some(path) = pins.keys().find(|path| !is_model_file(path)) {
            return Err(DownloadError::NotAModelFile(path.clone()));
        }
        let required = files.iter().filter(|file| file.is_required);
        let missing: Vec<&str> = required
            .map(|file| file.path.as_str())
            .filter(|path| !pins.contains_key(*path))
            .collect();
        match missing.is_empty() {
            true => Ok(()),
            false => Err(DownloadError::NotPinned(missing.join(", "))),
        }
    }

    /// Downloads a file, unless it is complete or the hub does not have it.
    async fn download_file(&mut self, file: &ModelFile) -> Result<(), DownloadError> {
        let request = self.request;
        let pins = request.pins.as_ref();
        let expected = pins.and_then(|pins| pins.get(&file.path));
        let path = self.folder.join(&file.path);
        if let Some(expected) = expected
            && path.is_file()
            && hash_file(&path)? == *expected
        {
            self.digests.insert(file.path.clone(), expected.clone());
            return Ok(());
        }
        if path.exists() {
            // It was downloaded with other digests.
            remove_file(&path)?;
        }
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(unwritable(parent))?;
        }
        let part = self.folder.join(format!("{}{PART_SUFFIX}", file.path));
        let is_refused = pins.is_some() && expected.is_none();
        if !self.download_part(file, &part, is_refused).await? {
            return match file.is_required || expected.is_some() {
                true => Err(DownloadError::Missing(file.path.clone())),
                false => Ok(()),
            };
        }
        let actual = hash_file(&part)?;
        if let Some(expected) = expected.filter(|expected| **expected != actual) {
            remove_file(&part)?;
            return Err(DownloadError::WrongDigest {
                file: file.path.clone(),
                actual,
                expected: expected.clone(),
            });
        }
        std::fs::rename(&part, &path).map_err(unwritable(&path))?;
        self.digests.insert(file.path.clone(), actual);
        Ok(())
    }

    /// Downloads a file to `part`, and continues when the connection breaks; false if the hub does not have it.
    async fn download_part(
        &mut self,
        file: &ModelFile,
        part: &Path,
        is_refused: bool,
    ) -> Result<bool, DownloadError> {
        let mut continuations = 0;
        loop {
            let offset = file_length(part)?;
            let result = self.continue_part(file, part, offset, is_refused).await;
            let can_continue = match &result {
                Err(DownloadError::Hub(HubError::CutOff { .. })) => file_length(part)? > offset,
                Err(DownloadError::Hub(HubError::WrongRange(_))) if offset > 0 => {
                    remove_file(part)?;
                    true
                }
                _ => false,
            };
            if !can_continue || continuations == MAX_CONTINUATIONS {
                return result;
            }
            continuations += 1;
        }
    }

    async fn continue_part(
        &mut self,
        file: &ModelFile,
        part: &Path,
        offset: u64,
        is_refused: bool,
    ) -> Result<bool, DownloadError> {
        let revision = self.revision.as_deref().unwrap_or(NEWEST_REVISION);
        let name = &self.request.name;
        let opened = self
            .hub
            .open_file(name, revision, &file.path, offset)
            .await?;
        let Some(mut body) = opened else {
            return Ok(false);
        };
        if is_refused {
            return Err(DownloadError::NotPinned(file.path.clone()));
        }
        if self.revision.is_none() {
            self.revision = Some(body.commit.take().ok_or(DownloadError::UnknownCommit)?);
        }
        if body.total.is_some_and(|total| total > file.max_bytes) {
            return Err(too_large(file).into());
        }
        self.receive_body(file, part, &mut body).await?;
        Ok(true)
    }

    async fn receive_body(
        &self,
        file: &ModelFile,
        part: &Path,
        body: &mut HubFile,
    ) -> Result<(), DownloadError> {
        self.progress.reset();
        self.progress.set_message(file.path.clone());
        match body.total {
            Some(total) => self.progress.set_length(total),
            None => self.progress.unset_length(),
        }
        let mut length = body.start;
        let mut output = open_part(part, length > 0)?;
        while let Some(chunk) = body.next_chunk().await? {
            length += chunk.len() as u64;
            if length > file.max_bytes {
                drop(output);
                remove_file(part)?;
                return Err(too_large(file).into());
            }
            output.write_all(&chunk).map_err(unwritable(part))?;
            self.progress.set_position(length);
        }
        match body.total {
            // A connection that closes may be all that marks the end of a body.
            Some(total) if length < total => {
                let reason = format!("{length} of {total} bytes arrived");
                Err(body.cut_off_error(reason).into())
            }
            _ => Ok(()),
        }
    }
}

fn too_large(file: &ModelFile) -> ModelError {
    ModelError::TooLarge {
        file: file.path.clone(),
        limit: file.max_bytes,
    }
}

fn unwritable(path: &Path) -> impl FnOnce(std::io::Error) -> ModelError {
    let path = path.to_owned();
    move |error| ModelError::Unwritable { path, error }
}

fn unreadable(path: &Path) -> impl FnOnce(std::io::Error) -> ModelError {
    let path = path.to_owned();
    move |error| ModelError::Unreadable { path, error }
}

/// Opens a file to write at its end if it is continued, otherwise from its start.
fn open_part(part: &Path, continues: bool) -> Result<File, ModelError> {
    let mut options = File::options();
    options.create(true).write(true);
    match continues {
        true => options.append(true),
        false => options.truncate(true),
    };
    options.open(part).map_err(unwritable(part))
}

/// Length of a file; 0 if it does not exist.
fn file_length(path: &Path) -> Result<u64, ModelError> {
    match std::fs::metadata(path) {
        Ok(metadata) => Ok(metadata.len()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(unreadable(path)(error)),
    }
}

fn remove_file(path: &Path) -> Result<(), ModelError> {
    std::fs::remove_file(path).map_err(unwritable(path))
}

/// Reads a downloaded file whose size was bounded.
fn read_small_file(path: &Path) -> Result<Vec<u8>, ModelError> {
    std::fs::read(path).map_err(unreadable(path))
}

/// The lower-case hexadecimal SHA-256 of a file.
fn hash_file(path: &Path) -> Result<String, ModelError> {
    let mut file = File::open(path).map_err(unreadable(path))?;
    let mut context = Context::new(&SHA256);
    let mut buffer = vec![0; HASH_BUFFER_BYTES];
    loop {
        let count = file.read(&mut buffer).map_err(unreadable(path))?;
        if count == 0 {
            return Ok(HEXLOWER.encode(context.finish().as_ref()));
        }
        context.update(&buffer[..count]);
    }
}
