//! The stamp: a small file that names the folder in use and what it was built for.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::analysis::TOKENIZER_VERSION;
use super::error::IndexError;
use super::schema::SCHEMA_VERSION;

/// The stamp's file name.
pub(super) const STAMP: &str = "CURRENT";

/// What every folder's name begins with.
const FOLDER: &str = "generation-";

/// Which folder is in use.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Stamp {
    pub schema: u32,
    pub tokenizer: u32,
    pub folder: String,
}

impl Stamp {
    /// The stamp of a folder that this program built.
    pub fn of(folder: &str) -> Self {
        Self {
            schema: SCHEMA_VERSION,
            tokenizer: TOKENIZER_VERSION,
            folder: folder.to_owned(),
        }
    }

    /// Reads the stamp; the error says in words why there is none that this program can use.
    pub fn read(dir: &Path) -> Result<Self, String> {
        let text = match fs::read(dir.join(STAMP)) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err("there is no index yet".to_owned());
            }
            Err(error) => return Err(format!("its stamp cannot be read: {error}")),
        };
        let stamp: Self = serde_json::from_slice(&text)
            .map_err(|error| format!("its stamp is damaged: {error}"))?;
        if stamp != Self::of(&stamp.folder) {
            return Err(format!(
                "it has schema {}.{}, this program uses {SCHEMA_VERSION}.{TOKENIZER_VERSION}",
                stamp.schema, stamp.tokenizer
            ));
        }
        if number(&stamp.folder).is_none() {
            return Err("its stamp is damaged: no such folder can be".to_owned());
        }
        Ok(stamp)
    }

    /// Puts the stamp in the place of the old one at once: a crash leaves the old or the new one, never half.
    pub fn write(&self, dir: &Path) -> Result<(), IndexError> {
        let fresh = dir.join(format!("{STAMP}.new"));
        let put = || -> std::io::Result<()> {
            let mut file = File::create(&fresh)?;
            file.write_all(&serde_json::to_vec(self)?)?;
            file.sync_all()?;
            fs::rename(&fresh, dir.join(STAMP))?;
            // The rename itself lasts only once the folder is written; not every system can open a folder.
            if let Ok(folder) = File::open(dir) {
                folder.sync_all()?;
            }
            Ok(())
        };
        put().map_err(|source| IndexError::Io {
            path: dir.join(STAMP),
            source,
        })
    }
}

fn number(folder: &str) -> Option<u64> {
    folder.strip_prefix(FOLDER)?.parse().ok()
}

/// The folders of generations in an index folder, with their numbers; none when it cannot be read.
fn folders(dir: &Path) -> Vec<(u64, PathBuf)> {
    fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((number(entry.file_name().to_str()?)?, entry.path())))
        .collect()
}

/// A name for a folder that is not there yet, nor is the one in use, which may have been deleted under way.
pub(super) fn fresh_folder(dir: &Path, in_use: Option<&str>) -> String {
    let present = folders(dir).into_iter().map(|(number, _)| number);
    let last = present.chain(in_use.and_then(number)).max();
    format!("{FOLDER}{}", last.map_or(1, |last| last.saturating_add(1)))
}

/// Removes what unfinished rebuilds and finished predecessors left. What cannot be removed now, because it is
/// still mapped somewhere, is removed at a later start.
pub(super) fn remove_others(dir: &Path, keep: &str) {
    for (_, path) in folders(dir) {
        if path.file_name().is_none_or(|name| name != keep)
            && let Err(error) = fs::remove_dir_all(&path)
        {
            tracing::warn!(path = %path.display(), %error, "an old index folder stays for now");
        }
    }
}
