//! Signing in: the address that a browser is sent to, and the validation of the provider's answer (RFC 6749 section
//! 4.1, with RFC 7636, RFC 9207 and OpenID Connect).
//!
//! Everything secret of an attempt is computed from its secret, which the browser keeps sealed in a cookie, and its
//! `state`: the provider's answer is useless in another browser, and nothing secret is stored.

use std::sync::Arc;

use a2a_crawler::fetch::{FormOptions, MAX_DETAIL, visible};
use data_encoding::BASE64URL_NOPAD;
use ring::digest::{SHA256, digest};
use ring::hmac;
use serde::Deserialize;
use url::Url;

use crate::error::{AppError, Result};
use crate::providers::holder::{Completeness, holder};
use crate::providers::{Holder, Provider};

/// Bytes of the answer with the tokens.
const MAX_ANSWER: usize = 128 * 1024;
/// Maximum length of a code, in bytes.
const MAX_CODE: usize = 4096;

/// An attempt to sign in: its secret, and its `state`.
#[derive(Debug, Clone, Copy)]
pub struct Attempt<'a> {
    /// Only the registry and the cookie of the browser have it.
    pub secret: &'a str,
    /// The provider returns it.
    pub state: &'a str,
}

impl Attempt<'_> {
    fn derived(&self, purpose: &str) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.secret.as_bytes());
        let tag = hmac::sign(
            &key,
            format!("a2a-registry {purpose} {}", self.state).as_bytes(),
        );
        BASE64URL_NOPAD.encode(tag.as_ref())
    }

    /// The identity token must repeat it.
    pub(super) fn nonce(&self) -> String {
        self.derived("nonce")
    }

    /// The PKCE code verifier, which proves that a code belongs to this attempt.
    pub(super) fn verifier(&self) -> String {
        self.derived("code verifier")
    }
}

/// The parameters of the address that a provider sends a browser back to.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct CodeAnswer {
    /// The attempt that it is about.
    pub state: String,
    code: Option<String>,
    iss: Option<String>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Tokens {
    id_token: String,
    access_token: Option<String>,
}

#[derive(Default, Deserialize)]
struct TokenError {
    #[serde(default)]
    error: String,
}

/// The address that a provider sends browsers back to.
pub fn redirect_uri(public_url: &str, provider: &Provider) -> String {
    format!("{public_url}/sign-in/{}/callback", provider.name())
}

fn failed(text: String) -> AppError {
    AppError::unauthenticated(text)
}

impl Provider {
    /// The address to send a browser to. Unless the provider has responded recently, it is queried first, so that no
    /// one is sent to one that has been down for long.
    pub async fn authorization_url(
        &self,
        attempt: &Attempt<'_>,
        redirect_uri: &str,
    ) -> Result<Url> {
        let document = self.document().await?;
        let endpoint = document.authorization_endpoint;
        let mut url =
            endpoint.ok_or_else(|| self.away("it has no authorization endpoint".into()))?;
        let challenge = digest(&SHA256, attempt.verifier().as_bytes());
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
        attempt: &Attempt<'_>,
        answer: &CodeAnswer,
        redirect_uri: &str,
    ) -> Result<Holder> {
        let document = self.known_document().await?;
        let says_who = document.authorization_response_iss_parameter_supported;
        let is_its_own = match answer.iss.as_deref() {
            Some(iss) => iss == self.issuer(),
            None => !says_who,
        };
        if !is_its_own {
            return Err(failed(
                "This answer is of another identity provider. Sign in again.".into(),
            ));
        }
        let code = match (&answer.error, &answer.code) {
            (Some(error), _) => {
                return Err(failed(format!(
                    "{} has not signed you in: {}. You can try again.",
                    self.title(),
                    visible(error, MAX_DETAIL)
                )));
            }
            (None, Some(code)) if code.len() <= MAX_CODE => code,
            (None, _) => {
                return Err(failed(
                    "The identity provider has sent no code. Sign in again.".into(),
                ));
            }
        };
        let endpoint = document.token_endpoint;
        let endpoint = endpoint.ok_or_else(|| self.away("it has no token endpoint".into()))?;
        let methods = document.token_endpoint_auth_methods_supported;
        // The default is the basic scheme.
        let basic = methods.is_none_or(|all| all.iter().any(|one| one == "client_secret_basic"));
        let tokens = self
            .exchanged(&endpoint, attempt, code, redirect_uri, basic)
            .await?;
        let verified = self
            .id_token_claims(&tokens.id_token, &attempt.nonce())
            .await;
        let (mut claims, issued) = verified?;
        let completeness = match (&document.userinfo_endpoint, &tokens.access_token) {
            (Some(endpoint), Some(token)) if self.lacks_claims(&claims) => {
                self.add_userinfo(&mut claims, endpoint, token).await?;
                Completeness::Whole
            }
            (Some(_), None) => Completeness::WithoutUserinfo,
            _ => Completeness::Whole,
        };
        holder(self.name(), &self.config, &claims, issued, completeness)
    }

    async fn exchanged(
        &self,
        endpoint: &Url,
        attempt: &Attempt<'_>,
        code: &str,
        redirect_uri: &str,
        basic: bool,
    ) -> Result<Tokens> {
        let verifier = attempt.verifier();
        let mut fields = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", redirect_uri),
            ("code_verifier", &verifier),
        ];
        let password = self.password.as_ref().filter(|_| basic);
        if password.is_none() {
            fields.push(("client_id", &self.config.client_id));
            fields.extend(
                self.secret
                    .as_deref()
                    .map(|secret| ("client_secret", secret)),
            );
        }
        let options = FormOptions {
            password,
            body: MAX_ANSWER,
        };
        let asked = self.fetcher.post_form(endpoint, &fields, &options).await;
        let answer = match asked.answer {
            Ok(answer) => answer,
            Err(error) => {
                self.doubt().await;
                return Err(self.away(error.detail));
            }
        };
        match answer.status {
            200 => serde_json::from_slice::<Tokens>(&answer.body)
                .map_err(|_| self.away(format!("{endpoint} has sent no identity token"))),
            400 | 401 => {
                let why: TokenError = serde_json::from_slice(&answer.body).unwrap_or_default();
                let why = visible(&why.error, MAX_DETAIL);
                tracing::warn!(provider = self.name(), why, "a code was refused");
                Err(failed(format!(
                    "{} has not accepted its own answer: {why}. Sign in again.",
                    self.title()
                )))
            }
            status => {
                self.doubt().await;
                Err(self.away(format!("{endpoint} responded with status {status}")))
            }
        }
    }
}
