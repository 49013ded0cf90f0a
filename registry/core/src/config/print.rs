//! The effective configuration as TOML: every key with its meaning, unit, bounds and default in a comment above it.
//! The comments are the doc comments of the keys.

use serde::ser::Error as _;
use toml::ser::Error;
use toml::{Table, Value};

use crate::config::section::{ConfigKey, DescribedSection};
use crate::config::{
    A2aConfig, ArdConfig, Config, CrawlerConfig, DecidersConfig, EmbeddingConfig, FederationConfig,
    GovernanceConfig, IdentityConfig, IdentityProviderConfig, LimitsConfig, LogConfig, MailConfig,
    McpConfig, PeerConfig, RequiredClaimConfig, SearchConfig, SecretsConfig, ServerConfig,
    StoreConfig, TracingConfig, WebhooksConfig,
};

/// What is above the first section.
const INTRODUCTION: &str = "\
# Configuration of a2a-registry.
# Each key can also be set in the environment: A2A_REGISTRY__SECTION__KEY, such as A2A_REGISTRY__SERVER__LISTEN.
# Files with secrets and private keys, and server.tls_cert, can be below $CREDENTIALS_DIRECTORY/, where systemd puts
# credentials.
";

impl Config {
    /// Every section with every key, as a file that can be loaded again. TOML has no null, so an unset key is printed
    /// as a comment.
    pub fn to_toml(&self) -> Result<String, Error> {
        self.print_toml("")
    }

    /// The same with a `#` before every key, as a file to install: what is not uncommented keeps its default, also the
    /// default of a later version.
    pub fn to_commented_toml(&self) -> Result<String, Error> {
        self.print_toml("#")
    }

    fn print_toml(&self, mark: &'static str) -> Result<String, Error> {
        let mut printer = ConfigPrinter {
            text: INTRODUCTION.to_owned(),
            mark,
        };
        printer.write_table(&[], &Table::try_from(self)?)?;
        Ok(printer.text)
    }
}

struct ConfigPrinter {
    text: String,
    /// What stands before each key.
    mark: &'static str,
}

impl ConfigPrinter {
    /// Writes the keys of the table at this path, and then the tables in it.
    fn write_table(&mut self, path: &[&str], values: &Table) -> Result<(), Error> {
        let Some(table) = TableDescription::at_path(path)? else {
            return self.write_entries(path, values);
        };
        let is_table = |key: &ConfigKey| values.get(key.name).is_some_and(Value::is_table);
        for key in table.keys.iter().filter(|key| !is_table(key)) {
            let default = match table.defaults.get(key.name) {
                Some(default) => default.to_string(),
                None => "not set".to_owned(),
            };
            self.text.push('\n');
            self.write_comment(key);
            self.text.push_str(&format!("# Default: {default}\n"));
            self.write_key(key.name, values.get(key.name));
        }
        for key in &table.keys {
            if let Some(Value::Table(inner)) = values.get(key.name) {
                self.text.push('\n');
                self.write_comment(key);
                self.write_headed_table(&[path, &[key.name]].concat(), inner)?;
            }
        }
        Ok(())
    }

    /// Writes a table whose names the operator chooses, such as those of identity providers.
    fn write_entries(&mut self, path: &[&str], values: &Table) -> Result<(), Error> {
        for (name, value) in values.iter().filter(|(_, value)| !value.is_table()) {
            self.write_key(&quoted_key(name), Some(value));
        }
        for (name, value) in values {
            if let Value::Table(inner) = value {
                self.text.push('\n');
                self.write_headed_table(&[path, &[name.as_str()]].concat(), inner)?;
            }
        }
        Ok(())
    }

    fn write_headed_table(&mut self, path: &[&str], values: &Table) -> Result<(), Error> {
        let names: Vec<String> = path.iter().map(|name| quoted_key(name)).collect();
        // The head of a table whose name the operator chose would make an entry, with nothing in it.
        let mark = if path.len() > 2 { self.mark } else { "" };
        self.text
            .push_str(&format!("{mark}[{}]\n", names.join(".")));
        self.write_table(path, values)
    }

