//! The file of `[secrets] key_file`.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use a2a_registry_domain::identifiers::Entropy;
use data_encoding::BASE64;
use tempfile::NamedTempFile;

use crate::config::read_secret_file;
use crate::config::secret_file::SECRETS_KEY_SETTING;
use crate::error::StartError;
use crate::sealing::{KEY_BYTES, Sealer};

/// Reads a key file: 32 random bytes in Base64.
pub fn read_key_file(path: &Path) -> Result<Sealer, StartError> {
    let text = read_secret_file(SECRETS_KEY_SETTING, path).map_err(StartError)?;
    let key = BASE64.decode(text.as_bytes()).ok();
    key.and_then(|key| Sealer::new(&key)).ok_or_else(|| {
        StartError(format!(
            "{SECRETS_KEY_SETTING} {} does not contain a key: it must contain {KEY_BYTES} random bytes in Base64; \
             create it with `openssl rand -base64 {KEY_BYTES}`",
            path.display()
        ))
    })
}

/// Makes a key file that only its owner can read. An existing file is never replaced.
pub fn create_key_file(path: &Path, entropy: &dyn Entropy) -> Result<Sealer, StartError> {
    let mut key = [0; KEY_BYTES];
    entropy.fill(&mut key);
    write_new_file(path, &format!("{}\n", BASE64.encode(&key))).map_err(|error| {
        StartError(format!(
            "{SECRETS_KEY_SETTING} {} cannot be created: {error}",
            path.display()
        ))
    })?;
    read_key_file(path)
}

/// Writes the whole file, for its owner alone, or none: a process that is killed leaves no half of a key, with which no
/// later one starts.
fn write_new_file(path: &Path, text: &str) -> std::io::Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist_noclobber(path)
        .map_err(|failed| failed.error)?;
    // The name must outlive a loss of power, as what is sealed with the key does. Folders cannot be opened everywhere.
    match cfg!(unix) {
        true => File::open(folder)?.sync_all(),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use a2a_registry_domain::identifiers::SystemEntropy;

    use super::*;

    #[test]
    fn a_key_is_made_once_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secrets.key");
        let entropy = SystemEntropy::default();
        assert!(read_key_file(&path).is_err());
        let made = create_key_file(&path, &entropy).unwrap();
        let sealed = made.seal("a place", b"hush-7", &entropy).unwrap();
        let read = read_key_file(&path).unwrap();
        assert_eq!(read.open("a place", &sealed).unwrap(), b"hush-7");
        assert!(create_key_file(&path, &entropy).is_err(), "it is replaced");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = std::fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn what_is_no_key_is_refused_unseen() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secrets.key");
        for text in [
            "",
            "hush",
            &BASE64.encode(&[7; KEY_BYTES - 1]),
            &BASE64.encode(&[7; KEY_BYTES + 1]),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = read_key_file(&path).unwrap_err().to_string();
            assert!(error.contains(SECRETS_KEY_SETTING), "{error}");
            assert!(text.is_empty() || !error.contains(text), "{error}");
        }
        std::fs::write(&path, format!("{}\n", BASE64.encode(&[7; KEY_BYTES]))).unwrap();
        assert!(read_key_file(&path).is_ok());
    }
}
