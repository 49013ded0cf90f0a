//! What a section lets the server reach, as the guard and the fetcher take it.

use std::fs;
use std::path::PathBuf;

use a2a_crawler::guard::{self, GuardConfig};

use crate::config::{AllowPorts, CrawlerConfig, EmbeddingConfig};

impl AllowPorts {
    /// As the guard takes them. Any word stands for all of them; validation leaves `"any"` alone.
    fn opened(&self) -> guard::AllowPorts {
        match self {
            Self::List(ports) => guard::AllowPorts::List(ports.clone()),
            Self::One(port) => guard::AllowPorts::List(vec![*port]),
            Self::Word(_) => guard::AllowPorts::Any,
        }
    }
}

/// Gives each section with lists of its own a guard that opens them, and them alone.
macro_rules! guarded {
    ($($section:ty),*) => {$(
        impl $section {
            /// What the guard of this section opens: its own lists and no other's.
            pub fn guard(&self) -> GuardConfig {
                GuardConfig {
                    allow_networks: self.allow_networks.clone(),
                    allow_names: self.allow_names.clone(),
                    allow_http: self.allow_http,
                    allow_ports: self.allow_ports.opened(),
                    deny_networks: self.deny_networks.clone(),
                }
            }
        }
    )*};
}

guarded!(CrawlerConfig, EmbeddingConfig);

/// The files of an `extra_ca`, read.
///
/// # Errors
/// The first file that cannot be read, by name.
pub fn read_roots(files: &[PathBuf]) -> Result<Vec<Vec<u8>>, String> {
    let read = files.iter().map(|path| {
        fs::read(path).map_err(|error| format!("extra_ca {}: {error}", path.display()))
    });
    read.collect()
}
