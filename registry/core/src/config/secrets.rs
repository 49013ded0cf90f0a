//! `[secrets]`: the key of secrets that the registry keeps for others.

use std::path::PathBuf;

use crate::config::Config;
use crate::config::section::section;

section! {
    /// `[secrets]`: the key with which credentials of sources are encrypted.
    pub struct SecretsConfig {
        /// A file with 32 random bytes in Base64, the same for all processes of a registry. If absent, SQLite uses
        /// `secrets.key` in the data folder, and PostgreSQL has no key: sources cannot have credentials, and hooks
        /// cannot be created. With SQLite, the first start creates a missing file.
        pub key_file: Option<PathBuf>,
    }
}

/// Name of the default key file in the data folder.
const DEFAULT_KEY_FILE: &str = "secrets.key";

impl Config {
    /// The file with the key of secrets, whether or not it exists; `None` if there is none.
    pub fn secrets_key_file(&self) -> Option<PathBuf> {
        let configured = self.secrets.key_file.clone();
        let is_sqlite = || self.database_url().starts_with("sqlite:");
        configured.or_else(|| is_sqlite().then(|| self.store.data_dir.join(DEFAULT_KEY_FILE)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sqlite_has_a_key_file_without_configuration() {
        let mut config = Config::default();
        config.store.data_dir = "/data".into();
        assert_eq!(config.secrets_key_file(), Some("/data/secrets.key".into()));
        config.store.database = "postgres://db.example/a".into();
        assert_eq!(config.secrets_key_file(), None);
        config.secrets.key_file = Some("/etc/key".into());
        assert_eq!(config.secrets_key_file(), Some("/etc/key".into()));
    }
}
