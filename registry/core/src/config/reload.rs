//! Reload of the configuration in a running process: the keys that it can replace, and the configuration in use.

use std::collections::BTreeSet;
use std::sync::Arc;

use a2a_registry_domain::admission_rules::AdmissionRules;
use arc_swap::ArcSwap;

use crate::config::{Config, LimitsConfig};

/// The configuration in use, and the admission rules in it. A reload replaces both at once; whoever has read one goes
/// on with it.
#[derive(Debug)]
pub struct ActiveConfig(ArcSwap<ConfigWithRules>);

#[derive(Debug)]
struct ConfigWithRules {
    config: Arc<Config>,
    rules: Arc<AdmissionRules>,
}

impl ConfigWithRules {
    fn new(config: Config) -> Self {
        Self {
            rules: Arc::new(config.admission_rules()),
            config: Arc::new(config),
        }
    }
}

impl ActiveConfig {
    pub fn new(config: Config) -> Self {
        Self(ArcSwap::from_pointee(ConfigWithRules::new(config)))
    }

    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.0.load().config)
    }

    pub fn rules(&self) -> Arc<AdmissionRules> {
        Arc::clone(&self.0.load().rules)
    }

    pub fn replace(&self, config: Config) {
        self.0.store(Arc::new(ConfigWithRules::new(config)));
    }
}

impl Config {
    pub fn admission_rules(&self) -> AdmissionRules {
        AdmissionRules {
            deny_domains: self.governance.deny_domains.clone(),
            allow_domains: self.governance.allow_domains.clone(),
            approve_all: self.governance.approve_all,
        }
    }

    /// This configuration with the values of `new` for the keys that a running process can replace: all of
    /// `[governance]`, the network lists of the fetchers, the rate of deliveries to hooks, the limits that are read
    /// whenever they apply, the log filter, and the files of the certificate.
    #[must_use]
    pub fn with_reloadable_keys(&self, new: &Self) -> Self {
        let mut merged = self.clone();
        merged.crawler.copy_network_lists(&new.crawler);
        merged.identity.copy_network_lists(&new.identity);
        merged.federation.copy_network_lists(&new.federation);
        merged.webhooks.copy_network_lists(&new.webhooks);
        merged.webhooks.per_target_per_second = new.webhooks.per_target_per_second;
        merged.governance = new.governance.clone();
        merged.limits = LimitsConfig {
            // These have been copied into what was built at the start.
            anonymous_writes_per_minute: self.limits.anonymous_writes_per_minute,
            connections: self.limits.connections,
            connections_per_address: self.limits.connections_per_address,
            request_seconds: self.limits.request_seconds,
            body_seconds: self.limits.body_seconds,
            write_seconds: self.limits.write_seconds,
            unread_megabytes_per_address: self.limits.unread_megabytes_per_address,
            json_bytes: self.limits.json_bytes,
            streams: self.limits.streams,
            card_cache_megabytes: self.limits.card_cache_megabytes,
            ..new.limits.clone()
        };
        merged.log.filter.clone_from(&new.log.filter);
        // Whether HTTPS is served was decided when the listener was opened.
        if self.server.tls_cert.is_some() && new.server.tls_cert.is_some() {
            merged.server.tls_cert.clone_from(&new.server.tls_cert);
            merged.server.tls_key.clone_from(&new.server.tls_key);
        }
        merged
    }

    /// The keys in which `new` differs from this configuration, other than those that a running process can replace.
    /// The contents of files are not compared, except for the URL of the database.
    pub fn keys_needing_restart(&self, new: &Self) -> BTreeSet<String> {
        // The forms of a configuration have all sections and keys.
        let old_form = serde_json::to_value(self.with_reloadable_keys(new)).unwrap_or_default();
        let new_form = serde_json::to_value(new).unwrap_or_default();
        let mut keys = BTreeSet::new();
        for (section, values) in old_form.as_object().into_iter().flatten() {
            let new_values = &new_form[section.as_str()];
            let values = values.as_object().into_iter().flatten();
            let changed = values.filter(|(key, value)| new_values[key.as_str()] != **value);
            keys.extend(changed.map(|(key, _)| format!("{section}.{key}")));
        }
        keys.extend(self.changed_secrets(new).map(str::to_owned));
        keys
    }

