//! One HTTP request and its response, within the limits of a call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER,
    WWW_AUTHENTICATE,
};
use reqwest::{Client, Identity, RequestBuilder, Response, StatusCode, redirect};
use tokio::time::Instant;
use url::{Host, Url};

use super::credentials::{RequestCredentials, bearer_header};
use super::error::auth_error;
use super::foreign_text::shorten_to_line;
use super::operation::HttpRequestParts;
use super::reply::HttpReply;
use super::route_selection::{AgentRoute, ProtocolBinding};
use super::{CallError, TokenSource};

/// Maximum number of bytes read from a response.
pub const BODY_LIMIT: usize = 8 * 1024 * 1024;

const REDIRECT_LIMIT: usize = 5;

const ACCEPT_JSON: &str = "application/json, application/a2a+json";

/// The media types accepted for a stream; an agent that refuses to stream answers with a document.
const ACCEPT_EVENT_STREAM: &str = "text/event-stream, application/json, application/a2a+json";

#[derive(Clone)]
pub(super) struct HttpSession {
    client: Client,
    headers: HeaderMap,
    query: Vec<(String, String)>,
    token_source: Option<Arc<dyn TokenSource>>,
    /// Whether a token was renewed in this call, which is done at most once.
    token_renewed: Arc<AtomicBool>,
    with_credentials: bool,
    timeout: Duration,
    deadline: Instant,
}

/// A response to a request for a stream.
pub(super) enum EventsOrHttpReply {
    /// A `text/event-stream` with a status of success, of which only the head was read.
    Events(Response),
    /// Anything else, with its whole body.
    Reply(HttpReply),
}

impl HttpSession {
    /// A session whose requests end at `deadline`, which is `timeout` after the beginning of the call.
    pub fn new(
        client: Client,
        credentials: &RequestCredentials,
        timeout: Duration,
        deadline: Instant,
    ) -> Self {
        Self {
            client,
            headers: credentials.headers.clone(),
            query: credentials.query.clone(),
            token_source: credentials.token_source.clone(),
            token_renewed: Arc::default(),
            with_credentials: credentials.is_provided,
            timeout,
            deadline,
        }
    }

    /// Sets the header that activates extensions, whose name lost its `X-` with 1.0.
    pub fn activate_extensions(
        &mut self,
        extensions: &HeaderValue,
        protocol_binding: ProtocolBinding,
    ) {
        let name = match protocol_binding.is_v1() {
            true => HeaderName::from_static("a2a-extensions"),
            false => HeaderName::from_static("x-a2a-extensions"),
        };
        // The user's own header of that name stays.
        self.headers
            .entry(name)
            .or_insert_with(|| extensions.clone());
    }

    /// The protocol extensions of 1.0 that every request activates.
    pub fn activated_extensions(&self) -> Option<&str> {
        self.headers.get("a2a-extensions")?.to_str().ok()
    }

    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    pub fn has_credentials(&self) -> bool {
        self.with_credentials
    }

    /// Whether some credentials are in the address.
    pub fn has_query_credentials(&self) -> bool {
        !self.query.is_empty()
    }

    /// Makes an attempt, and one more with a newer token if the agent refuses the token and so did not accept the
    /// call.
    pub async fn attempt_renewing_token<T>(
        &self,
        attempt: impl AsyncFn(Option<String>) -> Result<T, CallError>,
    ) -> Result<T, CallError> {
        let token = self.access_token(None).await?;
        let first = attempt(token.clone()).await;
        let is_refused = matches!(&first, Err(CallError::CredentialsRejected { status, .. })
            if matches!(status.as_str(), "UNAUTHENTICATED" | "HTTP 401"));
        if token.is_none() || !is_refused || self.token_renewed.swap(true, Ordering::Relaxed) {
            return first;
        }
        match self.access_token(token.as_deref()).await? {
            Some(newer) => attempt(Some(newer)).await,
            None => first,
        }
    }

    /// Sends the frames of a gRPC call, and reads the head of the response, which are frames too.
    pub async fn send_grpc_frames(
        &self,
        url: Url,
        headers: HeaderMap,
        frames: Bytes,
        token: Option<&str>,
        display_url: &str,
    ) -> Result<Response, CallError> {
        let request = self.client.post(url).headers(headers).body(frames);
        let sent = self.add_authorization(request, token)?.send().await;
        let response = sent.map_err(|error| connection_error(&error, display_url))?;
        let essence = response_media_type(&response).unwrap_or_default();
        if response.status() == StatusCode::OK && essence.starts_with("application/grpc") {
            return Ok(response);
        }
        let reply = self.read_reply(response, display_url).await?;
        if !reply.status.is_success() {
            return Err(reply.http_error());
        }
        Err(CallError::NotGrpc {
            url: reply.url,
            content_type: reply.content_type,
        })
    }