    fn write_comment(&mut self, key: &ConfigKey) {
        for line in key.doc {
            self.text.push_str(&format!("#{line}\n"));
        }
    }

    fn write_key(&mut self, name: &str, value: Option<&Value>) {
        let Some(value) = value else {
            self.text.push_str(&format!("# {name} = (not set)\n"));
            return;
        };
        // A text can have several lines.
        for line in format!("{name} = {value}").lines() {
            self.text.push_str(&format!("{}{line}\n", self.mark));
        }
    }
}

/// A name as a key of TOML.
fn quoted_key(name: &str) -> String {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    match !name.is_empty() && name.bytes().all(is_bare) {
        true => name.to_owned(),
        // A basic string on one line is a key too, and its escapes are those of JSON.
        false => serde_json::Value::from(name).to_string(),
    }
}

/// The keys of a table in the order of its struct, and their defaults.
struct TableDescription {
    keys: Vec<&'static ConfigKey>,
    defaults: Table,
}

impl TableDescription {
    /// The description of the table at this path; `None` if its names are chosen by the operator.
    fn at_path(path: &[&str]) -> Result<Option<Self>, Error> {
        let description = match path {
            [] => Self::of_section::<Config>(),
            ["server"] => Self::of_section::<ServerConfig>(),
            ["store"] => Self::of_section::<StoreConfig>(),
            ["secrets"] => Self::of_section::<SecretsConfig>(),
            ["crawler"] => Self::of_section::<CrawlerConfig>(),
            ["governance"] => Self::of_section::<GovernanceConfig>(),
            ["governance", "deciders"] => Self::of_section::<DecidersConfig>(),
            ["identity"] => Self::of_section::<IdentityConfig>(),
            ["identity", "providers", _] => Self::of_section::<IdentityProviderConfig>(),
            ["identity", "providers", _, "require"] => Self::of_section::<RequiredClaimConfig>(),
            ["search"] => Self::of_section::<SearchConfig>(),
            ["federation"] => Self::of_section::<FederationConfig>(),
            ["federation", "peers", _] => Self::of_section::<PeerConfig>(),
            ["webhooks"] => Self::of_section::<WebhooksConfig>(),
            ["mail"] => Self::of_section::<MailConfig>(),
            ["embedding"] => Self::of_section::<EmbeddingConfig>(),
            ["mcp"] => Self::of_section::<McpConfig>(),
            ["ard"] => Self::of_section::<ArdConfig>(),
            ["a2a"] => Self::of_section::<A2aConfig>(),
            ["limits"] => Self::of_section::<LimitsConfig>(),
            ["log"] => Self::of_section::<LogConfig>(),
            ["tracing"] => Self::of_section::<TracingConfig>(),
            _ => return Ok(None),
        };
        description.map(Some)
    }

