//! Loads the configuration from file, environment and flags.

use std::net::SocketAddr;
use std::path::PathBuf;

use figment::error::{Actual, Kind};
use figment::providers::{Env, Format, Serialized, Toml};
use figment::value::{Dict, Value};
use figment::{Figment, Profile};

use crate::config::Config;
use crate::config::secret_file::read_secret_file;
use crate::config::validate::validate_config;

/// The prefix of environment variables that override the file, with `__` between section and key.
const ENV_PREFIX: &str = "A2A_REGISTRY__";

/// All errors in a configuration, not just the first.
#[derive(Debug, Clone, thiserror::Error)]
#[error("configuration: {}", .0.join("; "))]
pub struct ConfigError(pub Vec<String>);

/// Settings from command-line flags; `None` keeps the value from file and environment.
#[derive(Debug, Clone, Default)]
pub struct ConfigOverrides {
    pub listen: Option<SocketAddr>,
    pub data_dir: Option<PathBuf>,
    pub database: Option<String>,
    pub public_url: Option<String>,
    pub approve_all: bool,
}

/// Reads file, environment and flags, with later ones taking precedence, and validates the result.
pub fn load_config(
    file: Option<&PathBuf>,
    overrides: &ConfigOverrides,
) -> Result<Config, ConfigError> {
    let mut figment = Figment::from(Serialized::defaults(Config::default()));
    if let Some(file) = file {
        if !file.is_file() {
            return Err(ConfigError(vec![format!(
                "the file {} does not exist",
                file.display()
            )]));
        }
        figment = figment.merge(Toml::file_exact(file));
    }
    figment = figment.merge(Env::prefixed(ENV_PREFIX).split("__"));
    let (mut config, mut errors) = extract_config(&figment)?;
    apply_overrides(&mut config, overrides);
    if let Some(file) = &config.store.database_file {
        match read_secret_file("store.database_file", file) {
            Ok(url) => config.store.database_read = url.into(),
            Err(error) => errors.push(error),
        }
    }
    errors.extend(validate_config(&config));
    if errors.is_empty() {
        Ok(config)
    } else {
        Err(ConfigError(errors))
    }
}

/// Merges the configuration of file, environment and flags. The parser stops at its first error, but all errors must
/// be listed; so each key that cannot be parsed is recorded, removed, and replaced by its default.
fn extract_config(figment: &Figment) -> Result<(Config, Vec<String>), ConfigError> {
    let to_config_error = |errors: figment::Error| {
        ConfigError(
            errors
                .into_iter()
                .map(|error| redacted_syntax_error(&error))
                .collect(),
        )
    };
    let mut values: Dict = figment.extract().map_err(to_config_error)?;
    let mut errors = Vec::new();
    loop {
        let mut error = match Value::from(values.clone()).deserialize() {
            Ok(config) => return Ok((config, errors)),
            Err(error) => error,
        };
        // The source (file or environment) is recorded for the key as a whole, not for parts of its value.
        let key: Vec<_> = error.path.iter().take(2).map(String::as_str).collect();
        error.metadata = figment.find_metadata(&key.join(".")).cloned();
        error.profile = Some(Profile::Default);
        redact_type_error(&mut error.kind);
        errors.push(error.to_string());
        // Each round removes a key, so the loop ends; an error without a key cannot be removed.
        if !remove_config_key(&mut values, &error.path) {
            return Err(ConfigError(errors));
        }
    }
}

/// A syntax error in a file, without the lines of the file that the parser quotes: they may contain a secret.
fn redacted_syntax_error(error: &figment::Error) -> String {
    let text = error.to_string();
    let lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.contains('|'));
    lines.collect::<Vec<_>>().join(": ")
}

/// Removes the text that was given instead of a table from an error. It may be a secret that belongs one level below.
fn redact_type_error(kind: &mut Kind) {
    if let Kind::InvalidType(given, expected) = kind
        && (expected.starts_with("struct ") || expected.contains("map"))
    {
        *given = Actual::Other("a value".to_owned());
        *expected = "a table".to_owned();
    }
}

