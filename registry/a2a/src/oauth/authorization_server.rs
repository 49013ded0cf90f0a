//! OAuth flows at confirmed addresses. The crate `oauth2` writes and reads the messages.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use futures::future::BoxFuture;
use oauth2::basic::{BasicClient, BasicErrorResponse, BasicTokenResponse};
use oauth2::http::{self, StatusCode};
use oauth2::{
    AsyncHttpClient, AuthType, AuthUrl, AuthorizationCode, ClientId, ClientSecret, CsrfToken,
    DeviceAuthorizationUrl, EndpointMaybeSet, EndpointNotSet, EndpointSet, ErrorResponse,
    HttpRequest, HttpResponse, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, RefreshToken,
    RequestTokenError, Scope, StandardDeviceAuthorizationResponse, TokenResponse as _, TokenUrl,
};
use url::Url;

use super::endpoint_client::OauthHttpClient;
use super::{OauthEndpoints, OauthError, parse_oauth_url};
use crate::http_session::display_url;

/// How many characters a PKCE verifier may have (RFC 7636 section 4.1).
const VERIFIER_LENGTHS: std::ops::RangeInclusive<usize> = 43..=128;

/// The client that the user has registered with the authorization server.
#[derive(Clone, PartialEq, Eq)]
pub struct OauthClientConfig {
    /// Its identifier at the server.
    pub id: String,
    /// Its secret, which public clients do not have.
    pub secret: Option<String>,
}

impl fmt::Debug for OauthClientConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OauthClient")
            .field("id", &self.id)
            .field("secret", &self.secret.is_some())
            .finish()
    }
}

/// The tokens as issued.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenSet {
    /// The access token, for the agent.
    pub access_token: String,
    /// The refresh token, for the authorization server.
    pub refresh_token: Option<String>,
    /// How long the access token is valid, if the server says so.
    pub lifetime: Option<Duration>,
}

impl fmt::Debug for TokenSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenSet")
            .field("refresh", &self.refresh_token.is_some())
            .field("lifetime", &self.lifetime)
            .finish_non_exhaustive()
    }
}

/// A sign-in that waits for a person at another device.
pub struct DeviceAuthorization {
    response: StandardDeviceAuthorizationResponse,
}

impl DeviceAuthorization {
    /// The address that the person opens; the server's own text.
    #[must_use]
    pub fn verification_uri(&self) -> &str {
        self.response.verification_uri()
    }

    /// The code that the person enters there; the server's own text.
    #[must_use]
    pub fn user_code(&self) -> &str {
        self.response.user_code().secret()
    }
}

type ConfiguredOauthClient =
    BasicClient<EndpointMaybeSet, EndpointMaybeSet, EndpointNotSet, EndpointNotSet, EndpointSet>;

/// An authorization server whose addresses the user has confirmed, and a client of it.
pub struct AuthorizationServer {
    endpoints: OauthEndpoints,
    client: ConfiguredOauthClient,
    http_client: OauthHttpClient,
}

impl AuthorizationServer {
    /// A client of the server at these addresses, each of which is checked. Nothing is sent yet.
    pub fn new(endpoints: OauthEndpoints, client: &OauthClientConfig) -> Result<Self, OauthError> {
        let all = [
            Some(&endpoints.token),
            endpoints.authorization.as_ref(),
            endpoints.device.as_ref(),
            endpoints.refresh.as_ref(),
        ];
        for url in all.into_iter().flatten() {
            parse_oauth_url(url.as_str())?;
        }
        let mut oauth_client = oauth2::basic::BasicClient::new(ClientId::new(client.id.clone()));
        if let Some(secret) = &client.secret {
            oauth_client = oauth_client.set_client_secret(ClientSecret::new(secret.clone()));
        }
        let built = oauth_client
            .set_auth_type(match endpoints.sends_secret_in_body {
                true => AuthType::RequestBody,
                false => AuthType::BasicAuth,
            })
            .set_auth_uri_option(endpoints.authorization.clone().map(AuthUrl::from_url))
            .set_device_authorization_url_option(
                endpoints
                    .device
                    .clone()
                    .map(DeviceAuthorizationUrl::from_url),
            )
            .set_token_uri(TokenUrl::from_url(endpoints.token.clone()));
        Ok(Self {
            http_client: OauthHttpClient::for_url(&endpoints.token)?,
            endpoints,
            client: built,
        })
    }

