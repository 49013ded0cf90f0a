//! Signing in: the address that a browser is sent to, and the validation of the provider's answer (RFC 6749 section
//! 4.1, with RFC 7636, RFC 9207 and OpenID Connect).
//!
//! Everything secret of an attempt is computed from its secret, which the browser keeps sealed in a cookie, and its
//! `state`: the provider's answer is useless in another browser, and nothing secret is stored.

use std::sync::Arc;

use a2a_crawler::fetch::{FormOptions, MAX_DETAIL, escape_invisible};
use data_encoding::BASE64URL_NOPAD;
use ring::digest::{SHA256, digest};
use ring::hmac;
use serde::Deserialize;
use url::Url;

use crate::error::{AppError, Result};
use crate::providers::token_subject::{ClaimCompleteness, build_token_subject};
use crate::providers::{Provider, TokenSubject};

/// Bytes of the answer with the tokens.
const MAX_RESPONSE_BYTES: usize = 128 * 1024;
/// Maximum length of a code, in bytes.
const MAX_CODE_BYTES: usize = 4096;

/// An attempt to sign in: its secret, and its `state`.
#[derive(Debug, Clone, Copy)]
pub struct SignInAttemptSecrets<'a> {
    /// Only the registry and the cookie of the browser have it.
    pub secret: &'a str,
    /// The provider returns it.
    pub state: &'a str,
}

impl SignInAttemptSecrets<'_> {
    fn derive(&self, purpose: &str) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.secret.as_bytes());
        let tag = hmac::sign(
            &key,
            format!("a2a-registry {purpose} {}", self.state).as_bytes(),
        );
        BASE64URL_NOPAD.encode(tag.as_ref())
    }

    /// The identity token must repeat it.
    pub(super) fn nonce(&self) -> String {
        self.derive("nonce")
    }

    /// The PKCE code verifier, which proves that a code belongs to this attempt.
    pub(super) fn code_verifier(&self) -> String {
        self.derive("code verifier")
    }
}

/// The parameters of the address that a provider sends a browser back to.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct AuthorizationResponse {
    /// The attempt that it is about.
    pub state: String,
    code: Option<String>,
    iss: Option<String>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct TokenResponse {
    id_token: String,
    access_token: Option<String>,
}

#[derive(Default, Deserialize)]
struct TokenErrorResponse {
    #[serde(default)]
    error: String,
}

/// The address that a provider sends browsers back to.
pub fn redirect_uri(public_url: &str, provider: &Provider) -> String {
    format!("{public_url}/sign-in/{}/callback", provider.name())
}

fn sign_in_failed(text: String) -> AppError {
    AppError::unauthenticated(text)
}

