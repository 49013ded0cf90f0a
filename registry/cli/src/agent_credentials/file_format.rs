//! Content of the credentials file: the credentials for each agent, by the origin of its interface.

use std::collections::{BTreeMap, BTreeSet};

use a2a_registry_domain::timestamp::{MINUTE, Timestamp};
use serde::{Deserialize, Serialize};

use super::secret::Secret;

/// Format version that this program writes.
const FORMAT_VERSION: u32 = 1;

/// Longest time before its expiry at which a token is renewed.
const MAX_RENEWAL_MARGIN: i64 = MINUTE;

/// Content of the file. Unknown members are rejected, because they would be lost when the file is written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredCredentials {
    version: u32,
    /// By origin, such as `https://agent.example`.
    #[serde(default)]
    pub agents: BTreeMap<String, AgentCredentials>,
    /// Addresses at which the user agreed to sign in, by the origin of the agent's interface.
    #[serde(default)]
    pub confirmed: BTreeMap<String, BTreeSet<String>>,
}

impl Default for StoredCredentials {
    fn default() -> Self {
        Self {
            version: FORMAT_VERSION,
            agents: BTreeMap::new(),
            confirmed: BTreeMap::new(),
        }
    }
}

impl StoredCredentials {
    /// Parses the content of a file.
    ///
    /// # Errors
    /// The reason and the position, without any content.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let stored: Self = serde_json::from_slice(text).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            format!("it is not a credentials file of this program (line {line}, column {column})")
        })?;
        match stored.version {
            FORMAT_VERSION => Ok(stored),
            other => Err(format!(
                "its format {other} is unknown; a newer version of this program wrote it"
            )),
        }
    }
}

/// Credentials stored for one agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AgentCredentials {
    /// Token that was issued manually.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bearer: Option<Secret>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key: Option<Secret>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub basic: Option<StoredLogin>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<StoredCertificate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sign_in: Option<StoredSignIn>,
}

/// User name and password.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredLogin {
    pub user: String,
    pub password: Secret,
}

/// Files of a client certificate, as absolute paths. They are read again for each command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredCertificate {
    /// The certificate with its chain.
    pub chain: std::path::PathBuf,
    pub key: std::path::PathBuf,
}

/// Sign-in at an authorization server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredSignIn {
    /// Address in the card that identifies the sign-in.
    pub declared: String,
    /// Endpoint that issued the tokens.
    pub token_endpoint: String,
    /// Endpoint that renews them, if it is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refresh_endpoint: Option<String>,
    pub client_id: String,
    /// The client's secret, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<Secret>,
    /// Whether the secret is sent in the body.
    #[serde(default)]
    pub secret_in_body: bool,
    /// Whether the client signs in as itself, and so can sign in again without a person.
    #[serde(default)]
    pub unattended: bool,
    /// Requested scopes.
    pub scopes: Vec<String>,
    /// The token for the agent.
    pub access_token: Secret,
    /// Expiry of the access token in microseconds since 1970, if the server stated it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<i64>,
    /// Time from which the access token is renewed, in the same unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renew_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<Secret>,
}

impl StoredSignIn {
    /// Sets newly issued tokens. They are renewed a minute before they expire, short-lived ones after three quarters
    /// of their lifetime.
    pub fn set_tokens(&mut self, tokens: &a2a_client::oauth::TokenSet, now: Timestamp) {
        self.access_token = Secret(tokens.access_token.clone());
        self.refresh_token = tokens.refresh_token.clone().map(Secret);
        let lifetime = tokens.lifetime.map(|lifetime| {
            let microseconds = i64::try_from(lifetime.as_micros());
            microseconds.unwrap_or(i64::MAX)
        });
        let end = lifetime.map(|lifetime| now.plus_micros(lifetime).0);
        self.expires_at = end;
        self.renew_at = end
            .zip(lifetime)
            .map(|(end, lifetime)| end - MAX_RENEWAL_MARGIN.min(lifetime / 4));
    }

    /// Whether the token can be used now, and is not the rejected one.
    pub fn has_usable_access_token(&self, rejected: Option<&str>, now: Timestamp) -> bool {
        let in_time = self.renew_at.is_none_or(|at| now.0 < at);
        in_time && rejected != Some(self.access_token.0.as_str())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::time::Duration;

    use a2a_client::oauth::TokenSet;
    use a2a_registry_domain::timestamp::SECOND;

    use super::*;

    fn sign_in() -> StoredSignIn {
        StoredSignIn {
            declared: "https://l.example/t".to_owned(),
            token_endpoint: "https://l.example/t".to_owned(),
            refresh_endpoint: None,
            client_id: "cli".to_owned(),
            client_secret: Some(Secret("s3cret".to_owned())),
            secret_in_body: false,
            unattended: false,
            scopes: vec!["read".to_owned()],
            access_token: Secret("s3cret".to_owned()),
            expires_at: None,
            renew_at: None,
            refresh_token: Some(Secret("s3cret".to_owned())),
        }
    }

    #[test]
    fn what_is_written_is_read_again_and_never_shown() {
        let mut stored = StoredCredentials::default();
        let agent = stored
            .agents
            .entry("https://a.example".to_owned())
            .or_default();
        agent.bearer = Some(Secret("s3cret".to_owned()));
        agent.basic = Some(StoredLogin {
            user: "ann".to_owned(),
            password: Secret("s3cret".to_owned()),
        });
        agent.sign_in = Some(sign_in());
        let text = serde_json::to_vec(&stored).unwrap();
        assert_eq!(StoredCredentials::parse(&text).unwrap(), stored);
        let shown = format!("{stored:?}");
        assert!(
            shown.contains("ann") && !shown.contains("s3cret"),
            "{shown}"
        );
    }

    #[test]
    fn a_file_in_another_form_is_refused_without_quoting_it() {
        for broken in [
            &b"{\"version\": 1, \"agents\": {\"a\": {\"bearer\": \"s3cret\""[..],
            b"{\"version\": 2}",
            b"{\"version\": 1, \"s3cret\": 1}",
            b"{\"version\": 1, \"agents\": {\"a\": {\"bearer\": {\"s3cret\": 1}}}}",
            b"",
            b"s3cret",
        ] {
            let reason = StoredCredentials::parse(broken).unwrap_err();
            assert!(!reason.contains("s3cret"), "{reason}");
        }
    }

    #[test]
    fn tokens_are_renewed_shortly_before_their_end() {
        let now = Timestamp(1_000_000 * SECOND);
        for (lifetime, good_for) in [(3600, 3540), (60, 45), (0, 0)] {
            let mut signed_in = sign_in();
            let tokens = TokenSet {
                access_token: "new".to_owned(),
                refresh_token: None,
                lifetime: Some(Duration::from_secs(lifetime)),
            };
            signed_in.set_tokens(&tokens, now);
            assert_eq!(signed_in.refresh_token, None);
            let at = |seconds: i64| {
                signed_in.has_usable_access_token(None, now.plus_micros(seconds * SECOND))
            };
            assert!(!at(good_for), "{lifetime}");
            assert_eq!(
                at(good_for - 1),
                good_for > 0 || lifetime == 0,
                "{lifetime}"
            );
        }
        let lasting = sign_in();
        assert!(
            lasting.has_usable_access_token(None, now)
                && lasting.has_usable_access_token(Some("other"), now)
        );
        assert!(!lasting.has_usable_access_token(Some("s3cret"), now));
    }
}