/// Removes the whole key at that path from its section, even if the error is deep inside its value.
fn remove_config_key(values: &mut Dict, path: &[String]) -> bool {
    match path {
        [section, key, ..] => match values.get_mut(section) {
            Some(Value::Dict(_, keys)) => keys.remove(key).is_some(),
            _ => values.remove(section).is_some(),
        },
        [section] => values.remove(section).is_some(),
        [] => false,
    }
}

fn apply_overrides(config: &mut Config, overrides: &ConfigOverrides) {
    if let Some(listen) = overrides.listen {
        config.server.listen = listen;
    }
    if let Some(data_dir) = &overrides.data_dir {
        config.store.data_dir.clone_from(data_dir);
    }
    if let Some(database) = &overrides.database {
        config.store.database = database.as_str().into();
        config.store.database_file = None;
    }
    if let Some(public_url) = &overrides.public_url {
        config.server.public_url.clone_from(public_url);
    }
    config.governance.approve_all |= overrides.approve_all;
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::Write;

    use super::*;

    fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("registry.toml");
        std::fs::File::create(&path)
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
        (folder, path)
    }

    #[test]
    fn a_term_is_longer_than_its_notice_and_has_an_end() {
        for (days, is_allowed) in [(14, false), (15, true), (3650, true), (3651, false)] {
            let (_folder, path) = file(&format!("[governance]\nrecertify_after = {days}\n"));
            let read = load_config(Some(&path), &ConfigOverrides::default());
            assert_eq!(read.is_ok(), is_allowed, "{days}");
        }
    }

    #[test]
    fn a_laptop_configuration_is_read() {
        let (_folder, path) = file(
            "[crawler]\nallow_networks = [\"127.0.0.0/8\"]\nallow_http = true\nallow_ports = \"any\"\n",
        );
        let config = load_config(Some(&path), &ConfigOverrides::default()).unwrap();
        assert!(config.crawler.allow_http);
        assert_eq!(config.crawler.allow_networks.len(), 1);
    }

    #[test]
    fn an_unknown_key_is_an_error_that_names_it() {
        let (_folder, path) = file("[server]\nlissen = \"127.0.0.1:1\"\n");
        let error = load_config(Some(&path), &ConfigOverrides::default()).unwrap_err();
        assert!(error.to_string().contains("lissen"), "{error}");
    }

    #[test]
    fn every_mistake_is_listed() {
        let (_folder, path) = file(
            "[crawler]\nallow_ports = \"some\"\nconcurrency = 0\n[server]\npublic_url = \"ftp://x\"\n",
        );
        let error = load_config(Some(&path), &ConfigOverrides::default()).unwrap_err();
        assert_eq!(error.0.len(), 3, "{error}");
    }

    #[test]
    fn what_cannot_be_read_hides_no_other_mistake() {
        let (_folder, path) = file(
            "[server]\nlissen = \"x\"\ndrain_seconds = \"soon\"\n[limit]\nfacets = 3\n\
             [crawler]\nallow_networks = [\"10.0.0.0/8\", \"none\"]\nconcurrency = 0\n",
        );
        let error = load_config(Some(&path), &ConfigOverrides::default()).unwrap_err();
        assert_eq!(error.0.len(), 5, "{error}");
        for mistake in [
            "lissen",
            "drain_seconds",
            "limit",
            "allow_networks",
            "concurrency",
        ] {
            assert!(error.to_string().contains(mistake), "{mistake}: {error}");
        }
        assert!(error.0[0].contains("registry.toml"), "{error}");
    }

    #[test]
    fn a_log_filter_that_would_say_nothing_is_refused() {
        let read = |filter: &str| {
            let (_folder, path) = file(&format!("[log]\nfilter = {filter:?}\n"));
            load_config(Some(&path), &ConfigOverrides::default()).map_err(|error| error.0)
        };
        for good in [
            "",
            "info",
            "WARN",
            "off,a2a_registry=debug",
            "info,actix_server=warn,a2a_registry[request{method=POST}]=debug",
        ] {
            assert!(read(good).is_ok(), "{good}");
        }
        for bad in [
            "inof",
            "info,verbose",
            "a2a_registry=loud",
            "info,a=b=c",
            "a2a_registry",
        ] {
            let mistakes = read(bad).unwrap_err();
            assert!(
                mistakes.len() == 1 && mistakes[0].contains("log.filter"),
                "{bad}: {mistakes:?}"
            );
        }
    }

    #[test]
    fn limits_have_limits() {
        let (_folder, path) = file(
            "[limits]\nconnections = 0\nconnections_per_address = 0\nrequest_seconds = 0\n\
             body_seconds = 4000\nwrite_seconds = 0\n",
        );
        let error = load_config(Some(&path), &ConfigOverrides::default()).unwrap_err();
        assert_eq!(error.0.len(), 6, "{error}");
    }

    #[test]
    fn an_encoder_of_ones_own_is_read() {
        let (_folder, path) = file(
            "[embedding]\nurl = \"http://127.0.0.1:11434/v1/embeddings\"\nmodel = \"all-minilm\"\n\
             dimensions = 256\nkey = \"hush-7\"\nallow_networks = [\"127.0.0.0/8\"]\nallow_http = true\n\
             allow_ports = [11434]\n[search]\nmodel = \"off\"\nembed_timeout = 80\n",
        );
        let config = load_config(Some(&path), &ConfigOverrides::default()).unwrap();
        assert_eq!(config.embedding.dimensions, Some(256));
        assert_eq!(config.embedding.key.reveal(), Some("hush-7"));
        assert_eq!(config.search.embed_timeout, 80);
        // The lists of one section do not apply to the other.
        let url = config.embedding.url.as_str();
        let admits = |guard| {
            a2a_crawler::guard::SsrfGuard::new(guard)
                .check_url(url)
                .is_ok()
        };
        assert!(admits(config.embedding.guard_config()) && !admits(config.crawler.guard_config()));

        // A printed configuration can be loaded again, and then the key comes from its original source.
        let printed = toml::to_string(&config).unwrap();
        assert!(!printed.contains("hush"), "{printed}");
        let (_folder, path) = file(&printed);
        let error = load_config(Some(&path), &ConfigOverrides::default()).unwrap_err();
        assert!(error.0.len() == 1 && error.to_string().contains("embedding.key"));
        let (_folder, path) = file(&printed.replace("(hidden)", "hush-8"));
        assert!(load_config(Some(&path), &ConfigOverrides::default()).is_ok());
    }

    #[test]
    fn every_mistake_about_encoders_is_listed() {
        let (_folder, path) = file(
            "[embedding]\nurl = \"ftp://x\"\nmodle = \"x\"\nkey = 7654321\ntimeout_seconds = 0\n\
             [search]\nmodel = \"../x\"\nmodel_languages = [\"English\"]\nembed_timeout = 0\n",
        );
        let error = load_config(Some(&path), &ConfigOverrides::default()).unwrap_err();
        for mistake in [
            "embedding.url",
            "embedding.model",
            "embedding.timeout_seconds",
            "modle",
            "embedding.key",
            "search.model must",
            "search.model_languages",
            "search.embed_timeout",
        ] {
            assert!(error.to_string().contains(mistake), "{mistake}: {error}");
        }
        assert!(!error.to_string().contains("7654321"), "{error}");
    }

    #[test]
    fn flags_win() {
        let (_folder, path) = file("[store]\ndata_dir = \"/from/file\"\n");
        let overrides = ConfigOverrides {
            data_dir: Some("/from/flag".into()),
            ..ConfigOverrides::default()
        };
        let config = load_config(Some(&path), &overrides).unwrap();
        assert_eq!(config.store.data_dir, PathBuf::from("/from/flag"));
    }
}
