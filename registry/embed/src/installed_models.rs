//! Installed models: lists those in the data folder, and finds the current one.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::encoder::{EncoderOptions, LocalEncoder, load_model};
use super::error::ModelError;
use super::model_folder::{ModelFiles, SymlinkPolicy};
use super::pooling::Pooling;

const MODELS_FOLDER: &str = "models";
pub(super) const CURRENT_FILE: &str = "current";
/// File that describes a model, so its weights need not be read.
pub(super) const DESCRIPTION_FILE: &str = "about.json";

/// Characters of the id that name the model's folder.
const SHORT_ID_CHARS: usize = 16;
/// Maximum number of bytes read from a description, or from the file that names the current model.
const MAX_SMALL_FILE_BYTES: u64 = 64 * 1024;
/// Maximum number of models listed.
pub const MAX_LISTED_MODELS: usize = 1000;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelDescription {
    /// The model's id, as in [`crate::ModelIdentity`].
    pub id: String,
    pub name: String,
    pub dimensions: usize,
    pub max_length: usize,
    pub pooling: Pooling,
    /// Total size of its files.
    pub bytes: u64,
}

impl ModelDescription {
    /// Describes a model by its settings, without opening it.
    pub(super) fn from_files(files: &ModelFiles, bytes: u64) -> Self {
        Self {
            id: files.id.clone(),
            name: files.name.clone(),
            dimensions: files.config.hidden_size,
            max_length: files.max_length,
            pooling: files.pooling,
            bytes,
        }
    }
}

/// Describes the built-in model, which takes no space in the data folder.
pub fn describe_built_in_model() -> Result<ModelDescription, ModelError> {
    Ok(ModelDescription::from_files(&ModelFiles::built_in()?, 0))
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledModel {
    pub folder: PathBuf,
    pub is_current: bool,
    /// The model's description; `None` if it is damaged.
    pub description: Option<ModelDescription>,
}

impl InstalledModel {
    /// Opens the model like [`LocalEncoder::open`], after checking that it is unchanged since its installation.
    pub fn open(&self, options: EncoderOptions) -> Result<LocalEncoder, ModelError> {
        let damaged = || ModelError::Damaged {
            path: self.folder.clone(),
            what: "has been changed since it was installed".to_owned(),
        };
        let description = self.description.as_ref().ok_or_else(damaged)?;
        let files = ModelFiles::read(&self.folder, &description.name, SymlinkPolicy::Reject)?;
        if files.id != description.id {
            return Err(damaged());
        }
        LocalEncoder::start(load_model(files)?, options)
    }
}

/// The installed models by folder name, at most [`MAX_LISTED_MODELS`]; empty if no model was ever installed.
pub fn list_installed_models(data_dir: &Path) -> Result<Vec<InstalledModel>, ModelError> {
    let models = models_folder(data_dir);
    let entries = match std::fs::read_dir(&models) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(ModelError::unreadable(&models)(error)),
    };
    let current = read_current_model_name(&models).unwrap_or_default();
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(ModelError::unreadable(&models))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if is_short_model_id(&name) {
            names.push(name);
        }
    }
    names.sort();
    names.truncate(MAX_LISTED_MODELS);
    let models = names.iter().map(|name| {
        let is_current = current.as_ref() == Some(name);
        read_installed_model(&models.join(name), is_current)
    });
    Ok(models.collect())
}

/// The current model; `None` if no model was ever installed.
pub fn find_current_model(data_dir: &Path) -> Result<Option<InstalledModel>, ModelError> {
    let models = models_folder(data_dir);
    let Some(name) = read_current_model_name(&models)? else {
        return Ok(None);
    };
    let model = read_installed_model(&models.join(name), true);
    if model.description.is_none() {
        return Err(ModelError::Damaged {
            path: model.folder,
            what: "is not a model folder".to_owned(),
        });
    }
    Ok(Some(model))
}

pub(super) fn models_folder(data_dir: &Path) -> PathBuf {
    data_dir.join(MODELS_FOLDER)
}

pub(super) fn model_folder_path(data_dir: &Path, id: &str) -> PathBuf {
    let short = id.get(..SHORT_ID_CHARS).unwrap_or(id);
    models_folder(data_dir).join(short)
}

pub(super) fn read_installed_model(folder: &Path, is_current: bool) -> InstalledModel {
    let description = read_small_file(&folder.join(DESCRIPTION_FILE))
        .ok()
        .flatten();
    let description =
        description.and_then(|text| serde_json::from_str::<ModelDescription>(&text).ok());
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    InstalledModel {
        is_current,
        description: description.filter(|about| about.id.get(..SHORT_ID_CHARS) == Some(&name)),
        folder: folder.to_owned(),
    }
}

fn read_current_model_name(models: &Path) -> Result<Option<String>, ModelError> {
    let path = models.join(CURRENT_FILE);
    let Some(text) = read_small_file(&path).map_err(ModelError::unreadable(&path))? else {
        return Ok(None);
    };
    let name = text.trim_end();
    if !is_short_model_id(name) {
        return Err(ModelError::Damaged {
            path,
            what: "names no model".to_owned(),
        });
    }
    Ok(Some(name.to_owned()))
}

/// Whether a text is a valid name of a model folder, and so cannot point elsewhere.
fn is_short_model_id(name: &str) -> bool {
    let hexadecimal = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    name.len() == SHORT_ID_CHARS && name.bytes().all(hexadecimal)
}

/// A small file's text; `None` if it does not exist.
fn read_small_file(path: &Path) -> std::io::Result<Option<String>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut text = String::new();
    file.take(MAX_SMALL_FILE_BYTES).read_to_string(&mut text)?;
    Ok(Some(text))
}
