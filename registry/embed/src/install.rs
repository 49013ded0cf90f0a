//! Installs models in the data folder, and selects the one in use.
//!
//! Under `models/` each model has a folder named after the beginning of its id, and a small file names the one in use.
//! Everything is written under a temporary name and renamed when it is complete, so a killed process leaves the models
//! unchanged. Old models are kept: vectors that were made with them may still be compared.

use std::fs::{File, TryLockError};
use std::io::Write;
use std::path::Path;

use super::encoder::{folder_name, load};
use super::error::ModelError;
use super::folder::{Links, ModelFiles};
use super::installed::{
    ABOUT, About, CURRENT, InstalledModel, current, folder_of, models_folder, read_one,
};

/// Prefix of temporary names.
pub(super) const UNFINISHED: &str = ".installing-";
/// Lock file of the installing process.
const LOCK: &str = "lock";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    pub model: InstalledModel,
    /// Whether it was already installed, so that nothing was copied.
    pub was_there: bool,
    /// Whether it was in use before.
    pub was_current: bool,
}

/// Checks the model in a folder, following links, copies it into the data folder, which is created if necessary, and
/// selects it. Blocks until this is done; on an error nothing has changed.
pub fn install(data_dir: &Path, source: &Path) -> Result<Installation, ModelError> {
    let facts = std::fs::metadata(source).map_err(ModelError::unreadable(source))?;
    if !facts.is_dir() {
        return Err(ModelError::NoFolder(source.to_owned()));
    }
    let models = models_folder(data_dir);
    make_private(&models).map_err(ModelError::unwritable(&models))?;
    let _lock = lock(&models)?;
    clear_unfinished(&models)?;
    let workshop = tempfile::Builder::new()
        .prefix(UNFINISHED)
        .tempdir_in(&models)
        .map_err(ModelError::unwritable(&models))?;
    let files = ModelFiles::read(source, &folder_name(source), Links::Follow)?;
    let was_current = current(data_dir)
        .ok()
        .flatten()
        .and_then(|model| model.about)
        .is_some_and(|about| about.id == files.id);
    let target = folder_of(data_dir, &files.id);
    let was_there = is_whole(&target, &files.id);
    if !was_there {
        let complete = workshop.path().join("model");
        write(&files, &complete)?;
        // The written copy is the one that is tested.
        drop(load(files)?);
        if target.exists() {
            // An intact folder would have been used as it is, so this one is damaged.
            let damaged = workshop.path().join("damaged");
            std::fs::rename(&target, &damaged).map_err(ModelError::unwritable(&target))?;
        }
        std::fs::rename(&complete, &target).map_err(ModelError::unwritable(&target))?;
        sync_folder(&models)?;
    }
    let model = read_one(&target, true);
    if !was_current {
        make_current(&models, &target)?;
    }
    Ok(Installation {
        model,
        was_there,
        was_current,
    })
}

/// Whether a folder contains the model with this id, byte for byte.
fn is_whole(folder: &Path, id: &str) -> bool {
    let about = read_one(folder, false).about;
    about.is_some_and(|about| about.id == id)
        && ModelFiles::read(folder, "", Links::Refuse).is_ok_and(|files| files.id == id)
}

fn write(files: &ModelFiles, folder: &Path) -> Result<(), ModelError> {
    let about = About {
        id: files.id.clone(),
        name: files.name.clone(),
        dimensions: files.config.hidden,
        max_length: files.max_length,
        pooling: files.pooling,
        bytes: files.all().map(|(_, bytes)| bytes.len() as u64).sum(),
    };
    let text = serde_json::to_vec_pretty(&about)
        .map_err(|error| ModelError::unwritable(folder)(error.into()))?;
    for (path, bytes) in files.all().chain([(ABOUT, text.as_slice())]) {
        let path = folder.join(path);
        let written = || -> std::io::Result<()> {
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)?;
            }
            let mut file = File::create_new(&path)?;
            file.write_all(bytes)?;
            file.sync_all()
        };
        written().map_err(ModelError::unwritable(&path))?;
    }
    Ok(())
}

fn make_current(models: &Path, model: &Path) -> Result<(), ModelError> {
    let path = models.join(CURRENT);
    let written = || -> std::io::Result<()> {
        let mut file = tempfile::Builder::new()
            .prefix(UNFINISHED)
            .tempfile_in(models)?;
        let name = model.file_name().unwrap_or_default().to_string_lossy();
        writeln!(file, "{name}")?;
        file.as_file().sync_all()?;
        file.persist(&path)?;
        Ok(())
    };
    written().map_err(ModelError::unwritable(&path))?;
    sync_folder(models)
}

fn clear_unfinished(models: &Path) -> Result<(), ModelError> {
    let entries = std::fs::read_dir(models).map_err(ModelError::unreadable(models))?;
    for entry in entries {
        let entry = entry.map_err(ModelError::unreadable(models))?;
        let name = entry.file_name();
        if !name.to_string_lossy().starts_with(UNFINISHED) {
            continue;
        }
        let path = entry.path();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let gone = if is_folder {
            std::fs::remove_dir_all(&path)
        } else {
            std::fs::remove_file(&path)
        };
        gone.map_err(ModelError::unwritable(&path))?;
    }
    Ok(())
}

fn lock(models: &Path) -> Result<File, ModelError> {
    let path = models.join(LOCK);
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(ModelError::unwritable(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(ModelError::Installing(models.to_owned())),
        Err(TryLockError::Error(error)) => Err(ModelError::unwritable(&path)(error)),
    }
}

/// Makes a rename within the folder survive a power failure.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> Result<(), ModelError> {
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(ModelError::unwritable(folder))
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> Result<(), ModelError> {
    Ok(())
}

/// Creates a folder and its parents, accessible to their owner only.
#[cfg(unix)]
fn make_private(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
}

#[cfg(not(unix))]
fn make_private(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)
}
