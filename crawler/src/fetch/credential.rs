//! Credentials for sources that are not public: which requests carry them, and how access tokens are obtained.
//!
//! A credential is sent to the origin of its source only, over https only, and never after a redirect.

use std::fmt;

use data_encoding::BASE64;
use reqwest::RequestBuilder;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use url::Url;

use super::source::failed_source_result;
use super::{BearerToken, ClientSecretBasic, Fetcher, KeySetRules};
use crate::foreign_text::{MAX_DETAIL, sanitize_text};
use crate::guard::SsrfGuard;
use crate::{AttemptOutcome, FetchAttempt, SourceOutcome, SourceResult, SourceTask};

/// Maximum length in bytes of each part of a credential.
pub const MAX_CREDENTIAL_BYTES: usize = 4096;

/// Header fields that the fetcher, HTTP itself or proxies set. A credential under such a name could choose the host,
/// the path or the client that the server believes in, or change how the message is framed.
#[rustfmt::skip]
const REFUSED_NAMES: [&str; 39] = [
    "accept", "accept-charset", "accept-encoding", "accept-language", "baggage", "cache-control",
    "cf-connecting-ip", "client-ip", "connection", "cookie", "cookie2", "date", "early-data", "expect",
    "fastly-client-ip", "from", "host", "http2-settings", "keep-alive", "max-forwards", "origin", "pragma",
    "priority", "range", "referer", "set-cookie", "te", "traceparent", "tracestate", "trailer",
    "transfer-encoding", "true-client-ip", "upgrade", "user-agent", "via", "warning", "x-client-ip",
    "x-cluster-client-ip", "x-real-ip",
];
/// Beginnings of such names.
#[rustfmt::skip]
const REFUSED_PREFIXES: [&str; 12] = [
    "access-control-", "content-", "forwarded", "if-", "proxy-", "sec-", "x-envoy-", "x-forwarded", "x-host",
    "x-http-method", "x-original-", "x-rewrite-",
];

/// Why a credential is not accepted. No message repeats a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the values are")]
pub enum InvalidCredential {
    #[error(
        "A credential is sent over https only. Serve the source over https, and register it there."
    )]
    NotHttps,
    #[error(
        "A token must be 1 to {} visible ASCII characters without spaces.",
        MAX_CREDENTIAL_BYTES
    )]
    Token,
    #[error(
        "A user name must be 1 to {} bytes without a colon and control characters.",
        MAX_CREDENTIAL_BYTES
    )]
    UserName,
    #[error(
        "A password must be 1 to {} bytes without control characters.",
        MAX_CREDENTIAL_BYTES
    )]
    Password,
    #[error("The name of a header field must be an HTTP token such as X-Api-Key.")]
    HeaderName,
    #[error(
        "This header field is set by HTTP, by the registry or by proxies, so it cannot hold a credential. Use another \
         one, such as X-Api-Key."
    )]
    RefusedHeaderName,
    #[error(
        "The value of a header field must be 1 to {} visible ASCII characters, with spaces only inside.",
        MAX_CREDENTIAL_BYTES
    )]
    HeaderValue,
    #[error(
        "A client id must be 1 to {} visible ASCII characters.",
        MAX_CREDENTIAL_BYTES
    )]
    ClientId,
    #[error(
        "A client secret must be 1 to {} bytes without control characters.",
        MAX_CREDENTIAL_BYTES
    )]
    ClientSecret,
    #[error(
        "A scope must be 1 to {} visible ASCII characters and spaces.",
        MAX_CREDENTIAL_BYTES
    )]
    Scope,
    #[error(
        "The token URL must be an https URL on the registrable domain of the source, or on a host of \
         crawler.token_hosts."
    )]
    TokenUrl,
}

/// The credential of one source. `Debug` shows no part of it.
#[derive(Clone)]
pub struct SourceCredential {
    /// Distinguishes it from every other credential, earlier ones of the same source included.
    key: i64,
    source: Url,
    secret: CredentialSecret,
}

