//! Installation of models in the data folder, and selection of the current one.
//!
//! Under `models/` each model has a folder named by the first characters of its id, and a small file names the current
//! model. All files are written under a temporary name and renamed when complete, so a killed process leaves the
//! models unchanged. Old models are kept, because vectors made with them may still be compared.

use std::fs::{File, TryLockError};
use std::io::Write;
use std::path::Path;

use super::encoder::{folder_name, load_model};
use super::error::ModelError;
use super::installed_models::{
    CURRENT_FILE, DESCRIPTION_FILE, InstalledModel, ModelDescription, find_current_model,
    model_folder_path, models_folder, read_installed_model,
};
use super::model_folder::{ModelFiles, SymlinkPolicy};

/// Prefix of temporary names.
pub(super) const TEMPORARY_PREFIX: &str = ".installing-";
/// Lock file held by the installing process.
const LOCK_FILE: &str = "lock";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelInstallation {
    pub model: InstalledModel,
    /// Whether the model was already installed, so nothing was copied.
    pub was_installed: bool,
    /// Whether the model was already the current one.
    pub was_current: bool,
}

/// Checks the model in a folder (following links), copies it to the data folder, which is created if necessary, and
/// selects it. Blocks until this is done; on an error nothing has changed.
pub fn install_model(data_dir: &Path, source: &Path) -> Result<ModelInstallation, ModelError> {
    let metadata = std::fs::metadata(source).map_err(ModelError::unreadable(source))?;
    if !metadata.is_dir() {
        return Err(ModelError::NotAFolder(source.to_owned()));
    }
    let models = models_folder(data_dir);
    create_private_folder(&models).map_err(ModelError::unwritable(&models))?;
    let _lock = lock_models_folder(&models)?;
    let name = folder_name(source);
    install_from(data_dir, source, &name, SymlinkPolicy::Follow)
}

/// Installs the model in a folder under this name. The caller holds the lock of the models folder.
pub(super) fn install_from(
    data_dir: &Path,
    source: &Path,
    name: &str,
    symlinks: SymlinkPolicy,
) -> Result<ModelInstallation, ModelError> {
    let models = models_folder(data_dir);
    remove_entries_if(&models, |entry| entry.starts_with(TEMPORARY_PREFIX))?;
    let temporary_folder = tempfile::Builder::new()
        .prefix(TEMPORARY_PREFIX)
        .tempdir_in(&models)
        .map_err(ModelError::unwritable(&models))?;
    let files = ModelFiles::read(source, name, symlinks)?;
    let was_current = find_current_model(data_dir)
        .ok()
        .flatten()
        .and_then(|model| model.description)
        .is_some_and(|about| about.id == files.id);
    let target = model_folder_path(data_dir, &files.id);
    let was_installed = contains_intact_model(&target, &files.id);
    if was_installed {
        rename_model(&models, &target, &files.name)?;
    } else {
        let complete = temporary_folder.path().join("model");
        write_model(&files, &complete)?;
        // This tests the written copy.
        drop(load_model(files)?);
        if target.exists() {
            // An intact folder would have been reused, so this one is damaged.
            let damaged = temporary_folder.path().join("damaged");
            std::fs::rename(&target, &damaged).map_err(ModelError::unwritable(&target))?;
        }
        std::fs::rename(&complete, &target).map_err(ModelError::unwritable(&target))?;
        sync_folder(&models)?;
    }
    let model = read_installed_model(&target, true);
    if !was_current {
        set_current_model(&models, &target)?;
    }
    Ok(ModelInstallation {
        model,
        was_installed,
        was_current,
    })
}

/// Whether a folder contains the model with this id, byte for byte.
fn contains_intact_model(folder: &Path, id: &str) -> bool {
    let description = read_installed_model(folder, false).description;
    description.is_some_and(|about| about.id == id)
        && ModelFiles::read(folder, "", SymlinkPolicy::Reject).is_ok_and(|files| files.id == id)
}

fn write_model(files: &ModelFiles, folder: &Path) -> Result<(), ModelError> {
    let lengths = files.iter_files().map(|(_, bytes)| bytes.len() as u64);
    let description = ModelDescription::from_files(files, lengths.sum());
    let text = serialize_description(&description, folder)?;
    for (path, bytes) in files
        .iter_files()
        .chain([(DESCRIPTION_FILE, text.as_slice())])
    {
        let path = folder.join(path);
        let write_file = || -> std::io::Result<()> {
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)?;
            }
            let mut file = File::create_new(&path)?;
            file.write_all(bytes)?;
            file.sync_all()
        };
        write_file().map_err(ModelError::unwritable(&path))?;
    }
    Ok(())
}

fn serialize_description(
    description: &ModelDescription,
    folder: &Path,
) -> Result<Vec<u8>, ModelError> {
    serde_json::to_vec_pretty(description)
        .map_err(|error| ModelError::unwritable(folder)(error.into()))
}

/// Gives an installed model this name: the last one under which it was installed.
fn rename_model(models: &Path, folder: &Path, name: &str) -> Result<(), ModelError> {
    match read_installed_model(folder, false).description {
        Some(mut description) if description.name != name => {
            name.clone_into(&mut description.name);
            let text = serialize_description(&description, folder)?;
            replace_file(models, &folder.join(DESCRIPTION_FILE), &text)?;
            sync_folder(folder)
        }
        _ => Ok(()),
    }
}

fn set_current_model(models: &Path, model: &Path) -> Result<(), ModelError> {
    let name = model.file_name().unwrap_or_default().to_string_lossy();
    let text = format!("{name}\n");
    replace_file(models, &models.join(CURRENT_FILE), text.as_bytes())?;
    sync_folder(models)
}

/// Replaces a file below the models folder, so that it has its old or its new content at any time.
fn replace_file(models: &Path, path: &Path, content: &[u8]) -> Result<(), ModelError> {
    let write_file = || -> std::io::Result<()> {
        let mut file = tempfile::Builder::new()
            .prefix(TEMPORARY_PREFIX)
            .tempfile_in(models)?;
        file.write_all(content)?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    };
    write_file().map_err(ModelError::unwritable(path))
}

/// Removes the files and folders in the models folder whose names satisfy the condition.
pub(super) fn remove_entries_if(
    models: &Path,
    condition: impl Fn(&str) -> bool,
) -> Result<(), ModelError> {
    let entries = std::fs::read_dir(models).map_err(ModelError::unreadable(models))?;
    for entry in entries {
        let entry = entry.map_err(ModelError::unreadable(models))?;
        let name = entry.file_name();
        if !condition(&name.to_string_lossy()) {
            continue;
        }
        let path = entry.path();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let removed = if is_folder {
            std::fs::remove_dir_all(&path)
        } else {
            std::fs::remove_file(&path)
        };
        removed.map_err(ModelError::unwritable(&path))?;
    }
    Ok(())
}

pub(super) fn lock_models_folder(models: &Path) -> Result<File, ModelError> {
    let path = models.join(LOCK_FILE);
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

/// Syncs a folder, so that a rename within it survives a power failure.
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

/// Creates a folder and its parents, accessible only to their owner.
#[cfg(unix)]
pub(super) fn create_private_folder(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
}

#[cfg(not(unix))]
pub(super) fn create_private_folder(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)
}
