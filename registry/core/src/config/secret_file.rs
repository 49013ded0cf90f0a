//! Files with secrets: where they are, who may write and read them, and what they hold.

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::config::Config;

/// The setting of the key of stored secrets.
pub const SECRETS_KEY_SETTING: &str = "secrets.key_file";

/// Maximum size of a secret file, in bytes.
const MAX_SECRET_FILE_BYTES: u64 = 8 * 1024;

/// Variable with the folder where systemd puts the credentials of a service.
const CREDENTIALS_VARIABLE: &str = "CREDENTIALS_DIRECTORY";
/// What a path begins with if the file is such a credential.
const CREDENTIALS_PREFIX: &str = "$CREDENTIALS_DIRECTORY/";

/// Bits of a file mode that let its group or others write, and read.
const WRITABLE_BY_OTHERS: u32 = 0o022;
const READABLE_BY_OTHERS: u32 = 0o044;

/// Reads the secret in a file, which `setting` names, without the line end. Errors do not quote it.
pub fn read_secret_file(setting: &str, path: &Path) -> Result<String, String> {
    let bytes = read_secret_bytes(setting, path, MAX_SECRET_FILE_BYTES)?;
    let shown = path.display();
    let text = String::from_utf8(bytes)
        .map_err(|_| format!("{setting} {shown} cannot be read: it is not UTF-8 text"))?;
    match text.trim() {
        "" => Err(format!("{setting} {shown} is empty")),
        secret => Ok(secret.to_owned()),
    }
}

/// Reads a file with a secret, such as a private key, of at most `limit` bytes. A file that its group or others can
/// write is refused: they could replace the secret by their own.
pub fn read_secret_bytes(setting: &str, path: &Path, limit: u64) -> Result<Vec<u8>, String> {
    let shown = path.display();
    let resolved = resolve_credential_path(setting, path)?;
    let unreadable = |error: std::io::Error| format!("{setting} {shown} cannot be read: {error}");
    let file = File::open(&resolved).map_err(unreadable)?;
    let mode = file_mode(&file.metadata().map_err(unreadable)?);
    if mode & WRITABLE_BY_OTHERS != 0 {
        return Err(format!(
            "{setting} {shown} can be written by its group or others (mode {:04o}), who could replace the secret; \
             run `chmod go-w` on it",
            mode & 0o7777
        ));
    }
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    match bytes.len() as u64 > limit {
        true => Err(format!("{setting} {shown} is larger than {limit} bytes")),
        false => Ok(bytes),
    }
}

/// A sentence about a secret file that its group or others can read; `None` if they cannot, or it is a credential of
/// systemd, whose folder only the service can enter. Such a file is used all the same: containers mount secrets so.
pub fn readable_secret_warning(setting: &str, path: &Path) -> Option<String> {
    // A unit can name the folder itself too, as `%d`.
    let is_below_credentials = std::env::var_os(CREDENTIALS_VARIABLE)
        .is_some_and(|folder| !folder.is_empty() && path.starts_with(folder));
    if is_below_credentials || path.starts_with(CREDENTIALS_PREFIX) {
        return None;
    }
    let mode = file_mode(&std::fs::metadata(path).ok()?);
    (mode & READABLE_BY_OTHERS != 0).then(|| {
        format!(
            "{setting} {} can be read by its group or others (mode {:04o}); if they must not, run `chmod go-r` on it",
            path.display(),
            mode & 0o7777
        )
    })
}

/// The path of a file that may be a credential of systemd.
pub fn resolve_credential_path(setting: &str, path: &Path) -> Result<PathBuf, String> {
    resolve_below_credentials(setting, path, std::env::var_os(CREDENTIALS_VARIABLE))
}

fn resolve_below_credentials(
    setting: &str,
    path: &Path,
    folder: Option<OsString>,
) -> Result<PathBuf, String> {
    let Some(name) = path
        .to_str()
        .and_then(|path| path.strip_prefix(CREDENTIALS_PREFIX))
    else {
        return Ok(path.to_owned());
    };
    match folder.filter(|folder| !folder.is_empty()) {
        Some(folder) => Ok(Path::new(&folder).join(name)),
        None => Err(format!(
            "{setting} {} names a credential of systemd, but {CREDENTIALS_VARIABLE} is not set: give the unit \
             LoadCredential={name}:/path/of/the/file, or set {setting} to the path itself",
            path.display()
        )),
    }
}

