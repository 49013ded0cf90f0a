//! Downloads of models: which files a model consists of, and the folder that collects them until they are installed.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use ring::digest::{SHA256, digest};

use super::bert_config::CONFIG_FILE;
use super::error::ModelError;
use super::install::{
    ModelInstallation, create_private_folder, install_from, lock_models_folder, remove_entries_if,
};
use super::installed_models::{list_installed_models, models_folder};
use super::model_folder::{
    DEFAULT_POOLING_FOLDER, LENGTH_CONFIG_FILE, MAX_SETTINGS_BYTES, MAX_TOKENIZER_BYTES,
    MAX_WEIGHTS_BYTES, MODULES_FILE, ModelFiles, SymlinkPolicy, TOKENIZER_FILE, WEIGHTS_FILE,
    join_path, parse_module_folders, sanitize_model_name,
};
use super::prompts::PROMPTS_FILE;

/// Prefix of the folders of downloads. Backups leave out hidden names.
const DOWNLOAD_PREFIX: &str = ".downloading-";
/// Bytes of the source's digest that name its folder.
const SOURCE_DIGEST_BYTES: usize = 8;
/// Maximum length of a file's path within a model, in bytes.
const MAX_PATH_BYTES: usize = 200;

/// A file of a model, by its path in the model's folder. Only JSON and safetensors files are ever named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelFile {
    pub path: String,
    /// Maximum size in bytes.
    pub max_bytes: u64,
    /// Whether the model cannot be installed without this file.
    pub is_required: bool,
}

/// The file that a download begins with, because it says in which folders others are.
pub fn first_model_file() -> ModelFile {
    ModelFile {
        path: MODULES_FILE.to_owned(),
        max_bytes: MAX_SETTINGS_BYTES,
        is_required: false,
    }
}

/// The files of a model besides the first one, whose content is given if the model has it. The largest file is the
/// last one.
pub fn list_model_files(modules: Option<&[u8]>) -> Result<Vec<ModelFile>, ModelError> {
    let (network_folder, pooling_folder) = match modules {
        Some(bytes) => parse_module_folders(bytes)?,
        None => (String::new(), None),
    };
    let in_network_folder = |name: &str| join_path(&network_folder, name);
    let pooling_path = join_path(
        pooling_folder.as_deref().unwrap_or(DEFAULT_POOLING_FOLDER),
        CONFIG_FILE,
    );
    let files = [
        (in_network_folder(CONFIG_FILE), MAX_SETTINGS_BYTES, true),
        (pooling_path, MAX_SETTINGS_BYTES, pooling_folder.is_some()),
        (
            in_network_folder(LENGTH_CONFIG_FILE),
            MAX_SETTINGS_BYTES,
            false,
        ),
        (PROMPTS_FILE.to_owned(), MAX_SETTINGS_BYTES, false),
        (in_network_folder(TOKENIZER_FILE), MAX_TOKENIZER_BYTES, true),
        (in_network_folder(WEIGHTS_FILE), MAX_WEIGHTS_BYTES, true),
    ];
    if files.iter().any(|(path, ..)| path.len() > MAX_PATH_BYTES) {
        return Err(ModelError::unsupported(
            MODULES_FILE,
            format!("it names a path longer than {MAX_PATH_BYTES} bytes"),
        ));
    }
    let files = files.map(|(path, max_bytes, is_required)| ModelFile {
        path,
        max_bytes,
        is_required,
    });
    Ok(files.into())
}

/// Folder of a download in the data folder. It is kept when the process ends, so that another process can continue the
/// download. While it is open, no other process installs a model.
#[derive(Debug)]
pub struct ModelDownload {
    data_dir: PathBuf,
    folder: PathBuf,
    /// Held until the download is dropped.
    _lock: File,
}

impl ModelDownload {
    /// Opens the folder for the download of `source`, with the files of an earlier process if `keeps_files`. There is
    /// at most one: the folders of other sources are removed.
    pub fn open(data_dir: &Path, source: &str, keeps_files: bool) -> Result<Self, ModelError> {
        let models = models_folder(data_dir);
        create_private_folder(&models).map_err(ModelError::unwritable(&models))?;
        let lock = lock_models_folder(&models)?;
        let name = download_folder_name(source);
        remove_entries_if(&models, |entry| {
            entry.starts_with(DOWNLOAD_PREFIX) && !(keeps_files && entry == name)
        })?;
        let folder = models.join(name);
        create_private_folder(&folder).map_err(ModelError::unwritable(&folder))?;
        Ok(Self {
            data_dir: data_dir.to_owned(),
            folder,
            _lock: lock,
        })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Selects the installed model that has this name and exactly these files, by path with the SHA-256 of each;
    /// `None` if there is none. Blocks while it reads the files.
    pub fn select_installed(
        &self,
        name: &str,
        digests: &BTreeMap<String, String>,
    ) -> Result<Option<ModelInstallation>, ModelError> {
        let name = sanitize_model_name(name);
        let mut models = list_installed_models(&self.data_dir)?;
        models.retain(|model| {
            let about = model.description.as_ref();
            about.is_some_and(|about| about.name == name)
        });
        for model in models {
            let folder = &model.folder;
            // A folder that was changed since is downloaded again.
            let is_requested = ModelFiles::read(folder, &name, SymlinkPolicy::Reject)
                .is_ok_and(|files| files.have_digests(digests));
            if is_requested {
                let selected = install_from(&self.data_dir, folder, &name, SymlinkPolicy::Reject);
                return selected.map(Some);
            }
        }
        Ok(None)
    }

    /// Installs the downloaded model under this name like [`crate::install_model`], and removes the download.
    /// The result is that of the installation: what cannot be removed now is removed by the next download.
    pub fn install(self, name: &str) -> Result<ModelInstallation, ModelError> {
        let installed = install_from(&self.data_dir, &self.folder, name, SymlinkPolicy::Reject);
        match installed {
            // The next attempt needs the files again.
            Err(ModelError::Unwritable { .. }) => installed,
            _ => {
                self.remove();
                installed
            }
        }
    }

    /// Removes the folder with its files, or leaves that to the next download.
    pub fn remove(self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn download_folder_name(source: &str) -> String {
    let hash = digest(&SHA256, source.as_bytes());
    let bytes = hash.as_ref().iter().take(SOURCE_DIGEST_BYTES);
    let digits: String = bytes.map(|byte| format!("{byte:02x}")).collect();
    format!("{DOWNLOAD_PREFIX}{digits}")
}
