//! The configuration in force as TOML, with every key.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::ser::Error as _;
use toml::ser::Error;

use crate::config::Config;

impl Config {
    /// Every section with every key, as a file that can be read again. TOML has no null, so a key that is not set is
    /// printed as a comment.
    ///
    /// # Errors
    /// If a value cannot be serialised.
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
            section("server", server)?,
            section("store", store)?,
            section("crawler", crawler)?,
            section("governance", governance)?,
            section("identity", identity)?,
            section("search", search)?,
            section("federation", federation)?,
            section("embedding", embedding)?,
            section("mcp", mcp)?,
            section("ard", ard)?,
            section("a2a", a2a)?,
            section("limits", limits)?,
            section("log", log)?,
        ];
        Ok(sections.join("\n"))
    }
}

fn section(name: &str, keys: &impl Serialize) -> Result<String, Error> {
    let all = serde_json::to_value(keys).map_err(Error::custom)?;
    let all = all.as_object().into_iter().flatten();
    let head = format!("[{name}]\n");
    let mut text = head.clone();
    for (key, _) in all.filter(|(_, value)| value.is_null()) {
        text.push_str(&format!("# {key} = (not set)\n"));
    }
    // Under its name, so that a table within the section has both names.
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
}