    /// The keys with secrets in which `new` differs: their printed forms are the same.
    fn changed_secrets(&self, new: &Self) -> impl Iterator<Item = &'static str> {
        let providers = &new.identity.providers;
        let has_new_client_secret = self.identity.providers.iter().any(|(name, provider)| {
            let secret = providers.get(name).map(|other| &other.client_secret);
            secret.is_some_and(|secret| *secret != provider.client_secret)
        });
        [
            ("store.database", self.store.database != new.store.database),
            (
                "store.database_file",
                self.store.database_read != new.store.database_read,
            ),
            ("embedding.key", self.embedding.key != new.embedding.key),
            ("identity.providers", has_new_client_secret),
        ]
        .into_iter()
        .filter_map(|(key, is_changed)| is_changed.then_some(key))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn parse(text: &str) -> Config {
        toml::from_str(text).unwrap()
    }

    fn restart_keys(old: &str, new: &str) -> Vec<String> {
        let keys = parse(old).keys_needing_restart(&parse(new));
        keys.into_iter().collect()
    }

    #[test]
    fn what_is_replaced_and_what_needs_a_restart_are_all_keys_that_differ() {
        let old = parse("[server]\ntls_cert = \"a\"\ntls_key = \"a\"\n");
        let new = parse(
            "[server]\ntls_cert = \"b\"\ntls_key = \"b\"\ndrain_seconds = 9\n\
             [governance]\ndeny_domains = [\"evil.example\"]\nfour_eyes = true\n\
             [crawler]\ndeny_networks = [\"192.0.2.0/24\"]\nkey_hosts = [\"keys.example\"]\n\
             [identity]\nallow_http = true\n[embedding]\nallow_http = true\n\
             [limits]\nfacets = 3\nstreams = 7\n[log]\nfilter = \"warn\"\nformat = \"json\"\n",
        );
        let merged = old.with_reloadable_keys(&new);
        assert_eq!(merged.server.tls_key, Some("b".into()));
        assert!(merged.governance.four_eyes && merged.admission_rules().denies("evil.example"));
        assert_eq!((merged.limits.facets, merged.limits.streams), (3, 100));
        assert_eq!(merged.log.filter, "warn");
        assert_eq!(merged.crawler.deny_networks.len(), 1);
        assert!(merged.identity.allow_http && !merged.embedding.allow_http);
        let keys: Vec<String> = old.keys_needing_restart(&new).into_iter().collect();
        let expected = [
            "crawler.key_hosts",
            "embedding.allow_http",
            "limits.streams",
            "log.format",
            "server.drain_seconds",
        ];
        assert_eq!(keys, expected);
        assert!(merged.keys_needing_restart(&merged).is_empty());
    }

    #[test]
    fn https_is_neither_switched_on_nor_off_by_a_reload() {
        let tls = "[server]\ntls_cert = \"a\"\ntls_key = \"a\"\n";
        for (old, new) in [("", tls), (tls, "")] {
            let keys = restart_keys(old, new);
            assert_eq!(keys, ["server.tls_cert", "server.tls_key"]);
        }
    }

    #[test]
    fn a_changed_secret_is_named_and_not_shown() {
        let with = |secret: &str| {
            format!(
                "[store]\ndatabase = \"postgres://ann:{secret}@db.example/x\"\n[embedding]\nkey = \"{secret}\"\n\
                 [identity.providers.corp]\nissuer = \"https://login.example\"\nclient_secret = \"{secret}\"\n"
            )
        };
        let keys = restart_keys(&with("hush-7"), &with("hush-8"));
        assert_eq!(
            keys,
            ["embedding.key", "identity.providers", "store.database"]
        );
        assert!(restart_keys(&with("hush-7"), &with("hush-7")).is_empty());
    }

    /// A limit is either read whenever it applies, or named by a reload.
    #[test]
    fn every_limit_is_reloaded_or_needs_a_restart() {
        let old = Config::default();
        let form = serde_json::to_value(&old).unwrap();
        for (key, value) in form["limits"].as_object().unwrap() {
            let mut changed = form.clone();
            changed["limits"][key] = (value.as_u64().unwrap() + 1).into();
            let new: Config = serde_json::from_value(changed.clone()).unwrap();
            let is_named = !old.keys_needing_restart(&new).is_empty();
            let merged = serde_json::to_value(old.with_reloadable_keys(&new)).unwrap();
            let is_replaced = merged["limits"][key] == changed["limits"][key];
            assert_ne!(is_named, is_replaced, "{key}");
        }
    }
}
