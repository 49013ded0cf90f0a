//! `[federation]`: other registries that ARD searches query, and the network rules for these requests.

use std::collections::BTreeMap;
use std::path::PathBuf;

use a2a_crawler::guard::SsrfGuard;
use a2a_registry_api::ard::registry_base_url;
use ipnet::IpNet;
use url::Url;

use crate::config::AllowPorts;
use crate::config::section::section;
use crate::config::validate::allow_ports_error;

/// Maximum number of peers; every federated search queries all of them.
const MAX_PEERS: usize = 16;
/// Maximum length of a peer's name, in bytes.
const MAX_PEER_NAME_BYTES: usize = 60;
/// The permitted deadlines, in milliseconds.
const DEADLINE_RANGE_MS: std::ops::RangeInclusive<u64> = 50..=10_000;

section! {
    /// `[federation]`: peers that support ARD, and how long a search waits for them.
    ///
    /// Requests to peers pass a guard with the lists of this section. Lists of other sections do not apply to them,
    /// and these lists do not apply to other requests.
    pub struct FederationConfig {
        /// Milliseconds that a search waits for all peers together. From 50 to 10000.
        pub deadline_ms: u64 = 1_500,
        /// Networks that may be reached although they are private or loopback, such as `10.0.0.0/8`.
        pub allow_networks: Vec<IpNet>,
        /// Host names that may be reached although they are local, reserved or without a known top-level domain, such
        /// as `agents.corp.internal`.
        pub allow_names: Vec<String>,
        /// Networks that are never reached, even if another setting allows them.
        pub deny_networks: Vec<IpNet>,
        /// Whether plain `http:` is allowed.
        pub allow_http: bool,
        /// Ports that are allowed: one such as `443`, a list such as `[443, 8443]`, or `"any"`.
        pub allow_ports: AllowPorts,
        /// PEM files with additional root certificates, each read at start.
        pub extra_ca: Vec<PathBuf>,
        /// Each peer, in a table `[federation.peers.NAME]`. At most 16.
        pub peers: BTreeMap<String, PeerConfig>,
    }
}

section! {
    /// `[federation.peers.NAME]`: a registry that is queried too.
    #[derive(PartialEq, Eq)]
    pub struct PeerConfig {
        /// The base URL of its API, as in the entry of type `application/ai-registry+json` of its catalog.
        pub url: String,
        /// Whether it receives the queries of signed-in callers. It never receives a credential.
        pub share_private: bool,
    }
}

impl PeerConfig {
    /// The base URL without a trailing slash, and without the name of an operation that an operator may have appended.
    pub fn base_url(&self) -> String {
        registry_base_url(&self.url).to_owned()
    }

    /// The URL for searches.
    pub fn search_url(&self) -> Option<Url> {
        Url::parse(&format!("{}/search", self.base_url())).ok()
    }
}

impl FederationConfig {
    pub fn validation_errors(&self) -> Vec<String> {
        let mut errors: Vec<String> = allow_ports_error("federation", &self.allow_ports)
            .into_iter()
            .collect();
        if !DEADLINE_RANGE_MS.contains(&self.deadline_ms) {
            let (least, most) = (DEADLINE_RANGE_MS.start(), DEADLINE_RANGE_MS.end());
            errors.push(format!(
                "federation.deadline_ms must be between {least} and {most}"
            ));
        }
        if self.peers.len() > MAX_PEERS {
            errors.push(format!("federation.peers must be at most {MAX_PEERS}"));
        }
        let guard = SsrfGuard::new(self.guard_config());
        for (name, peer) in &self.peers {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
            if name.is_empty() || name.len() > MAX_PEER_NAME_BYTES || !name.bytes().all(plain) {
                errors.push(format!(
                    "federation.peers.{name}: a name must have only letters, digits and `.`, `_`, `-`, at most \
                     {MAX_PEER_NAME_BYTES} in all"
                ));
            }
            if let Err(refusal) = guard.check_url(&peer.url) {
                errors.push(format!(
                    "federation.peers.{name}.url is rejected by the lists of [federation] (allow_http, allow_ports, \
                     allow_networks, allow_names): {refusal}"
                ));
            }
        }
        errors
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn peer(url: &str) -> PeerConfig {
        PeerConfig {
            url: url.to_owned(),
            share_private: false,
        }
    }

    #[test]
    fn a_base_is_found_in_what_people_write() {
        for url in [
            "https://r.agents-test.com/ard",
            "https://r.agents-test.com/ard/",
            "https://r.agents-test.com/ard/search",
            "https://r.agents-test.com/ard/agents/",
        ] {
            let peer = peer(url);
            assert_eq!(peer.base_url(), "https://r.agents-test.com/ard");
            assert_eq!(peer.search_url().unwrap().path(), "/ard/search");
        }
    }

    #[test]
    fn mistakes_are_told() {
        let section = |name: &str, url: &str, deadline_ms| FederationConfig {
            peers: BTreeMap::from([(name.to_owned(), peer(url))]),
            deadline_ms,
            ..FederationConfig::default()
        };
        assert_eq!(
            section("one", "https://r.agents-test.com/ard", 50).validation_errors(),
            [""; 0]
        );
        assert_eq!(
            section("one", "http://r.agents-test.com/ard", 50)
                .validation_errors()
                .len(),
            1
        );
        assert_eq!(
            section("one", "https://127.0.0.1/ard", 50)
                .validation_errors()
                .len(),
            1
        );
        assert_eq!(
            section("a b", "https://r.agents-test.com/ard", 49)
                .validation_errors()
                .len(),
            2
        );
        let peers =
            (0..=MAX_PEERS).map(|number| (format!("p{number}"), peer("https://r.agents-test.com")));
        let many = FederationConfig {
            peers: peers.collect(),
            ..FederationConfig::default()
        };
        assert_eq!(many.validation_errors().len(), 1);
    }
}