impl Config {
    /// Every file with a secret that the configuration names, with its key, and the default key file of stored
    /// secrets. A key file that does not exist yet is left out.
    pub fn secret_files(&self) -> Vec<(String, PathBuf)> {
        let keys = [
            ("server.tls_key", &self.server.tls_key),
            ("store.database_file", &self.store.database_file),
            ("embedding.key_file", &self.embedding.key_file),
            ("a2a.key_file", &self.a2a.key_file),
            ("mail.password_file", &self.mail.password_file),
        ];
        let mut files: Vec<(String, PathBuf)> = Vec::new();
        for (key, path) in keys {
            files.extend(path.clone().map(|path| (key.to_owned(), path)));
        }
        // With SQLite the first start makes it.
        let is_made = self.database_url().starts_with("sqlite:");
        let exists = |path: &PathBuf| {
            resolve_credential_path(SECRETS_KEY_SETTING, path).is_ok_and(|path| path.exists())
        };
        let secrets_key = self.secrets_key_file();
        let secrets_key = secrets_key.filter(|path| !is_made || exists(path));
        files.extend(secrets_key.map(|path| (SECRETS_KEY_SETTING.to_owned(), path)));
        let old_keys = self.a2a.old_key_files.iter();
        files.extend(old_keys.map(|path| ("a2a.old_key_files".to_owned(), path.clone())));
        for (name, provider) in &self.identity.providers {
            let path = provider.client_secret_file.clone();
            let key = || format!("identity.providers.{name}.client_secret_file");
            files.extend(path.map(|path| (key(), path)));
        }
        files
    }
}

#[cfg(unix)]
fn file_mode(metadata: &Metadata) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&metadata.permissions())
}

/// Other systems have no such modes.
#[cfg(not(unix))]
fn file_mode(_: &Metadata) -> u32 {
    0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_file_holds_one_secret() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        let read = || read_secret_file("a.key_file", &path);
        assert!(read().unwrap_err().contains("cannot be read"));
        let longest = "h".repeat(MAX_SECRET_FILE_BYTES as usize);
        for (text, secret) in [
            ("hush-7\r\n", "hush-7"),
            (" hush 7", "hush 7"),
            (&longest, &longest),
        ] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(read().unwrap(), secret);
        }
        for unfit in ["", "\n", &format!("{longest}h")] {
            std::fs::write(&path, unfit).unwrap();
            let error = read().unwrap_err();
            assert!(
                error.contains("a.key_file") && !error.contains("hh"),
                "{error}"
            );
        }
        std::fs::write(&path, b"hush\xff").unwrap();
        assert!(!read().unwrap_err().contains("hush"));
    }

    /// Containers mount secrets as 0444 or 0644, and nobody else may replace one.
    #[cfg(unix)]
    #[test]
    fn a_file_that_others_can_write_is_refused_and_one_they_can_read_is_named() {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        std::fs::write(&path, "hush-7").unwrap();
        for (mode, is_read, is_named) in [
            (0o400, true, false),
            (0o600, true, false),
            (0o640, true, true),
            (0o444, true, true),
            (0o644, true, true),
            (0o620, false, false),
            (0o602, false, false),
            (0o666, false, true),
        ] {
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            let read = read_secret_file("a.key_file", &path);
            assert_eq!(read.is_ok(), is_read, "{mode:o}: {read:?}");
            if let Err(error) = read {
                assert!(error.contains(&format!("mode {mode:04o}")), "{error}");
                assert!(
                    error.starts_with("a.key_file ") && !error.contains("hush"),
                    "{error}"
                );
            }
            let warning = readable_secret_warning("a.key_file", &path);
            assert_eq!(warning.is_some(), is_named, "{mode:o}: {warning:?}");
        }
    }

    #[test]
    fn a_path_may_begin_with_the_folder_of_credentials_and_with_no_other_variable() {
        let resolve = |path: &str, folder: Option<&str>| {
            resolve_below_credentials("a.key_file", Path::new(path), folder.map(OsString::from))
        };
        let folder = Some("/run/credentials/x");
        assert_eq!(
            resolve("$CREDENTIALS_DIRECTORY/key", folder).unwrap(),
            Path::new("/run/credentials/x/key")
        );
        for path in [
            "/etc/key",
            "key",
            "$HOME/key",
            "/x/$CREDENTIALS_DIRECTORY/key",
            "$CREDENTIALS_DIRECTORYkey",
        ] {
            assert_eq!(resolve(path, folder).unwrap(), Path::new(path));
        }
        for unset in [None, Some("")] {
            let error = resolve("$CREDENTIALS_DIRECTORY/key", unset).unwrap_err();
            assert!(
                error.contains("LoadCredential=key:") && error.contains("a.key_file"),
                "{error}"
            );
        }
    }
}