    /// Sends one request and reads the whole response, at most [`BODY_LIMIT`] bytes.
    pub async fn send_and_read(&self, parts: &HttpRequestParts) -> Result<HttpReply, CallError> {
        let display_url = display_url(&parts.url);
        let exchange = async {
            let response = self
                .send_renewing_token(parts, ACCEPT_JSON, &display_url)
                .await?;
            self.read_reply(response, &display_url).await
        };
        self.run_before_deadline(exchange, &display_url).await
    }

    /// Sends one request for a stream, and reads the head of the response; all of it if it is no stream.
    pub async fn open_stream(
        &self,
        parts: &HttpRequestParts,
    ) -> Result<EventsOrHttpReply, CallError> {
        let display_url = display_url(&parts.url);
        let exchange = async {
            let response = self
                .send_renewing_token(parts, ACCEPT_EVENT_STREAM, &display_url)
                .await?;
            if response.status().is_success() && is_event_stream(&response) {
                return Ok(EventsOrHttpReply::Events(response));
            }
            self.read_reply(response, &display_url)
                .await
                .map(EventsOrHttpReply::Reply)
        };
        self.run_before_deadline(exchange, &display_url).await
    }

    /// Sends a request, and once more with a newer token if the agent refuses the token and so did not accept the
    /// request.
    async fn send_renewing_token(
        &self,
        parts: &HttpRequestParts,
        accept: &'static str,
        display_url: &str,
    ) -> Result<Response, CallError> {
        let token = self.access_token(None).await?;
        let response = self.send_once(parts, accept, display_url, token.as_deref());
        let response = response.await?;
        let may_renew = token.is_some() && response.status() == StatusCode::UNAUTHORIZED;
        if !may_renew || self.token_renewed.swap(true, Ordering::Relaxed) {
            return Ok(response);
        }
        match self.access_token(token.as_deref()).await? {
            Some(newer) => {
                self.send_once(parts, accept, display_url, Some(&newer))
                    .await
            }
            None => Ok(response),
        }
    }

    async fn access_token(
        &self,
        rejected_token: Option<&str>,
    ) -> Result<Option<String>, CallError> {
        let Some(tokens) = &self.token_source else {
            return Ok(None);
        };
        let token = tokens.access_token(rejected_token).await;
        token.map_err(|reason| CallError::NoToken { reason })
    }

    async fn send_once(
        &self,
        parts: &HttpRequestParts,
        accept: &'static str,
        display_url: &str,
        token: Option<&str>,
    ) -> Result<Response, CallError> {
        let mut url = parts.url.clone();
        if !self.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&self.query);
        }
        let mut request = self
            .client
            .request(parts.method.clone(), url)
            .header(ACCEPT, accept);
        if let Some(version) = parts.version {
            request = request.header("A2A-Version", version);
        }
        if let Some(body) = &parts.body {
            request = request
                .header(CONTENT_TYPE, "application/json")
                .body(body.to_string());
        }
        let request = self.add_authorization(request, token)?;
        request
            .send()
            .await
            .map_err(|error| connection_error(&error, display_url))
    }

    /// Adds the credentials last, so that the user's own headers replace others.
    fn add_authorization(
        &self,
        mut request: RequestBuilder,
        token: Option<&str>,
    ) -> Result<RequestBuilder, CallError> {
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, bearer_header(token)?);
        }
        Ok(request.headers(self.headers.clone()))
    }

    /// The result of some work, unless the deadline comes first.
    pub async fn run_before_deadline<T>(
        &self,
        work: impl Future<Output = Result<T, CallError>>,
        display_url: &str,
    ) -> Result<T, CallError> {
        tokio::time::timeout_at(self.deadline, work)
            .await
            .map_err(|_| CallError::TimedOut {
                url: display_url.to_owned(),
                seconds: self.timeout.as_secs(),
            })?
    }

    async fn read_reply(
        &self,
        mut response: Response,
        display_url: &str,
    ) -> Result<HttpReply, CallError> {
        let status = response.status();
        let header = |name| {
            response
                .headers()
                .get(name)
                .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let content_type = header(CONTENT_TYPE).map_or_else(
            || "no content type".to_owned(),
            |text| shorten_to_line(&text),
        );
        let challenge = header(WWW_AUTHENTICATE);
        let retry_after = header(RETRY_AFTER);
        if status.is_redirection()
            && let Some(location) = header(LOCATION)
        {
            return Err(CallError::Redirected {
                url: display_url.to_owned(),
                to: shorten_to_line(&location),
            });
        }
        let mut body = Vec::new();
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| connection_error(&error, display_url))?
        {
            if body.len() + chunk.len() > BODY_LIMIT {
                return Err(CallError::TooLarge {
                    url: display_url.to_owned(),
                    limit: BODY_LIMIT,
                });
            }
            body.extend_from_slice(&chunk);
        }
        let reply = HttpReply {
            status,
            url: display_url.to_owned(),
            content_type,
            retry_after,
            body,
        };
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            let message = reply.error_message();
            return Err(auth_error(
                &format!("HTTP {}", status.as_u16()),
                self.with_credentials,
                challenge.as_deref(),
                &message,
            ));
        }
        Ok(reply)
    }
}