    /// A token for the client itself (RFC 6749 section 4.4).
    pub async fn exchange_client_credentials(
        &self,
        scopes: &[String],
    ) -> Result<TokenSet, OauthError> {
        let request = self.client.exchange_client_credentials();
        let request = request.add_scopes(scopes.iter().cloned().map(Scope::new));
        let answer = request.request_async(&self.http_client).await;
        self.check_token_response(answer)
    }

    /// The URL to open in the browser for a code that is sent to `redirect` (RFC 6749 section 4.1.1), with PKCE by
    /// SHA-256 (RFC 7636). `state` and `verifier` must be random; the verifier has 43 to 128 characters.
    pub fn authorization_url(
        &self,
        redirect: &Url,
        state: &str,
        verifier: &str,
        scopes: &[String],
    ) -> Result<Url, OauthError> {
        let verifier = parse_pkce_verifier(verifier)?;
        let state = CsrfToken::new(state.to_owned());
        let missing = |_| self.unsupported_error("authorization in a browser");
        let request = self.client.authorize_url(|| state).map_err(missing)?;
        let (url, _) = request
            .add_scopes(scopes.iter().cloned().map(Scope::new))
            .set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(&verifier))
            .set_redirect_uri(Cow::Owned(RedirectUrl::from_url(redirect.clone())))
            .url();
        Ok(url)
    }

    /// Exchanges a code that was sent to `redirect` for tokens.
    pub async fn exchange_code(
        &self,
        code: String,
        redirect: &Url,
        verifier: &str,
    ) -> Result<TokenSet, OauthError> {
        let request = self.client.exchange_code(AuthorizationCode::new(code));
        let request = request
            .set_pkce_verifier(parse_pkce_verifier(verifier)?)
            .set_redirect_uri(Cow::Owned(RedirectUrl::from_url(redirect.clone())));
        let answer = request.request_async(&self.http_client).await;
        self.check_token_response(answer)
    }

    /// Begins a sign-in at another device (RFC 8628 section 3.1).
    pub async fn start_device_authorization(
        &self,
        scopes: &[String],
    ) -> Result<DeviceAuthorization, OauthError> {
        let missing = |_| self.unsupported_error("sign-in at another device");
        let request = self.client.exchange_device_code().map_err(missing)?;
        let request = request.add_scopes(scopes.iter().cloned().map(Scope::new));
        let answer = request.request_async(&self.http_client).await;
        let response = answer.map_err(|error| self.request_failure(error))?;
        Ok(DeviceAuthorization { response })
    }

    /// Waits until the person has signed in at the other device, at most `limit` (RFC 8628 section 3.4).
    pub async fn wait_for_device(
        &self,
        device: &DeviceAuthorization,
        limit: Duration,
    ) -> Result<TokenSet, OauthError> {
        let request = self.client.exchange_device_access_token(&device.response);
        let sleep = |pause| tokio::time::sleep(pause);
        let waited = request.request_async(&self.http_client, sleep, Some(limit));
        let answer = tokio::time::timeout(limit, waited).await;
        let answer = answer.map_err(|_| OauthError::SignInTimedOut { limit })?;
        self.check_token_response(answer)
    }

    /// Renews the access token (RFC 6749 section 6). The refresh token stays the same if the server issues no new one.
    /// [`OauthError::is_invalid_grant`] says whether only a new sign-in helps.
    pub async fn refresh_tokens(&self, token: &str) -> Result<TokenSet, OauthError> {
        let refresh = RefreshToken::new(token.to_owned());
        let address = self.endpoints.refresh.as_ref();
        let address = address.unwrap_or(&self.endpoints.token).clone();
        let client = self.client.clone();
        let client = client.set_token_uri(TokenUrl::from_url(address));
        let response = client
            .exchange_refresh_token(&refresh)
            .request_async(&self.http_client);
        let mut tokens = self.check_token_response(response.await)?;
        tokens.refresh_token.get_or_insert_with(|| token.to_owned());
        Ok(tokens)
    }

    fn check_token_response<E: OauthErrorResponse>(
        &self,
        response: Result<BasicTokenResponse, RequestTokenError<OauthError, E>>,
    ) -> Result<TokenSet, OauthError> {
        let tokens = response.map_err(|error| self.request_failure(error))?;
        let kind = tokens.token_type().as_ref();
        if !kind.eq_ignore_ascii_case("bearer") {
            return Err(self.unreadable_error("it issues tokens of a type other than bearer"));
        }
        Ok(TokenSet {
            access_token: tokens.access_token().secret().clone(),
            refresh_token: tokens.refresh_token().map(|token| token.secret().clone()),
            lifetime: tokens.expires_in(),
        })
    }

    fn request_failure<E: OauthErrorResponse>(
        &self,
        error: RequestTokenError<OauthError, E>,
    ) -> OauthError {
        match error {
            RequestTokenError::Request(error) => error,
            RequestTokenError::ServerResponse(error) => {
                let (code, description) = error.code_and_description();
                OauthError::from_error_code(
                    &display_url(&self.endpoints.token),
                    &code,
                    description.as_deref(),
                )
            }
            // These quote the response, which may contain a token.
            RequestTokenError::Parse(..) => self.unreadable_error("the body has an unknown form"),
            RequestTokenError::Other(_) => self.unreadable_error("the body is empty or not JSON"),
        }
    }

    fn unreadable_error(&self, reason: &str) -> OauthError {
        OauthError::Unreadable {
            url: display_url(&self.endpoints.token),
            reason: reason.to_owned(),
        }
    }

    fn unsupported_error(&self, feature: &'static str) -> OauthError {
        OauthError::NotOffered {
            url: display_url(&self.endpoints.token),
            what: feature,
        }
    }
}