    fn of_section<T: DescribedSection>() -> Result<Self, Error> {
        let defaults = T::default();
        // What is only kept in memory is missing in both forms; what is not set is null in JSON, and missing in TOML.
        let forms = serde_json::to_value(&defaults).map_err(Error::custom)?;
        let keys = T::KEYS.iter().filter(|key| forms.get(key.name).is_some());
        Ok(Self {
            keys: keys.collect(),
            defaults: Table::try_from(&defaults)?,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn every_key_is_shown_and_what_is_shown_can_be_read() {
        let mut config = Config::default();
        config.server.tls_key = Some("key.pem".into());
        config.log.filter = "info\n[server]\n".into();
        let text = config.to_toml().unwrap();
        let shown: toml::Table = toml::from_str(&text).unwrap();
        let every = serde_json::to_value(&config).unwrap();
        let mut unset = Vec::new();
        for (section, keys) in every.as_object().unwrap() {
            for (key, value) in keys.as_object().unwrap() {
                assert_eq!(shown[section].get(key).is_none(), value.is_null(), "{key}");
                if value.is_null() {
                    assert!(text.contains(&format!("\n# {key} = (not set)\n")), "{text}");
                    unset.push(key.as_str());
                }
            }
        }
        unset.sort_unstable();
        assert_eq!(
            unset,
            [
                "database_file",
                "dimensions",
                "key_file",
                "key_file",
                "key_file",
                "metrics_listen",
                "password_file",
                "recertify_after",
                "tls_cert"
            ]
        );
        let read: Config = toml::from_str(&text).unwrap();
        assert_eq!(read.to_toml().unwrap(), text);
    }

    /// Every described key with its path; one entry stands for the tables whose names the operator chooses.
    fn described_keys() -> Vec<(String, &'static ConfigKey)> {
        let mut keys = Vec::new();
        let mut paths: Vec<Vec<&str>> = vec![
            vec!["governance", "deciders"],
            vec!["identity", "providers", "corp"],
            vec!["identity", "providers", "corp", "require"],
            vec!["federation", "peers", "other"],
        ];
        paths.extend(Config::KEYS.iter().map(|section| vec![section.name]));
        for path in paths {
            let table = TableDescription::at_path(&path).unwrap().unwrap();
            let named =
                |key: &&'static ConfigKey| (format!("{}.{}", path.join("."), key.name), *key);
            keys.extend(table.keys.iter().map(named));
        }
        keys
    }

    #[test]
    fn every_key_is_explained_and_its_bounds_are_those_that_are_enforced() {
        let full = full();
        let refuses = |path: &str, value: serde_json::Value| {
            let mut given = full.clone();
            *given
                .pointer_mut(&format!("/{}", path.replace('.', "/")))
                .unwrap() = value;
            let Ok(config) = serde_json::from_value::<Config>(given) else {
                return true;
            };
            let errors = crate::config::validate::validate_config(&config);
            let refusal = format!("{path} must be between");
            errors.iter().any(|error| error.starts_with(&refusal))
        };
        let mut bounded = 0;
        for (path, key) in described_keys() {
            let doc = key.doc.concat();
            assert!(
                doc.trim_end().ends_with('.'),
                "{path} has no comment: {doc}"
            );
            let pointer = format!("/{}", path.replace('.', "/"));
            let value = full.pointer(&pointer).unwrap();
            let Some((_, bounds)) = doc.split_once("From ") else {
                assert!(!value.is_number(), "the comment of {path} has no bounds");
                continue;
            };
            let (least, most) = bounds.trim_end_matches('.').split_once(" to ").unwrap();
            let number = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
            for bound in [least, most] {
                assert!(!refuses(&path, number(bound)), "{path} = {bound}");
            }
            let beyond: Vec<serde_json::Value> = match (least.parse::<u64>(), most.parse::<u64>()) {
                (Ok(0), Ok(most)) => vec![(most + 1).into()],
                (Ok(least), Ok(most)) => vec![(least - 1).into(), (most + 1).into()],
                _ => vec![serde_json::json!(0.0), serde_json::json!(1e9)],
            };
            for value in beyond {
                assert!(refuses(&path, value.clone()), "{path} = {value}");
            }
            bounded += 1;
        }
        assert_eq!(bounded, 46, "keys with bounds");
    }

    #[test]
    fn a_commented_configuration_changes_nothing_until_it_is_uncommented() {
        let mut config = Config::default();
        config.limits.facets = 7;
        config.server.tls_cert = Some("cert.pem".into());
        let given: Config = serde_json::from_value(full()).unwrap();
        config.identity.providers = given.identity.providers;
        config.federation.peers = given.federation.peers;
        let text = config.to_commented_toml().unwrap();
        let read: Config = toml::from_str(&text).unwrap();
        assert_eq!(
            read.to_toml().unwrap(),
            Config::default().to_toml().unwrap()
        );
        let lines = text.lines().map(|line| match line.strip_prefix('#') {
            Some(key) if !key.starts_with(' ') => key,
            _ => line,
        });
        let uncommented = lines.collect::<Vec<_>>().join("\n") + "\n";
        assert_eq!(uncommented, config.to_toml().unwrap());
    }

    #[test]
    fn names_that_operators_choose_are_quoted_where_toml_needs_it() {
        let mut config: Config = serde_json::from_value(full()).unwrap();
        let corp = config.identity.providers.get_mut("corp").unwrap();
        for group in ["a b", "a.b", "a\"b", "ä", ""] {
            corp.roles.insert(group.to_owned(), Vec::new());
        }
        let text = config.to_toml().unwrap();
        let read: Config = toml::from_str(&text).unwrap();
        let groups = |config: &Config| -> Vec<String> {
            config.identity.providers["corp"]
                .roles
                .keys()
                .cloned()
                .collect()
        };
        assert_eq!(groups(&read), groups(&config), "{text}");
    }

    /// Keys with texts that are printed. A key that is neither here nor hidden fails the test below, so adding a key
    /// requires a choice.
    const SHOWN: [&str; 49] = [
        "allow_domains",
        "allow_names",
        "allow_networks",
        "allow_ports",
        "audiences",
        "authority",
        "claim",
        "client_id",
        "client_secret_file",
        "connect",
        "contact",
        "data_dir",
        "database_file",
        "deny_domains",
        "deny_networks",
        "description",
        "extra_ca",
        "filter",
        "from",
        "groups_claim",
        "host",
        "issuer",
        "key_file",
        "key_hosts",
        "kid",
        "leads",
        "model",
        "model_languages",
        "name",
        "name_claim",
        "old_key_files",
        "otlp_endpoint",
        "passage_prefix",
        "password_file",
        "provider",
        "provider_url",
        "public_url",
        "query_prefix",
        "scopes",
        "select_groups",
        "service_name",
        "title",
        "tls_cert",
        "tls_key",
        "token_hosts",
        "trusted_proxies",
        "url",
        "username",
        "values",
    ];

    /// A configuration with an entry in every table with user-defined names.
    fn full() -> serde_json::Value {
        let text = "[identity.providers.corp]\nissuer = \"https://login.example\"\nroles = { leads = [\"curator\"] }\n\
            require = { claim = \"groups\", values = [\"staff\"] }\n\
            [federation.peers.other]\nurl = \"https://other.example/ard\"\n";
        let config: Config = toml::from_str(text).unwrap();
        serde_json::to_value(&config).unwrap()
    }

    /// The JSON pointers of everything that may hold a text.
    fn texts(value: &serde_json::Value, pointer: &str, found: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(members) => {
                for (key, value) in members {
                    texts(value, &format!("{pointer}/{key}"), found);
                }
            }
            serde_json::Value::String(_)
            | serde_json::Value::Array(_)
            | serde_json::Value::Null => found.push(pointer.to_owned()),
            serde_json::Value::Bool(_) | serde_json::Value::Number(_) => {}
        }
    }

    #[test]
    fn every_secret_is_hidden_and_has_a_file() {
        const MARK: &str = "hush-7";
        let full = full();
        let mut pointers = Vec::new();
        texts(&full, "", &mut pointers);
        let mut hidden = Vec::new();
        for pointer in pointers {
            let mut given = full.clone();
            let value = given.pointer_mut(&pointer).unwrap();
            *value = match value.is_array() {
                true => serde_json::json!([MARK]),
                false => MARK.into(),
            };
            let key = pointer.rsplit('/').next().unwrap();
            let Ok(config) = serde_json::from_value::<Config>(given) else {
                continue;
            };
            let told = [
                config.to_toml().unwrap(),
                format!("{config:?}"),
                crate::config::validate::validate_config(&config).join("; "),
            ];
            if told.iter().any(|text| text.contains(MARK)) {
                assert!(SHOWN.contains(&key), "is {pointer} a secret?");
                continue;
            }
            let file = format!("{pointer}_file");
            assert!(full.pointer(&file).is_some(), "{file} is missing");
            let mut both = serde_json::to_value(&config).unwrap();
            *both.pointer_mut(&pointer).unwrap() = MARK.into();
            *both.pointer_mut(&file).unwrap() = "file".into();
            let both: Config = serde_json::from_value(both).unwrap();
            let mistakes = crate::config::validate::validate_config(&both).join("; ");
            assert!(
                mistakes.contains("are alternatives"),
                "{pointer}: {mistakes}"
            );
            hidden.push(pointer);
        }
        hidden.sort_unstable();
        assert_eq!(
            hidden,
            [
                "/embedding/key",
                "/identity/providers/corp/client_secret",
                "/store/database"
            ]
        );
    }
}
