//! The manifest of a backup: what it was made of and with, and the digest of each of its files.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use a2a_registry_core::error::StartError;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::backup::BackupRights;
use serde::{Deserialize, Serialize};

pub(super) const MANIFEST_FILE: &str = "manifest.json";
/// The format of backups that this version writes, the only one so far.
pub(super) const FORMAT: u32 = 1;
/// Maximum size of a manifest: [`BackupRights`] lists a bounded number of rows.
const MAX_MANIFEST_BYTES: u64 = 16 * 1024 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DatabaseEngine {
    Sqlite,
    Postgres,
}

impl DatabaseEngine {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupManifest {
    pub format: u32,
    /// Version of the program that made the backup.
    pub version: String,
    pub created_at: Timestamp,
    pub engine: DatabaseEngine,
    /// Names of the migrations of its database.
    pub schema: Vec<String>,
    /// The oldest version that can run after each of them, as far as it is recorded.
    pub min_versions: BTreeMap<String, String>,
    /// Number of its last event.
    pub last_event: i64,
    pub with_secrets: bool,
    pub rights: BackupRights,
    /// The original path of each file with secrets.
    pub secret_files: BTreeMap<String, PathBuf>,
    /// All files except the manifest, by their paths in the backup.
    pub files: BTreeMap<String, BackupFile>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupFile {
    pub bytes: u64,
    /// Lower-case hex.
    pub sha256: String,
}

impl BackupManifest {
    /// Reads the manifest of a backup, which must be complete and of a format that this program knows.
    pub(super) fn read(folder: &Path) -> Result<Self, StartError> {
        let path = folder.join(MANIFEST_FILE);
        let mut text = Vec::new();
        let read = File::open(&path)
            .and_then(|file| file.take(MAX_MANIFEST_BYTES + 1).read_to_end(&mut text));
        let shown = folder.display();
        match read {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && folder.is_dir() => {
                return Err(StartError(format!(
                    "{shown} has no {MANIFEST_FILE}: it is not a backup, or the backup was interrupted; use another \
                     one"
                )));
            }
            Err(error) => {
                return Err(StartError(format!(
                    "{} cannot be read: {error}",
                    path.display()
                )));
            }
            Ok(_) if text.len() as u64 > MAX_MANIFEST_BYTES => {
                return Err(StartError(format!(
                    "{} is larger than {MAX_MANIFEST_BYTES} bytes, so it is no manifest of a backup",
                    path.display()
                )));
            }
            Ok(_) => {}
        }
        Self::parse(&text)
            .map_err(|reason| StartError(format!("the backup {shown} cannot be used: {reason}")))
    }

    fn parse(text: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Header {
            format: u32,
            version: String,
        }
        let invalid = |error: serde_json::Error| format!("{MANIFEST_FILE} is not valid: {error}");
        // The rest of another format may look different.
        let header: Header = serde_json::from_slice(text).map_err(invalid)?;
        if header.format != FORMAT {
            return Err(format!(
                "its format {} is not known to this version; use version {} or newer",
                header.format, header.version
            ));
        }
        let manifest: Self = serde_json::from_slice(text).map_err(invalid)?;
        let mut names = manifest.files.keys().chain(manifest.secret_files.keys());
        match names.find(|name| !is_inner_path(name)) {
            Some(name) => Err(format!(
                "{MANIFEST_FILE} names a file outside of it, {name:?}"
            )),
            None => Ok(manifest),
        }
    }
}

/// Whether a path stays inside the folder that it is relative to.
fn is_inner_path(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    !path.is_empty() && parts.all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn manifest() -> Value {
        json!({
            "format": 1, "version": "9.9.9", "created_at": "2026-01-31T12:00:00Z", "engine": "sqlite",
            "schema": ["m0001_people"], "min_versions": {}, "last_event": 7, "with_secrets": false,
            "rights": {
                "token_count": 0, "tokens": [], "hold_count": 0, "holds": [], "approved_agents": 0
            },
            "secret_files": {}, "files": { "a/b": { "bytes": 1, "sha256": "00" } },
        })
    }

    #[test]
    fn only_a_manifest_of_a_known_format_is_read() {
        let parse = |value: &Value| BackupManifest::parse(value.to_string().as_bytes());
        assert!(parse(&manifest()).is_ok());
        let mut newer = json!({ "format": 2, "version": "9.9.9" });
        let error = parse(&newer).unwrap_err();
        assert!(error.contains("use version 9.9.9"), "{error}");
        newer["format"] = json!(1);
        assert!(parse(&newer).unwrap_err().contains("missing field"));
        assert!(BackupManifest::parse(b"{").is_err());
    }

    #[test]
    fn no_file_outside_of_the_backup_is_named() {
        for path in ["", "/etc/passwd", "../a", "a/../../b", "./a"] {
            for member in ["files", "secret_files"] {
                let mut named = manifest();
                named[member] = match member {
                    "files" => json!({ path: { "bytes": 1, "sha256": "00" } }),
                    _ => json!({ path: "/etc/key.pem" }),
                };
                let error = BackupManifest::parse(named.to_string().as_bytes()).unwrap_err();
                assert!(error.contains("outside"), "{path}: {error}");
            }
        }
    }
}
