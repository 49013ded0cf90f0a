//! Documents in which an authorization server describes itself: RFC 8414, and `OpenID` Connect Discovery 1.0.

use serde::Deserialize;
use url::Url;

use super::endpoint_client::OauthHttpClient;
use super::{GrantType, OauthError, parse_oauth_url};
use crate::foreign_text::shorten_to_line;
use crate::http_session::display_url;

/// The addresses of an authorization server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OauthEndpoints {
    /// The token endpoint.
    pub token: Url,
    /// The address to open in the browser.
    pub authorization: Option<Url>,
    /// The endpoint that issues codes for other devices.
    pub device: Option<Url>,
    /// The endpoint that renews tokens, if it is not the token endpoint.
    pub refresh: Option<Url>,
    /// The issuer, if a document names it. The browser redirect must come from it (RFC 9207).
    pub issuer: Option<String>,
    /// Whether the browser redirect must name the issuer.
    pub requires_issuer_parameter: bool,
    /// Whether the client's secret is sent in the body, because the server does not accept it in a header.
    pub sends_secret_in_body: bool,
}

impl OauthEndpoints {
    /// A server with only a token endpoint.
    #[must_use]
    pub fn from_token_url(token: Url) -> Self {
        Self {
            token,
            authorization: None,
            device: None,
            refresh: None,
            issuer: None,
            requires_issuer_parameter: false,
            sends_secret_in_body: false,
        }
    }

    /// The addresses that a flow uses, each with its name; the user must confirm them.
    #[must_use]
    pub fn urls_for_grant(&self, grant_type: GrantType) -> Vec<(&'static str, &Url)> {
        let first = match grant_type {
            GrantType::AuthorizationCode => self
                .authorization
                .as_ref()
                .map(|url| ("authorization", url)),
            GrantType::DeviceCode => self.device.as_ref().map(|url| ("device", url)),
            GrantType::ClientCredentials => None,
        };
        let refresh = self.refresh.as_ref().map(|url| ("refresh", url));
        let all = first.into_iter().chain([("token", &self.token)]);
        all.chain(refresh).collect()
    }
}

/// The kind of document at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OauthMetadataKind {
    /// Metadata of an authorization server (RFC 8414).
    Metadata,
    /// `OpenID` Connect Discovery 1.0.
    OpenId,
}

/// The document, as far as it is read.
#[derive(Debug, Deserialize)]
pub struct OauthServerMetadata {
    issuer: String,
    token_endpoint: Option<String>,
    authorization_endpoint: Option<String>,
    device_authorization_endpoint: Option<String>,
    #[serde(default)]
    token_endpoint_auth_methods_supported: Vec<String>,
    code_challenge_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

impl OauthServerMetadata {
    /// Fetches the document at a confirmed address, without any credentials. A document of another issuer is rejected.
    pub async fn fetch(url: &Url) -> Result<Self, OauthError> {
        let response = OauthHttpClient::for_url(url)?.get(url).await?;
        let unreadable_error = |reason: &str| OauthError::Unreadable {
            url: display_url(url),
            reason: reason.to_owned(),
        };
        if response.status != 200 {
            return Err(unreadable_error(&format!("HTTP {}", response.status)));
        }
        let metadata: Self = serde_json::from_slice(&response.body)
            .map_err(|_| unreadable_error("it is not the metadata of an authorization server"))?;
        match metadata.is_located_at(url) {
            true => Ok(metadata),
            false => Err(OauthError::OtherIssuer {
                url: display_url(url),
                issuer: shorten_to_line(&metadata.issuer),
            }),
        }
    }

    /// Whether this is the address at which the issuer's document must be: the issuer with the well-known path after
    /// it (`OpenID` Connect Discovery 1.0 section 4), or before its path (RFC 8414 section 3).
    fn is_located_at(&self, url: &Url) -> bool {
        let Ok(issuer) = parse_oauth_url(&self.issuer) else {
            return false;
        };
        if issuer.query().is_some() {
            return false;
        }
        let path = issuer.path().trim_end_matches('/').to_owned();
        let issuer_with_path = |path: String| {
            let mut at = issuer.clone();
            at.set_path(&path);
            at
        };
        ["openid-configuration", "oauth-authorization-server"]
            .iter()
            .any(|name| {
                let after = issuer_with_path(format!("{path}/.well-known/{name}"));
                let before = issuer_with_path(format!("/.well-known/{name}{path}"));
                *url == after || *url == before
            })
    }