#[derive(Clone)]
enum CredentialSecret {
    Header(HeaderName, HeaderValue),
    /// Access tokens are obtained by the client credentials grant (RFC 6749 section 4.4).
    Client {
        token_url: Url,
        secret: ClientSecretBasic,
        scope: Option<String>,
    },
    /// There is a credential, but it cannot be used, for this reason.
    Unusable(&'static str),
}

/// A client of an authorization server, as the server has issued it.
#[derive(Clone, Copy)]
pub struct ClientRegistration<'a> {
    /// The token endpoint.
    pub token_url: &'a Url,
    /// The id of the client.
    pub client_id: &'a str,
    /// The secret of the client.
    pub client_secret: &'a str,
    /// The scopes to ask for, separated by spaces.
    pub scope: Option<&'a str>,
}

impl SourceCredential {
    /// A bearer token (RFC 6750 section 2.1) for the source at this URL.
    pub fn bearer(key: i64, source: &Url, token: &str) -> Result<Self, InvalidCredential> {
        let token = BearerToken::new(token).map_err(|_| InvalidCredential::Token)?;
        let value = token.header_value().clone();
        Self::new(key, source, CredentialSecret::Header(AUTHORIZATION, value))
    }

    /// A user name and a password (RFC 7617) for the source at this URL.
    pub fn basic(
        key: i64,
        source: &Url,
        user_name: &str,
        password: &str,
    ) -> Result<Self, InvalidCredential> {
        if !is_text_without_controls(user_name) || user_name.contains(':') {
            return Err(InvalidCredential::UserName);
        }
        if !is_text_without_controls(password) {
            return Err(InvalidCredential::Password);
        }
        let pair = BASE64.encode(format!("{user_name}:{password}").as_bytes());
        let value = sensitive_header_value(&format!("Basic {pair}"))?;
        Self::new(key, source, CredentialSecret::Header(AUTHORIZATION, value))
    }

    /// A header field for the source at this URL, under a name that nothing else sets.
    pub fn header(
        key: i64,
        source: &Url,
        name: &str,
        value: &str,
    ) -> Result<Self, InvalidCredential> {
        let name = credential_header_name(name)?;
        let is_printable = value.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        let has_length = (1..=MAX_CREDENTIAL_BYTES).contains(&value.len());
        if !is_printable || !has_length || value.trim() != value {
            return Err(InvalidCredential::HeaderValue);
        }
        let value = sensitive_header_value(value)?;
        Self::new(key, source, CredentialSecret::Header(name, value))
    }

    /// A client that gets access tokens for the source at this URL. `token_hosts` are the hosts, lower-case, whose
    /// token endpoints any source may use, on the default port.
    pub fn client(
        key: i64,
        source: &Url,
        client: ClientRegistration<'_>,
        token_hosts: &[String],
    ) -> Result<Self, InvalidCredential> {
        if !is_permitted_token_url(source, client.token_url, token_hosts) {
            return Err(InvalidCredential::TokenUrl);
        }
        let is_visible = client.client_id.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_text_without_controls(client.client_id) || !is_visible {
            return Err(InvalidCredential::ClientId);
        }
        if !is_text_without_controls(client.client_secret) {
            return Err(InvalidCredential::ClientSecret);
        }
        let is_scope = |scope: &str| {
            scope.bytes().all(|byte| matches!(byte, b' '..=b'~')) && is_text_without_controls(scope)
        };
        if client.scope.is_some_and(|scope| !is_scope(scope)) {
            return Err(InvalidCredential::Scope);
        }
        let secret = CredentialSecret::Client {
            token_url: client.token_url.clone(),
            secret: ClientSecretBasic::new(client.client_id, client.client_secret)
                .map_err(|_| InvalidCredential::ClientSecret)?,
            scope: client.scope.map(str::to_owned),
        };
        Self::new(key, source, secret)
    }