impl Provider {
    /// The address to send a browser to. Unless the provider has responded recently, it is queried first, so that no
    /// one is sent to one that has been down for long.
    pub async fn authorization_url(
        &self,
        attempt: &SignInAttemptSecrets<'_>,
        redirect_uri: &str,
    ) -> Result<Url> {
        let metadata = self.current_metadata().await?;
        let endpoint = metadata.authorization_endpoint;
        let mut url = endpoint
            .ok_or_else(|| self.unavailable_error("it has no authorization endpoint".into()))?;
        let challenge = digest(&SHA256, attempt.code_verifier().as_bytes());
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.config.client_id)
            .append_pair("redirect_uri", redirect_uri)
            .append_pair("scope", &self.config.scopes.join(" "))
            .append_pair("state", attempt.state)
            .append_pair("nonce", &attempt.nonce())
            .append_pair(
                "code_challenge",
                &BASE64URL_NOPAD.encode(challenge.as_ref()),
            )
            .append_pair("code_challenge_method", "S256");
        Ok(url)
    }

    /// The person who has signed in, by the answer to an attempt.
    pub async fn signed_in(
        self: &Arc<Self>,
        attempt: &SignInAttemptSecrets<'_>,
        response: &AuthorizationResponse,
        redirect_uri: &str,
    ) -> Result<TokenSubject> {
        let metadata = self.known_metadata().await?;
        let requires_iss = metadata.authorization_response_iss_parameter_supported;
        let is_own_response = match response.iss.as_deref() {
            Some(iss) => iss == self.issuer(),
            None => !requires_iss,
        };
        if !is_own_response {
            return Err(sign_in_failed(
                "This answer is of another identity provider. Sign in again.".into(),
            ));
        }
        let code = match (&response.error, &response.code) {
            (Some(error), _) => {
                return Err(sign_in_failed(format!(
                    "{} has not signed you in: {}. You can try again.",
                    self.title(),
                    escape_invisible(error, MAX_DETAIL)
                )));
            }
            (None, Some(code)) if code.len() <= MAX_CODE_BYTES => code,
            (None, _) => {
                return Err(sign_in_failed(
                    "The identity provider has sent no code. Sign in again.".into(),
                ));
            }
        };
        let endpoint = metadata.token_endpoint;
        let endpoint =
            endpoint.ok_or_else(|| self.unavailable_error("it has no token endpoint".into()))?;
        let methods = metadata.token_endpoint_auth_methods_supported;
        // The default is the basic scheme.
        let basic = methods.is_none_or(|all| all.iter().any(|one| one == "client_secret_basic"));
        let tokens = self
            .exchange_code(&endpoint, attempt, code, redirect_uri, basic)
            .await?;
        let verified = self
            .verify_id_token(&tokens.id_token, &attempt.nonce())
            .await;
        let (mut claims, issued_at) = verified?;
        let completeness = match (&metadata.userinfo_endpoint, &tokens.access_token) {
            (Some(endpoint), Some(token)) if self.lacks_claims(&claims) => {
                self.add_userinfo(&mut claims, endpoint, token).await?;
                ClaimCompleteness::Complete
            }
            (Some(_), None) => ClaimCompleteness::WithoutUserinfo,
            _ => ClaimCompleteness::Complete,
        };
        build_token_subject(self.name(), &self.config, &claims, issued_at, completeness)
    }

    async fn exchange_code(
        &self,
        endpoint: &Url,
        attempt: &SignInAttemptSecrets<'_>,
        code: &str,
        redirect_uri: &str,
        basic: bool,
    ) -> Result<TokenResponse> {
        let verifier = attempt.code_verifier();
        let mut fields = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", redirect_uri),
            ("code_verifier", &verifier),
        ];
        let password = self.client_password.as_ref().filter(|_| basic);
        if password.is_none() {
            fields.push(("client_id", &self.config.client_id));
            fields.extend(
                self.client_secret
                    .as_deref()
                    .map(|secret| ("client_secret", secret)),
            );
        }
        let options = FormOptions {
            client_secret: password,
            max_body_bytes: MAX_RESPONSE_BYTES,
        };
        let exchange = self.fetcher.post_form(endpoint, &fields, &options).await;
        let response = match exchange.result {
            Ok(answer) => answer,
            Err(error) => {
                self.mark_suspect().await;
                return Err(self.unavailable_error(error.detail));
            }
        };
        match response.status {
            200 => serde_json::from_slice::<TokenResponse>(&response.body).map_err(|_| {
                self.unavailable_error(format!("{endpoint} has sent no identity token"))
            }),
            400 | 401 => {
                let error_response: TokenErrorResponse =
                    serde_json::from_slice(&response.body).unwrap_or_default();
                let why = escape_invisible(&error_response.error, MAX_DETAIL);
                tracing::warn!(provider = self.name(), why, "a code was refused");
                Err(sign_in_failed(format!(
                    "{} has not accepted its own answer: {why}. Sign in again.",
                    self.title()
                )))
            }
            status => {
                self.mark_suspect().await;
                Err(self.unavailable_error(format!("{endpoint} responded with status {status}")))
            }
        }
    }
}