    /// The addresses of the server. Fails if one must not be used, or if the server does not know PKCE with SHA-256.
    pub fn endpoints(&self, url: &Url) -> Result<OauthEndpoints, OauthError> {
        let missing_error = |what| OauthError::NotOffered {
            url: display_url(url),
            what,
        };
        let parse_url = |text: &Option<String>| text.as_deref().map(parse_oauth_url).transpose();
        let token =
            parse_url(&self.token_endpoint)?.ok_or_else(|| missing_error("token endpoint"))?;
        let challenges = self.code_challenge_methods_supported.as_deref();
        if challenges.is_some_and(|known| !known.iter().any(|method| method == "S256")) {
            return Err(missing_error("PKCE with SHA-256"));
        }
        let methods = &self.token_endpoint_auth_methods_supported;
        let has = |name: &str| methods.iter().any(|method| method == name);
        Ok(OauthEndpoints {
            authorization: parse_url(&self.authorization_endpoint)?,
            device: parse_url(&self.device_authorization_endpoint)?,
            issuer: Some(self.issuer.clone()),
            requires_issuer_parameter: self.authorization_response_iss_parameter_supported,
            sends_secret_in_body: has("client_secret_post") && !has("client_secret_basic"),
            ..OauthEndpoints::from_token_url(token)
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn document(issuer: &str) -> OauthServerMetadata {
        serde_json::from_value(json!({"issuer": issuer, "token_endpoint": "https://l.example/t"}))
            .unwrap()
    }

    #[test]
    fn a_document_belongs_to_the_issuer_of_its_address() {
        for (issuer, at) in [
            (
                "https://l.example",
                "https://l.example/.well-known/openid-configuration",
            ),
            (
                "https://l.example/",
                "https://l.example/.well-known/oauth-authorization-server",
            ),
            (
                "https://l.example/t",
                "https://l.example/t/.well-known/openid-configuration",
            ),
            (
                "https://l.example/t",
                "https://l.example/.well-known/oauth-authorization-server/t",
            ),
            (
                "http://127.0.0.1:9",
                "http://127.0.0.1:9/.well-known/openid-configuration",
            ),
        ] {
            assert!(
                document(issuer).is_located_at(&at.parse().unwrap()),
                "{issuer} {at}"
            );
        }
        for (issuer, at) in [
            (
                "https://m.example",
                "https://l.example/.well-known/openid-configuration",
            ),
            (
                "https://l.example:8443",
                "https://l.example/.well-known/openid-configuration",
            ),
            (
                "https://l.example/u",
                "https://l.example/t/.well-known/openid-configuration",
            ),
            (
                "http://l.example",
                "http://l.example/.well-known/openid-configuration",
            ),
            (
                "https://l.example?t",
                "https://l.example/.well-known/openid-configuration",
            ),
            (
                "https://l.example",
                "https://l.example/openid-configuration",
            ),
            (
                "https://l.example",
                "https://l.example/.well-known/openid-configuration?x",
            ),
            (
                "l.example",
                "https://l.example/.well-known/openid-configuration",
            ),
        ] {
            assert!(
                !document(issuer).is_located_at(&at.parse().unwrap()),
                "{issuer} {at}"
            );
        }
    }

    #[test]
    fn addresses_of_a_document_are_checked() {
        let url: Url = "https://l.example/.well-known/openid-configuration"
            .parse()
            .unwrap();
        let of = |members: serde_json::Value| {
            let mut whole = json!({"issuer": "https://l.example"});
            whole
                .as_object_mut()
                .unwrap()
                .extend(members.as_object().unwrap().clone());
            let document: OauthServerMetadata = serde_json::from_value(whole).unwrap();
            document.endpoints(&url)
        };
        let token = "https://l.example/t";
        let found = of(json!({"token_endpoint": token, "token_endpoint_auth_methods_supported": ["client_secret_post"]})).unwrap();
        assert!(found.sends_secret_in_body && found.authorization.is_none());
        let named: Vec<_> = found
            .urls_for_grant(GrantType::AuthorizationCode)
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(named, ["token"]);
        for bad in [
            json!({}),
            json!({"token_endpoint": "http://l.example/t"}),
            json!({"token_endpoint": token, "authorization_endpoint": "http://l.example/a"}),
            json!({"token_endpoint": token, "device_authorization_endpoint": "data:,"}),
            json!({"token_endpoint": token, "code_challenge_methods_supported": ["plain"]}),
        ] {
            assert!(of(bad.clone()).is_err(), "{bad}");
        }
    }
}
