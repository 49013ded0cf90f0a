//! Signing in: the authorization URL for the browser, and the validation of the provider's response (RFC 6749 section
//! 4.1, with RFC 7636, RFC 9207 and OpenID Connect).
//!
//! All secret values of an attempt are derived from its secret, which the browser keeps sealed in a cookie, and its
//! `state`. So the provider's response is useless in another browser, and no secret is stored.

use std::sync::Arc;

use a2a_crawler::fetch::FormOptions;
use a2a_crawler::foreign_text::{MAX_DETAIL, escape_invisible};
use data_encoding::BASE64URL_NOPAD;
use ring::digest::{SHA256, digest};
use ring::hmac;
use serde::Deserialize;
use url::Url;

use crate::error::{AppError, Result};
use crate::providers::token_subject::{ClaimCompleteness, build_token_subject};
use crate::providers::{IdentityProvider, TokenSubject};

/// Maximum size of the token response, in bytes.
const MAX_RESPONSE_BYTES: usize = 128 * 1024;
/// Maximum length of a code, in bytes.
const MAX_CODE_BYTES: usize = 4096;

/// An attempt to sign in: its secret, and its `state`.
#[derive(Debug, Clone, Copy)]
pub struct SignInAttemptSecrets<'a> {
    /// The secret, known only to the registry and the browser's cookie.
    pub secret: &'a str,
    /// The state, which the provider returns.
    pub state: &'a str,
}

impl SignInAttemptSecrets<'_> {
    fn derive_secret(&self, purpose: &str) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.secret.as_bytes());
        let tag = hmac::sign(
            &key,
            format!("a2a-registry {purpose} {}", self.state).as_bytes(),
        );
        BASE64URL_NOPAD.encode(tag.as_ref())
    }

    /// The nonce, which the identity token must repeat.
    pub(super) fn nonce(&self) -> String {
        self.derive_secret("nonce")
    }

    /// The PKCE code verifier, which proves that a code belongs to this attempt.
    pub(super) fn code_verifier(&self) -> String {
        self.derive_secret("code verifier")
    }
}

/// The query parameters of the address to which a provider redirects a browser.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct AuthorizationResponse {
    /// The state of the attempt.
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

/// The address to which a provider redirects browsers.
pub fn redirect_uri(public_url: &str, provider: &IdentityProvider) -> String {
    format!("{public_url}/sign-in/{}/callback", provider.name())
}

fn sign_in_failed_error(text: String) -> AppError {
    AppError::unauthenticated(text)
}

impl IdentityProvider {
    /// Builds the address to which a browser is sent. Unless the provider has responded recently it is queried first,
    /// so that no browser is sent to a provider that has been down for long.
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

    /// Determines the person who has signed in from the response to an attempt.
    pub async fn complete_sign_in(
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
            return Err(sign_in_failed_error(
                "This response is from another identity provider. Sign in again.".into(),
            ));
        }
        let code = match (&response.error, &response.code) {
            (Some(error), _) => {
                return Err(sign_in_failed_error(format!(
                    "{} did not sign you in: {}. You can try again.",
                    self.title(),
                    escape_invisible(error, MAX_DETAIL)
                )));
            }
            (None, Some(code)) if code.len() <= MAX_CODE_BYTES => code,
            (None, _) => {
                return Err(sign_in_failed_error(
                    "The identity provider sent no code. Sign in again.".into(),
                ));
            }
        };
        let endpoint = metadata.token_endpoint;
        let endpoint =
            endpoint.ok_or_else(|| self.unavailable_error("it has no token endpoint".into()))?;
        let methods = metadata.token_endpoint_auth_methods_supported;
        // The default is `client_secret_basic`.
        let basic = methods.is_none_or(|all| all.iter().any(|one| one == "client_secret_basic"));
        let tokens = self
            .exchange_code(&endpoint, attempt, code, redirect_uri, basic)
            .await?;
        let verified = self
            .verify_id_token(&tokens.id_token, &attempt.nonce())
            .await;
        let (mut claims, issued_at) = verified?;
        let completeness = match (&metadata.userinfo_endpoint, &tokens.access_token) {
            (Some(endpoint), Some(token)) if self.lacks_needed_claims(&claims) => {
                self.fetch_and_add_userinfo(&mut claims, endpoint, token)
                    .await?;
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
            200 => serde_json::from_slice::<TokenResponse>(&response.body)
                .map_err(|_| self.unavailable_error(format!("{endpoint} sent no identity token"))),
            400 | 401 => {
                let error_response: TokenErrorResponse =
                    serde_json::from_slice(&response.body).unwrap_or_default();
                let why = escape_invisible(&error_response.error, MAX_DETAIL);
                tracing::warn!(provider = self.name(), why, "the provider rejected a code");
                Err(sign_in_failed_error(format!(
                    "{} did not accept its own code: {why}. Sign in again.",
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
