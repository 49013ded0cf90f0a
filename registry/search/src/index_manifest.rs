//! Index manifest: a small file that names the index folder in use and the versions it was built for.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::analysis::TOKENIZER_VERSION;
use super::error::IndexError;
use super::schema::SCHEMA_VERSION;

pub(super) const MANIFEST_FILE: &str = "CURRENT";

const FOLDER_PREFIX: &str = "generation-";

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct IndexManifest {
    pub schema: u32,
    pub tokenizer: u32,
    pub folder: String,
}

impl IndexManifest {
    pub fn for_folder(folder: &str) -> Self {
        Self {
            schema: SCHEMA_VERSION,
            tokenizer: TOKENIZER_VERSION,
            folder: folder.to_owned(),
        }
    }

    /// Reads the manifest. The error is the reason why this program cannot use the index.
    pub fn read(dir: &Path) -> Result<Self, String> {
        let text = match fs::read(dir.join(MANIFEST_FILE)) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err("there is no index yet".to_owned());
            }
            Err(error) => return Err(format!("its manifest cannot be read: {error}")),
        };
        let manifest: Self = serde_json::from_slice(&text)
            .map_err(|error| format!("its manifest is damaged: {error}"))?;
        if manifest != Self::for_folder(&manifest.folder) {
            return Err(format!(
                "it has schema {}.{}, this program uses {SCHEMA_VERSION}.{TOKENIZER_VERSION}",
                manifest.schema, manifest.tokenizer
            ));
        }
        if folder_number(&manifest.folder).is_none() {
            return Err("its manifest is damaged: the folder name is invalid".to_owned());
        }
        Ok(manifest)
    }

    /// Replaces the manifest atomically: a crash leaves either the old or the new one.
    pub fn write(&self, dir: &Path) -> Result<(), IndexError> {
        let temp_path = dir.join(format!("{MANIFEST_FILE}.new"));
        let put = || -> std::io::Result<()> {
            let mut file = File::create(&temp_path)?;
            file.write_all(&serde_json::to_vec(self)?)?;
            file.sync_all()?;
            fs::rename(&temp_path, dir.join(MANIFEST_FILE))?;
            // The rename is durable only once the folder is synced; some systems cannot open a folder.
            if let Ok(folder) = File::open(dir) {
                folder.sync_all()?;
            }
            Ok(())
        };
        put().map_err(|source| IndexError::Io {
            path: dir.join(MANIFEST_FILE),
            source,
        })
    }
}

fn folder_number(folder: &str) -> Option<u64> {
    folder.strip_prefix(FOLDER_PREFIX)?.parse().ok()
}

/// The folders of an index with their numbers; empty if `dir` cannot be read.
fn list_folders(dir: &Path) -> Vec<(u64, PathBuf)> {
    fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((folder_number(entry.file_name().to_str()?)?, entry.path())))
        .collect()
}

/// An unused folder name, also different from the one in use, whose folder may have been deleted.
pub(super) fn unused_folder_name(dir: &Path, in_use: Option<&str>) -> String {
    let present = list_folders(dir).into_iter().map(|(number, _)| number);
    let last = present.chain(in_use.and_then(folder_number)).max();
    format!(
        "{FOLDER_PREFIX}{}",
        last.map_or(1, |last| last.saturating_add(1))
    )
}

/// Removes the folders of unfinished rebuilds and of replaced indexes. A folder that cannot be removed because it is
/// still mapped into memory is removed at a later start.
pub(super) fn remove_stale_folders(dir: &Path, current: &str) {
    for (_, path) in list_folders(dir) {
        if path.file_name().is_none_or(|name| name != current)
            && let Err(error) = fs::remove_dir_all(&path)
        {
            tracing::warn!(path = %path.display(), %error, "cannot remove an old index folder until a restart");
        }
    }
}
