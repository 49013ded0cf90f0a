//! `[embedding]`: a sentence encoder of an external service, and the network rules for its endpoint.

use std::path::PathBuf;
use std::time::Duration;

use a2a_crawler::fetch::BearerToken;
use a2a_crawler::guard::{GuardError, SsrfGuard};
use a2a_registry_embed::{EndpointOptions, MAX_DIMENSIONS, MAX_PROMPT_BYTES};
use ipnet::IpNet;

use crate::config::network_rules::read_root_certificates;
use crate::config::secret_file::read_secret_file;
use crate::config::section::section;
use crate::config::validate::allow_ports_error;
use crate::config::{AllowPorts, Secret};

/// Maximum length of a model name, in bytes.
const MAX_MODEL_NAME_BYTES: usize = 200;

section! {
    /// `[embedding]`: an encoder behind an HTTP endpoint that speaks OpenAI's embeddings API.
    ///
    /// Requests pass a guard with the lists of this section. The lists of `[crawler]` do not apply to the encoder, and
    /// these lists do not apply to the crawler.
    pub struct EmbeddingConfig {
        /// The URL that texts are posted to, such as `https://api.example.com/v1/embeddings`. Empty: no endpoint is
        /// used.
        pub url: String,
        /// The model's name at the endpoint, of at most 200 bytes.
        pub model: String,
        /// Dimensions of a vector, for endpoints that shorten vectors on request. Default: the model's own number,
        /// determined by a request at startup. From 1 to 4096.
        pub dimensions: Option<usize>,
        /// Text to put before each query, as the model expects: `"query: "` for E5. At most 128 bytes. A change
        /// recomputes all vectors.
        pub query_prefix: String,
        /// Text to put before each text of a card, as the model expects: `"passage: "` for E5. At most 128 bytes. A
        /// change recomputes all vectors.
        pub passage_prefix: String,
        /// The API key for the endpoint, sent as a bearer token. Preferably set in the environment or in `key_file`.
        /// It is never shown.
        pub key: Secret,
        /// A file with the key, instead of `key`.
        pub key_file: Option<PathBuf>,
        /// Timeout of a batch of cards, in seconds; queries wait only for `search.embed_timeout`. From 1 to 600.
        pub timeout_seconds: u64 = 30,
        /// Networks that may be reached although they are private or loopback, such as `10.0.0.0/8`.
        pub allow_networks: Vec<IpNet>,
        /// Host names that may be reached although they are local, reserved or without a known top-level domain, such
        /// as `encoder.corp.internal`.
        pub allow_names: Vec<String>,
        /// Networks that are never reached, even if another setting allows them.
        pub deny_networks: Vec<IpNet>,
        /// Whether plain `http:` is allowed.
        pub allow_http: bool,
        /// Ports that are allowed: one such as `443`, a list such as `[443, 8443]`, or `"any"`.
        pub allow_ports: AllowPorts,
        /// PEM files with additional root certificates, each read at start.
        pub extra_ca: Vec<PathBuf>,
    }
}

impl EmbeddingConfig {
    /// Builds the endpoint of this section; reads its key and root certificates from their files. Errors do not quote
    /// the key.
    pub fn read_endpoint_options(&self) -> Result<EndpointOptions, String> {
        Ok(EndpointOptions {
            url: self.url.clone(),
            model: self.model.clone(),
            dimensions: self.dimensions,
            query_prefix: self.query_prefix.clone(),
            passage_prefix: self.passage_prefix.clone(),
            api_key: self.read_key()?,
            timeout: Duration::from_secs(self.timeout_seconds),
            guard: self.guard_config(),
            extra_ca: read_root_certificates(&self.extra_ca)
                .map_err(|error| format!("embedding.{error}"))?,
        })
    }

    /// Reads the key; `None` if neither `key` nor `key_file` is set.
    fn read_key(&self) -> Result<Option<BearerToken>, String> {
        let bearer = |name: &str, key: &str| {
            let bearer = BearerToken::new(key).map(Some);
            bearer.map_err(|error| format!("embedding.{name}: {error}"))
        };
        match (&self.key_file, self.key.reveal()) {
            (Some(path), _) => bearer("key_file", &read_secret_file("embedding.key_file", path)?),
            (None, Some(key)) => bearer("key", key),
            (None, None) => Ok(None),
        }
    }

    fn prefix_errors(&self) -> impl Iterator<Item = String> {
        let prefixes = [
            ("query_prefix", &self.query_prefix),
            ("passage_prefix", &self.passage_prefix),
        ];
        let too_long = prefixes
            .into_iter()
            .filter(|(_, prefix)| prefix.len() > MAX_PROMPT_BYTES);
        too_long
            .map(|(name, _)| format!("embedding.{name} must have at most {MAX_PROMPT_BYTES} bytes"))
    }