    /// A credential that exists but cannot be used, for this reason. Its source is not fetched.
    pub fn unusable(key: i64, source: &Url, reason: &'static str) -> Self {
        Self {
            key,
            source: source.clone(),
            secret: CredentialSecret::Unusable(reason),
        }
    }

    fn new(key: i64, source: &Url, secret: CredentialSecret) -> Result<Self, InvalidCredential> {
        if source.scheme() != "https" {
            return Err(InvalidCredential::NotHttps);
        }
        Ok(Self {
            key,
            source: source.clone(),
            secret,
        })
    }
}

impl fmt::Debug for SourceCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SourceCredential({})", self.key)
    }
}

/// Whether a client secret for a source may be sent to this token endpoint.
fn is_permitted_token_url(source: &Url, token_url: &Url, token_hosts: &[String]) -> bool {
    let is_token_host = || {
        let host = token_url.host_str().filter(|_| token_url.port().is_none());
        host.is_some_and(|host| token_hosts.iter().any(|one| one == host))
    };
    token_url.scheme() == "https" && (SsrfGuard::is_same_site(source, token_url) || is_token_host())
}

/// The name of a header field that may hold a credential.
fn credential_header_name(name: &str) -> Result<HeaderName, InvalidCredential> {
    let parsed = HeaderName::from_bytes(name.as_bytes())
        .ok()
        .filter(|name| name.as_str().len() <= MAX_CREDENTIAL_BYTES);
    let parsed = parsed.ok_or(InvalidCredential::HeaderName)?;
    // Some servers read an underscore as a hyphen.
    let compared = parsed.as_str().replace('_', "-");
    let is_refused = REFUSED_NAMES.contains(&compared.as_str())
        || REFUSED_PREFIXES
            .iter()
            .any(|prefix| compared.starts_with(prefix));
    match is_refused {
        true => Err(InvalidCredential::RefusedHeaderName),
        false => Ok(parsed),
    }
}

fn is_text_without_controls(text: &str) -> bool {
    (1..=MAX_CREDENTIAL_BYTES).contains(&text.len()) && !text.chars().any(char::is_control)
}

/// The value of a header field, which neither `Debug` nor the logs of the HTTP libraries show.
fn sensitive_header_value(text: &str) -> Result<HeaderValue, InvalidCredential> {
    let mut value = HeaderValue::from_str(text).map_err(|_| InvalidCredential::HeaderValue)?;
    value.set_sensitive(true);
    Ok(value)
}

/// A header field that a fetcher adds to its requests to one origin.
#[derive(Clone)]
pub(super) struct AttachedCredential {
    source: Url,
    name: HeaderName,
    value: HeaderValue,
}

impl AttachedCredential {
    pub(super) fn is_for(&self, url: &Url) -> bool {
        url.scheme() == "https" && url.origin() == self.source.origin()
    }

    pub(super) fn add_to(&self, request: RequestBuilder) -> RequestBuilder {
        request.header(self.name.clone(), self.value.clone())
    }
}

impl fmt::Debug for AttachedCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AttachedCredential")
    }
}

const NO_TOKEN: &str = "the token URL did not issue an access token, so nothing was fetched; check the token URL, the \
                        client id, the client secret and the scope, and set the credential again";

impl Fetcher {
    /// Fetches a source with its credential, or not at all if the credential cannot be used.
    pub(super) async fn fetch_source_with_credential(
        &self,
        task: &SourceTask,
        credential: &SourceCredential,
        rules: &KeySetRules<'_>,
    ) -> SourceOutcome {
        let (name, value) = match self.credential_header(credential).await {
            Ok(header) => header,
            Err(reason) => return self.unfetched_outcome(task, reason),
        };
        let fetcher = Self {
            credential: Some(AttachedCredential {
                source: credential.source.clone(),
                name,
                value,
            }),
            ..self.clone()
        };
        let mut outcome = fetcher.fetch_target(task, rules).await;
        if let SourceResult::Fetched(card) = &mut outcome.result {
            card.with_credential = true;
        }
        if outcome
            .attempts
            .iter()
            .any(|attempt| attempt.outcome == AttemptOutcome::Forbidden)
        {
            // It may have been revoked, so that the next visit gets another one.
            self.access_tokens.forget(credential.key);
        }
        outcome
    }

