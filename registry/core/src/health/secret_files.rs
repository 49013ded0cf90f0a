//! Files with secrets that a configuration names, and who else may read or write them.

use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};

use crate::config::Config;

/// A setting that names a file with a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretFile {
    pub setting: String,
    pub path: PathBuf,
}

/// What other users than the owner may do with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedAccess {
    None,
    Read,
    /// They may replace the secret.
    Write,
}

/// The files with secrets that a configuration names.
pub fn secret_files(config: &Config) -> Vec<SecretFile> {
    let single_files = [
        ("server.tls_key", config.server.tls_key.as_ref()),
        ("store.database_file", config.store.database_file.as_ref()),
        ("embedding.key_file", config.embedding.key_file.as_ref()),
        ("a2a.key_file", config.a2a.key_file.as_ref()),
    ];
    let single_files = single_files
        .into_iter()
        .filter_map(|(setting, path)| Some((setting.to_owned(), path?)));
    let old_keys = config.a2a.old_key_files.iter();
    let old_keys = old_keys.map(|path| ("a2a.old_key_files".to_owned(), path));
    let providers = config.identity.providers.iter();
    let client_secrets = providers.filter_map(|(name, provider)| {
        let setting = format!("identity.providers.{name}.client_secret_file");
        Some((setting, provider.client_secret_file.as_ref()?))
    });
    single_files
        .chain(old_keys)
        .chain(client_secrets)
        .map(|(setting, path)| SecretFile {
            setting,
            path: path.clone(),
        })
        .collect()
}

/// What group and others may do with a file, through symbolic links as they are followed when it is read.
pub fn shared_file_access(path: &Path) -> io::Result<SharedAccess> {
    Ok(access_of_others(&std::fs::metadata(path)?))
}

#[cfg(unix)]
fn access_of_others(metadata: &Metadata) -> SharedAccess {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = metadata.permissions().mode();
    match (mode & 0o022 != 0, mode & 0o044 != 0) {
        (true, _) => SharedAccess::Write,
        (false, true) => SharedAccess::Read,
        (false, false) => SharedAccess::None,
    }
}

#[cfg(not(unix))]
fn access_of_others(_: &Metadata) -> SharedAccess {
    SharedAccess::None
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs::{Permissions, set_permissions, write};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::config::IdentityProviderConfig;

    #[test]
    fn a_file_of_the_owner_alone_is_told_from_shared_ones() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        write(&path, "secret").unwrap();
        for (mode, expected) in [
            (0o600, SharedAccess::None),
            (0o400, SharedAccess::None),
            (0o640, SharedAccess::Read),
            (0o444, SharedAccess::Read),
            (0o620, SharedAccess::Write),
            (0o602, SharedAccess::Write),
            (0o666, SharedAccess::Write),
        ] {
            set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert_eq!(shared_file_access(&path).unwrap(), expected, "{mode:o}");
        }
        assert!(shared_file_access(&folder.path().join("missing")).is_err());
    }

    #[test]
    fn every_secret_file_of_a_configuration_is_listed() {
        let mut config = Config::default();
        assert_eq!(secret_files(&config), []);
        let path = |name: &str| Some(PathBuf::from(name));
        config.server.tls_key = path("tls");
        config.store.database_file = path("database");
        config.embedding.key_file = path("encoder");
        config.a2a.key_file = path("key");
        config.a2a.old_key_files = vec!["old".into()];
        let provider = IdentityProviderConfig {
            client_secret_file: path("client"),
            ..IdentityProviderConfig::default()
        };
        config.identity.providers.insert("corp".into(), provider);
        let listed: Vec<PathBuf> = secret_files(&config)
            .into_iter()
            .map(|file| file.path)
            .collect();
        let expected = ["tls", "database", "encoder", "key", "old", "client"];
        assert_eq!(listed, expected.map(PathBuf::from));
    }
}
