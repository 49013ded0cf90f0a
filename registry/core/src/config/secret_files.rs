//! The files with secrets that the configuration names.

use std::path::Path;

use crate::config::Config;

impl Config {
    /// Every file with a secret that the configuration names, with its key.
    pub fn secret_files(&self) -> Vec<(String, &Path)> {
        let keys = [
            ("server.tls_key", &self.server.tls_key),
            ("store.database_file", &self.store.database_file),
            ("embedding.key_file", &self.embedding.key_file),
            ("a2a.key_file", &self.a2a.key_file),
        ];
        let mut files: Vec<(String, &Path)> = Vec::new();
        for (key, path) in keys {
            files.extend(path.as_deref().map(|path| (key.to_owned(), path)));
        }
        let old_keys = self.a2a.old_key_files.iter();
        files.extend(old_keys.map(|path| ("a2a.old_key_files".to_owned(), path.as_path())));
        for (name, provider) in &self.identity.providers {
            let path = provider.client_secret_file.as_deref();
            let key = || format!("identity.providers.{name}.client_secret_file");
            files.extend(path.map(|path| (key(), path)));
        }
        files
    }
}
