//! Credentials with which the crawler fetches sources that are not public.

use std::fmt;

use a2a_registry_domain::open_enum::OpenEnum;
use a2a_registry_domain::source::CredentialKind;
use a2a_registry_domain::timestamp::Timestamp;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use super::limits;

/// A credential for a source. It is stored encrypted, and never shown again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSourceCredential {
    /// `bearer`, `basic`, `header` or `client_credentials`.
    pub kind: CredentialKind,
    /// The user name for `basic`, the name of the header field for `header`, and the client id for
    /// `client_credentials`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<limits::CredentialText>)]
    pub name: Option<String>,
    /// The token, the password, the value of the header field, or the client secret.
    #[schema(value_type = limits::CredentialText)]
    pub secret: SecretText,
    /// For `client_credentials`, the https URL that issues access tokens: on the registrable domain of the source, or
    /// on a host of `crawler.token_hosts`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<limits::CredentialText>)]
    pub token_url: Option<String>,
    /// The scopes to ask for, separated by spaces, for `client_credentials`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<limits::CredentialText>)]
    pub scope: Option<String>,
}

/// A text that neither `Debug` nor an error shows.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct SecretText(String);

impl SecretText {
    /// The text itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for SecretText {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretText")
    }
}

/// Serde's own errors quote a value of another type, which may be a secret of digits only.
impl<'de> Deserialize<'de> for SecretText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::String(text) => Ok(Self(text)),
            _ => Err(D::Error::custom("a secret must be a text")),
        }
    }
}

/// The credential of a source, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SourceCredentialView {
    /// `bearer`, `basic`, `header` or `client_credentials`.
    #[schema(value_type = String)]
    pub kind: OpenEnum<CredentialKind>,
    /// The origin that it is sent to.
    pub origin: String,
    /// Time at which it was set.
    pub set_at: Timestamp,
    /// The account that set it; only shown to the owner and to callers who see everything.
    pub set_by: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_shown_by_nothing() {
        let given = r#"{"kind": "bearer", "secret": "hush-7"}"#;
        let read: NewSourceCredential =
            serde_json::from_str(given).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(read.secret.reveal(), "hush-7");
        assert!(!format!("{read:?}").contains("hush"), "{read:?}");
        for unfit in ["7654321", "[7654321]", "{\"a\": 7654321}", "true"] {
            let given = format!(r#"{{"kind": "bearer", "secret": {unfit}}}"#);
            let read = serde_json::from_str::<NewSourceCredential>(&given);
            let error = read
                .err()
                .map(|error| error.to_string())
                .unwrap_or_default();
            assert!(
                error.contains("must be a text") && !error.contains("7654321"),
                "{error}"
            );
        }
    }
}
