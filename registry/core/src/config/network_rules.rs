//! Network rules of a configuration section, in the form used by the guard and the fetcher.

use std::fs;
use std::path::PathBuf;

use a2a_crawler::guard::{self, ConnectOverride, GuardConfig};

use crate::config::{
    AllowPorts, CrawlerConfig, EmbeddingConfig, FederationConfig, IdentityConfig, WebhooksConfig,
};

impl AllowPorts {
    /// Any word means "all ports"; validation accepts only `"any"`.
    fn to_guard_ports(&self) -> guard::AllowedPorts {
        match self {
            Self::List(ports) => guard::AllowedPorts::List(ports.clone()),
            Self::One(port) => guard::AllowedPorts::List(vec![*port]),
            Self::Word(_) => guard::AllowedPorts::Any,
        }
    }
}

/// The overrides of connections in a list; validation accepts only lists without errors.
fn parse_connect_overrides(texts: &[String]) -> Vec<ConnectOverride> {
    texts.iter().filter_map(|text| text.parse().ok()).collect()
}

/// Gives each section with network lists a guard with exactly these lists, and with overrides of connections where the
/// section has a key for them.
macro_rules! guarded {
    (@overrides) => { Vec::new() };
    (@overrides $list:expr) => { parse_connect_overrides($list) };
    ($($section:ty $(=> $connect:ident)?),*) => {$(
        impl $section {
            pub fn guard_config(&self) -> GuardConfig {
                GuardConfig {
                    allow_networks: self.allow_networks.clone(),
                    allow_names: self.allow_names.clone(),
                    allow_http: self.allow_http,
                    allow_ports: self.allow_ports.to_guard_ports(),
                    deny_networks: self.deny_networks.clone(),
                    connect: guarded!(@overrides $(&self.$connect)?),
                }
            }

            /// Takes over the network lists of `new`.
            pub fn copy_network_lists(&mut self, new: &Self) {
                self.allow_networks.clone_from(&new.allow_networks);
                self.allow_names.clone_from(&new.allow_names);
                self.allow_http = new.allow_http;
                self.allow_ports.clone_from(&new.allow_ports);
                self.deny_networks.clone_from(&new.deny_networks);
                $(self.$connect.clone_from(&new.$connect);)?
            }
        }
    )*};
}

guarded!(
    CrawlerConfig => connect,
    EmbeddingConfig,
    FederationConfig,
    IdentityConfig,
    WebhooksConfig
);

/// Reads the contents of the files in `extra_ca`.
pub fn read_root_certificates(files: &[PathBuf]) -> Result<Vec<Vec<u8>>, String> {
    let read = files.iter().map(|path| {
        fs::read(path).map_err(|error| format!("extra_ca {}: {error}", path.display()))
    });
    read.collect()
}