    /// Validation errors, one sentence each. The key file is not read yet.
    pub fn validation_errors(&self) -> Vec<String> {
        let mut errors: Vec<String> = allow_ports_error("embedding", &self.allow_ports)
            .into_iter()
            .chain(self.prefix_errors())
            .collect();
        let mut push_error = |text: &str| errors.push(format!("embedding.{text}"));
        if !self.url.is_empty() {
            match SsrfGuard::new(self.guard_config()).check_url(&self.url) {
                Ok(_) => {}
                Err(GuardError::Scheme { .. }) => {
                    push_error(
                        "url must begin with https://, or with http:// if embedding.allow_http is set",
                    );
                }
                Err(GuardError::UserInfo) => {
                    push_error(
                        "url must not contain a user name or password; put the key into embedding.key_file",
                    );
                }
                Err(refusal) => push_error(&format!(
                    "url is rejected by the lists of [embedding]: {refusal}"
                )),
            }
            if self.model.is_empty() {
                push_error("model must name the model to use at the endpoint");
            }
        }
        if self.model.len() > MAX_MODEL_NAME_BYTES {
            push_error(&format!(
                "model must have at most {MAX_MODEL_NAME_BYTES} bytes"
            ));
        }
        if let Some(dimensions) = self.dimensions
            && !(1..=MAX_DIMENSIONS).contains(&dimensions)
        {
            push_error(&format!(
                "dimensions must be between 1 and {MAX_DIMENSIONS}"
            ));
        }
        if !(1..=600).contains(&self.timeout_seconds) {
            push_error("timeout_seconds must be between 1 and 600");
        }
        let key = self.key.reveal();
        if self.key_file.is_some() && key.is_some() {
            push_error("key and embedding.key_file are alternatives: set only one of them");
        }
        if self.key.is_placeholder() {
            push_error(
                "key is the placeholder of a printed configuration; set the key itself, or key_file",
            );
        } else if let Some(Err(error)) = key.map(BearerToken::new) {
            push_error(&format!("key cannot be sent: {error}"));
        }
        errors
    }
}

#[cfg(test)]
mod tests {
    //! Tests of the section's validation, and that its key is never shown.

    #![allow(clippy::unwrap_used)]

    use super::*;

    fn section() -> EmbeddingConfig {
        EmbeddingConfig {
            url: "https://api.example.com/v1/embeddings".into(),
            model: "small".into(),
            ..EmbeddingConfig::default()
        }
    }

    #[test]
    fn nothing_is_wrong_with_what_is_usual() {
        assert_eq!(EmbeddingConfig::default().validation_errors(), [""; 0]);
        assert_eq!(section().validation_errors(), [""; 0]);
        let own = EmbeddingConfig {
            url: "http://127.0.0.1:11434/v1/embeddings".into(),
            dimensions: Some(MAX_DIMENSIONS),
            query_prefix: "q".repeat(MAX_PROMPT_BYTES),
            passage_prefix: "p".repeat(MAX_PROMPT_BYTES),
            key: "hush".into(),
            allow_networks: vec!["127.0.0.0/8".parse().unwrap()],
            allow_http: true,
            allow_ports: AllowPorts::One(11434),
            ..section()
        };
        assert_eq!(own.validation_errors(), [""; 0]);
    }

    /// Sets one value to an invalid one.
    type Spoil = fn(&mut EmbeddingConfig);

    #[test]
    fn every_mistake_is_named_and_no_key_quoted() {
        let cases: [(&str, Spoil); 17] = [
            ("embedding.url", |own| own.url = "ftp://x/".into()),
            ("embedding.url", |own| {
                own.url = "http://api.example.com/".into()
            }),
            ("embedding.url", |own| {
                own.url = "https://api.example.com:8443/".into()
            }),
            ("embedding.url", |own| own.url = "https://127.0.0.1/".into()),
            ("embedding.url", |own| own.url = "https://encoder/".into()),
            ("embedding.url", |own| {
                own.url = "https://a:hush@api.example.com/".into()
            }),
            ("embedding.model", |own| own.model = String::new()),
            ("embedding.model", |own| {
                own.model = "m".repeat(MAX_MODEL_NAME_BYTES + 1)
            }),
            ("embedding.dimensions", |own| own.dimensions = Some(0)),
            ("embedding.dimensions", |own| {
                own.dimensions = Some(MAX_DIMENSIONS + 1)
            }),
            ("embedding.query_prefix", |own| {
                own.query_prefix = "q".repeat(MAX_PROMPT_BYTES + 1);
            }),
            ("embedding.passage_prefix", |own| {
                own.passage_prefix = "p".repeat(MAX_PROMPT_BYTES + 1);
            }),
            ("embedding.timeout_seconds", |own| own.timeout_seconds = 0),
            ("embedding.allow_ports", |own| {
                own.allow_ports = AllowPorts::Word("some".into())
            }),
            ("embedding.key", |own| own.key = "hush hush".into()),
            ("embedding.key", |own| own.key = "(hidden)".into()),
            ("embedding.key_file", |own| {
                own.key = "hush".into();
                own.key_file = Some("key".into());
            }),
        ];
        for (named, spoil) in cases {
            let mut own = section();
            spoil(&mut own);
            let mistakes = own.validation_errors();
            assert_eq!(mistakes.len(), 1, "{named}: {mistakes:?}");
            assert!(mistakes[0].contains(named), "{mistakes:?}");
            assert!(!mistakes[0].contains("hush"), "{mistakes:?}");
        }
    }

    #[test]
    fn the_key_is_read_from_where_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let from_file = EmbeddingConfig {
            key_file: Some(path.clone()),
            ..section()
        };
        assert!(from_file.read_key().unwrap_err().contains("key_file"));
        std::fs::write(&path, "hush-7\r\n").unwrap();
        let from_key = EmbeddingConfig {
            key: "hush-7".into(),
            ..section()
        };
        for own in [from_file.clone(), from_key] {
            let key = own.read_key().unwrap().unwrap();
            assert_eq!(key.redact_from_text("a hush-7 b"), "a [key] b");
            assert!(!format!("{own:?}").contains("hush"), "{own:?}");
        }
        for unfit in ["", "\n", "hush hush", "hush\nhush", &"hush".repeat(5000)] {
            std::fs::write(&path, unfit).unwrap();
            let error = from_file.read_key().unwrap_err();
            assert!(!error.contains("hush"), "{error}");
        }
        assert!(section().read_key().unwrap().is_none());
    }
}