    async fn credential_header(
        &self,
        credential: &SourceCredential,
    ) -> Result<(HeaderName, HeaderValue), &'static str> {
        match &credential.secret {
            CredentialSecret::Header(name, value) => Ok((name.clone(), value.clone())),
            CredentialSecret::Unusable(reason) => Err(*reason),
            CredentialSecret::Client {
                token_url,
                secret,
                scope,
            } => {
                let now = self.clock.monotonic();
                if let Some(token) = self.access_tokens.find(credential.key, now) {
                    return Ok((AUTHORIZATION, token.header_value().clone()));
                }
                let scope = scope.as_deref();
                let issued = self.request_access_token(token_url, secret, scope).await;
                let issued = issued.ok_or(NO_TOKEN)?;
                let value = issued.token.header_value().clone();
                self.access_tokens.insert(credential.key, issued, now);
                Ok((AUTHORIZATION, value))
            }
        }
    }

    /// The outcome of a source to which no request was sent.
    fn unfetched_outcome(&self, task: &SourceTask, reason: &str) -> SourceOutcome {
        let attempt = FetchAttempt {
            started_at: self.clock.now(),
            url: task.target.url().to_string(),
            outcome: AttemptOutcome::Forbidden,
            status: None,
            address: None,
            detail: sanitize_text(reason, MAX_DETAIL),
            is_conditional: false,
            elapsed_ms: 0,
        };
        SourceOutcome {
            source_key: task.source_key,
            attempts: vec![attempt],
            result: failed_source_result(AttemptOutcome::Forbidden),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const SOURCE: &str = "https://a.example.com/card.json";

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    fn header(name: &str, value: &str) -> Result<String, InvalidCredential> {
        SourceCredential::header(1, &url(SOURCE), name, value).map(|credential| {
            match credential.secret {
                CredentialSecret::Header(name, value) => {
                    format!("{name}: {}", value.to_str().unwrap())
                }
                _ => String::new(),
            }
        })
    }

    #[test]
    fn header_fields_that_others_set_are_refused_in_every_spelling() {
        for name in [
            "Host",
            "hOST",
            "Cookie",
            "Forwarded",
            "X-Forwarded-For",
            "X_Forwarded_Host",
            "X-FORWARDED-ANYTHING",
            "X-Real-IP",
            "x_real_ip",
            "X-Original-URL",
            "X-Rewrite-URL",
            "Connection",
            "Keep-Alive",
            "Proxy-Authorization",
            "Proxy-Connection",
            "TE",
            "Trailer",
            "Transfer-Encoding",
            "Content-Length",
            "Upgrade",
            "Expect",
            "Accept",
            "Accept-Encoding",
            "User-Agent",
            "If-None-Match",
            "If-Modified-Since",
            "Range",
            "Via",
            "Traceparent",
            "Sec-Fetch-Site",
            "X-HTTP-Method-Override",
        ] {
            assert_eq!(
                header(name, "v"),
                Err(InvalidCredential::RefusedHeaderName),
                "{name}"
            );
        }
        for name in ["", " ", "a b", "a:b", "a\r\nHost", "ä", "x\0"] {
            assert_eq!(
                header(name, "v"),
                Err(InvalidCredential::HeaderName),
                "{name:?}"
            );
        }
        assert_eq!(header("X-Api-Key", "a b").unwrap(), "x-api-key: a b");
        assert_eq!(
            header("Authorization", "Token 7").unwrap(),
            "authorization: Token 7"
        );
    }

    #[test]
    fn no_value_can_end_its_header_field() {
        let longest = "x".repeat(MAX_CREDENTIAL_BYTES);
        assert!(header("X-Api-Key", &longest).is_ok());
        for value in [
            "",
            " ",
            " a",
            "a ",
            "a\r\nHost: b",
            "a\n",
            "a\tb",
            "a\0",
            "a\u{7f}",
            "ä",
            &format!("{longest}x"),
        ] {
            assert_eq!(
                header("X-Api-Key", value),
                Err(InvalidCredential::HeaderValue),
                "{value:?}"
            );
        }
        let source = url(SOURCE);
        for (user, password, expected) in [
            ("ann", "hush:hush", None),
            ("änn", "grüß", None),
            ("", "x", Some(InvalidCredential::UserName)),
            ("a:b", "x", Some(InvalidCredential::UserName)),
            ("a\n", "x", Some(InvalidCredential::UserName)),
            ("a", "", Some(InvalidCredential::Password)),
            ("a", "x\r\ny", Some(InvalidCredential::Password)),
        ] {
            let found = SourceCredential::basic(1, &source, user, password).err();
            assert_eq!(found, expected, "{user:?}");
        }
        let found = SourceCredential::bearer(1, &source, "a\r\nb").err();
        assert_eq!(found, Some(InvalidCredential::Token));
    }

    #[test]
    fn a_credential_is_for_https_and_one_origin_and_shown_by_nothing() {
        let found = SourceCredential::bearer(1, &url("http://a.example.com/"), "hush-7").err();
        assert_eq!(found, Some(InvalidCredential::NotHttps));
        let credential = SourceCredential::bearer(1, &url(SOURCE), "hush-7").unwrap();
        let CredentialSecret::Header(name, value) = &credential.secret else {
            panic!("a token is a header field");
        };
        assert!(value.is_sensitive());
        let attached = AttachedCredential {
            source: credential.source.clone(),
            name: name.clone(),
            value: value.clone(),
        };
        for (target, expected) in [
            ("https://a.example.com/other", true),
            ("https://a.example.com:443/", true),
            ("http://a.example.com/card.json", false),
            ("http://a.example.com:443/card.json", false),
            ("https://a.example.com:8443/card.json", false),
            ("https://b.example.com/card.json", false),
            ("https://a.example.com.evil.net/card.json", false),
        ] {
            assert_eq!(attached.is_for(&url(target)), expected, "{target}");
        }
        for shown in [format!("{credential:?}"), format!("{attached:?}")] {
            assert!(!shown.contains("hush"), "{shown}");
        }
    }

    #[test]
    fn a_client_secret_goes_to_the_sources_own_site_and_to_listed_hosts() {
        let hosts = ["login.corp.example".to_owned()];
        let client = |token_url: &str| {
            let registration = ClientRegistration {
                token_url: &url(token_url),
                client_id: "id",
                client_secret: "hush-7",
                scope: Some("cards read"),
            };
            SourceCredential::client(1, &url(SOURCE), registration, &hosts).err()
        };
        for permitted in [
            "https://a.example.com/token",
            "https://login.example.com/token",
            "https://login.corp.example/token",
        ] {
            assert_eq!(client(permitted), None, "{permitted}");
        }
        for refused in [
            "http://a.example.com/token",
            "https://example.org/token",
            "https://login.corp.example:8443/token",
            "https://x.login.corp.example/token",
            "https://a.example.com.evil.net/token",
            "data:application/json,{}",
        ] {
            assert_eq!(
                client(refused),
                Some(InvalidCredential::TokenUrl),
                "{refused}"
            );
        }
        let other_customer = ClientRegistration {
            token_url: &url("https://two.github.io/token"),
            client_id: "id",
            client_secret: "hush-7",
            scope: None,
        };
        let found =
            SourceCredential::client(1, &url("https://one.github.io/"), other_customer, &[]);
        assert_eq!(found.err(), Some(InvalidCredential::TokenUrl));
    }
}
