//! The files with secrets that the configuration names.

use std::path::PathBuf;

use crate::config::Config;

impl Config {
    /// The files with keys, passwords and other secrets, in the order of the sections.
    pub fn secret_files(&self) -> Vec<PathBuf> {
        let providers = self.identity.providers.values();
        let single = [&self.server.tls_key, &self.store.database_file];
        let single = single.into_iter().flatten();
        let clients = providers.filter_map(|provider| provider.client_secret_file.as_ref());
        let keys = self.embedding.key_file.iter().chain(&self.a2a.key_file);
        single
            .chain(clients)
            .chain(keys)
            .chain(&self.a2a.old_key_files)
            .cloned()
            .collect()
    }
}
