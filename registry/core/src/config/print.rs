//! The effective configuration as TOML, with every key.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::ser::Error as _;
use toml::ser::Error;

use crate::config::Config;

impl Config {
    /// Every section with every key, as a file that can be loaded again. TOML has no null, so an unset key is printed
    /// as a comment.
    pub fn to_toml(&self) -> Result<String, Error> {
        let Self {
            server,
            store,
            crawler,
            governance,
            identity,
            search,
            federation,
            embedding,
            mcp,
            ard,
            a2a,
            limits,
            log,
        } = self;
        let sections = [
            section_to_toml("server", server)?,
            section_to_toml("store", store)?,
            section_to_toml("crawler", crawler)?,
            section_to_toml("governance", governance)?,
            section_to_toml("identity", identity)?,
            section_to_toml("search", search)?,
            section_to_toml("federation", federation)?,
            section_to_toml("embedding", embedding)?,
            section_to_toml("mcp", mcp)?,
            section_to_toml("ard", ard)?,
            section_to_toml("a2a", a2a)?,
            section_to_toml("limits", limits)?,
            section_to_toml("log", log)?,
        ];
        Ok(sections.join("\n"))
    }
}

fn section_to_toml(name: &str, keys: &impl Serialize) -> Result<String, Error> {
    let all = serde_json::to_value(keys).map_err(Error::custom)?;
    let all = all.as_object().into_iter().flatten();
    let head = format!("[{name}]\n");
    let mut text = head.clone();
    for (key, _) in all.filter(|(_, value)| value.is_null()) {
        text.push_str(&format!("# {key} = (not set)\n"));
    }
    // The keys are printed under the section's name, so that a table within the section gets both names.
    let keys = toml::to_string(&BTreeMap::from([(name, keys)]))?;
    Ok(text + keys.strip_prefix(&head).unwrap_or(&keys))
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
                "metrics_listen",
                "recertify_after",
                "tls_cert"
            ]
        );
        let read: Config = toml::from_str(&text).unwrap();
        assert_eq!(read.to_toml().unwrap(), text);
    }

    /// Keys with texts that are printed. A key that is neither here nor hidden fails the test below, so adding a key
    /// requires a choice.
    const SHOWN: [&str; 37] = [
        "allow_domains",
        "allow_names",
        "allow_ports",
        "audiences",
        "claim",
        "client_id",
        "client_secret_file",
        "contact",
        "data_dir",
        "database_file",
        "deny_domains",
        "description",
        "extra_ca",
        "filter",
        "groups_claim",
        "issuer",
        "key_file",
        "key_hosts",
        "kid",
        "leads",
        "model",
        "name",
        "name_claim",
        "old_key_files",
        "provider",
        "provider_url",
        "public_url",
        "scopes",
        "select_groups",
        "title",
        "tls_cert",
        "tls_key",
        "trusted_proxies",
        "url",
        "values",
        "allow_networks",
        "deny_networks",
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