/// A client for the agent at this address, which keeps its connections and presents the certificate of the
/// credentials. With credentials, it follows redirects within the origin only.
pub(super) fn build_http_client(
    route: &AgentRoute,
    credentials: &RequestCredentials,
) -> Result<Client, CallError> {
    install_tls_provider();
    let mut builder = Client::builder()
        .user_agent(concat!("a2a-registry/", env!("CARGO_PKG_VERSION")))
        // By default a request whose stream the server refuses is sent again, because the server did not process it.
        .retry(reqwest::retry::never())
        .redirect(redirect::Policy::custom(match credentials.is_provided {
            true => redirect_within_origin,
            false => redirect_within_host,
        }));
    if let Some(certificate) = &credentials.certificate {
        let pem = [&*certificate.key, b"\n", &*certificate.chain].concat();
        let identity = Identity::from_pem(&pem);
        let identity = identity.map_err(|error| CallError::BadCertificate {
            reason: root_cause(&error),
        })?;
        builder = builder.identity(identity);
    }
    if route.protocol_binding.is_grpc() {
        builder = builder.http2_prior_knowledge();
    }
    if is_loopback(&route.url) {
        // A proxy cannot reach an agent on this machine.
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| {
        let reason = root_cause(&error);
        match credentials.certificate {
            // A certificate that does not belong to its key is detected only here.
            Some(_) => CallError::BadCertificate { reason },
            None => CallError::ClientBuildFailed { reason },
        }
    })
}

/// Keeps the program's own TLS provider, or installs one; without any, no client can be built.
pub(super) fn install_tls_provider() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

fn is_event_stream(response: &Response) -> bool {
    response_media_type(response).as_deref() == Some("text/event-stream")
}

/// The media type of a response in lower case, without parameters.
fn response_media_type(response: &Response) -> Option<String> {
    let named = response.headers().get(CONTENT_TYPE)?.to_str().ok()?;
    let essence = named.split(';').next()?;
    Some(essence.trim().to_ascii_lowercase())
}

/// Like [`redirect_within_host`], without a change of the scheme: credentials are for one origin.
fn redirect_within_origin(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let from = attempt.previous().last().map(Url::origin);
    match from == Some(attempt.url().origin()) {
        true => redirect_within_host(attempt),
        false => attempt.stop(),
    }
}

/// Follows redirects that keep method and body (307, 308) within the host and port, or from http to https.
fn redirect_within_host(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let keeps_method = matches!(
        attempt.status(),
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
    );
    let Some(from) = attempt.previous().last() else {
        return attempt.stop();
    };
    let to = attempt.url();
    let upgraded = from.scheme() == "http" && to.scheme() == "https" && from.host() == to.host();
    let at_home = from.origin() == to.origin() || upgraded;
    if keeps_method && at_home && attempt.previous().len() <= REDIRECT_LIMIT {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

/// Whether an address is one of this machine, which no proxy reaches: a loopback address, or a name below `localhost`.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    }
}

/// The address for messages: without user, password, query and fragment, which may be secret.
pub(super) fn display_url(url: &Url) -> String {
    let mut url = url.clone();
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    shorten_to_line(url.as_str())
}

fn connection_error(error: &reqwest::Error, display_url: &str) -> CallError {
    let (url, reason) = (display_url.to_owned(), root_cause(error));
    if error.is_connect() {
        CallError::Unreachable { url, reason }
    } else {
        CallError::ConnectionLost { url, reason }
    }
}

/// The innermost cause of an error, which is the specific one and contains no address.
pub(super) fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error.source();
    let mut message = None;
    while let Some(inner) = cause {
        message = Some(inner.to_string());
        cause = inner.source();
    }
    shorten_to_line(&message.unwrap_or_else(|| "the request could not be created".to_owned()))
}