impl<'c> AsyncHttpClient<'c> for OauthHttpClient {
    type Error = OauthError;
    type Future = BoxFuture<'c, Result<HttpResponse, OauthError>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(send_http_request(self, request))
    }
}

async fn send_http_request(
    endpoint: &OauthHttpClient,
    request: HttpRequest,
) -> Result<HttpResponse, OauthError> {
    let request = reqwest::Request::try_from(request);
    let request = request.map_err(|_| OauthError::Unusable {
        reason: "the client id or secret has characters that cannot be sent",
    })?;
    let endpoint_response = endpoint.send(request).await?;
    let mut response = http::Response::new(endpoint_response.body);
    *response.status_mut() =
        StatusCode::from_u16(endpoint_response.status).unwrap_or(StatusCode::BAD_GATEWAY);
    if let Some(content_type) = endpoint_response.content_type {
        let headers = response.headers_mut();
        headers.insert(http::header::CONTENT_TYPE, content_type);
    }
    Ok(response)
}

trait OauthErrorResponse: ErrorResponse {
    fn code_and_description(&self) -> (String, Option<String>);
}

impl OauthErrorResponse for BasicErrorResponse {
    fn code_and_description(&self) -> (String, Option<String>) {
        (
            self.error().as_ref().to_owned(),
            self.error_description().cloned(),
        )
    }
}

impl OauthErrorResponse for oauth2::DeviceCodeErrorResponse {
    fn code_and_description(&self) -> (String, Option<String>) {
        (self.error().to_string(), self.error_description().cloned())
    }
}

/// A verifier of a length that PKCE allows (RFC 7636 section 4.1).
fn parse_pkce_verifier(verifier: &str) -> Result<PkceCodeVerifier, OauthError> {
    match VERIFIER_LENGTHS.contains(&verifier.len()) {
        true => Ok(PkceCodeVerifier::new(verifier.to_owned())),
        false => Err(OauthError::Unusable {
            reason: "the PKCE verifier must have 43 to 128 characters",
        }),
    }
}
