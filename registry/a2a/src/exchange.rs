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

use super::choice::{Dialect, Route};
use super::credentials::{Credentials, bearer};
use super::error::{refused, shorten};
use super::operation::HttpCall;
use super::reply::HttpReply;
use super::{TalkError, TokenSource};

/// Most bytes of a response that are read.
pub const BODY_LIMIT: usize = 8 * 1024 * 1024;

const REDIRECT_LIMIT: usize = 5;

const DOCUMENT: &str = "application/json, application/a2a+json";

/// The media types of a response that is a stream; an agent that refuses answers with a document.
const EVENTS: &str = "text/event-stream, application/json, application/a2a+json";

#[derive(Clone)]
pub(super) struct Exchange {
    client: Client,
    headers: HeaderMap,
    query: Vec<(String, String)>,
    tokens: Option<Arc<dyn TokenSource>>,
    /// Whether a token was renewed in this call, which happens once.
    renewed: Arc<AtomicBool>,
    with_credentials: bool,
    timeout: Duration,
    deadline: Instant,
}

/// A response to a request for a stream.
pub(super) enum Incoming {
    /// A `text/event-stream` with a status of success, of which only the head was read.
    Events(Response),
    /// Anything else, with its whole body.
    Reply(HttpReply),
}

impl Exchange {
    /// Requests that end at `deadline`, which is `timeout` after the beginning of the call.
    pub fn new(
        client: Client,
        credentials: &Credentials,
        timeout: Duration,
        deadline: Instant,
    ) -> Self {
        Self {
            client,
            headers: credentials.headers.clone(),
            query: credentials.query.clone(),
            tokens: credentials.tokens.clone(),
            renewed: Arc::default(),
            with_credentials: credentials.any,
            timeout,
            deadline,
        }
    }

    /// The header's name lost its `X-` with 1.0.
    pub fn activate(&mut self, extensions: &HeaderValue, dialect: Dialect) {
        let name = match dialect.is_v1() {
            true => HeaderName::from_static("a2a-extensions"),
            false => HeaderName::from_static("x-a2a-extensions"),
        };
        // The user's own header of that name stays.
        self.headers
            .entry(name)
            .or_insert_with(|| extensions.clone());
    }

    /// The protocol extensions of 1.0 that every request activates.
    pub fn extensions(&self) -> Option<&str> {
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
    pub fn has_query(&self) -> bool {
        !self.query.is_empty()
    }

    /// Makes an attempt, and one more with a newer token if the agent refuses the token, and so did not accept it.
    pub async fn with_token<T>(
        &self,
        attempt: impl AsyncFn(Option<String>) -> Result<T, TalkError>,
    ) -> Result<T, TalkError> {
        let token = self.token(None).await?;
        let first = attempt(token.clone()).await;
        let is_refused = matches!(&first, Err(TalkError::CredentialsRefused { status, .. })
            if matches!(status.as_str(), "UNAUTHENTICATED" | "HTTP 401"));
        if token.is_none() || !is_refused || self.renewed.swap(true, Ordering::Relaxed) {
            return first;
        }
        match self.token(token.as_deref()).await? {
            Some(newer) => attempt(Some(newer)).await,
            None => first,
        }
    }

    /// Sends the frames of a gRPC call, and reads the head of the response, which are frames too.
    pub async fn frames(
        &self,
        url: Url,
        headers: HeaderMap,
        frames: Bytes,
        token: Option<&str>,
        shown: &str,
    ) -> Result<Response, TalkError> {
        let request = self.client.post(url).headers(headers).body(frames);
        let sent = self.authorized(request, token)?.send().await;
        let response = sent.map_err(|error| failed(&error, shown))?;
        let essence = essence(&response).unwrap_or_default();
        if response.status() == StatusCode::OK && essence.starts_with("application/grpc") {
            return Ok(response);
        }
        let reply = self.receive(response, shown).await?;
        if !reply.status.is_success() {
            return Err(reply.http_error());
        }
        Err(TalkError::NotGrpc {
            url: reply.url,
            content_type: reply.content_type,
        })
    }

    /// Sends one request and reads the whole response, at most [`BODY_LIMIT`] bytes.
    pub async fn request(&self, call: &HttpCall) -> Result<HttpReply, TalkError> {
        let shown = shown(&call.url);
        let answered = async {
            let response = self.send(call, DOCUMENT, &shown).await?;
            self.receive(response, &shown).await
        };
        self.in_time(answered, &shown).await
    }

    /// Sends one request for a stream, and reads the head of the response; all of it if it is no stream.
    pub async fn open(&self, call: &HttpCall) -> Result<Incoming, TalkError> {
        let shown = shown(&call.url);
        let opened = async {
            let response = self.send(call, EVENTS, &shown).await?;
            if response.status().is_success() && is_event_stream(&response) {
                return Ok(Incoming::Events(response));
            }
            self.receive(response, &shown).await.map(Incoming::Reply)
        };
        self.in_time(opened, &shown).await
    }

    /// Sends a request, and once more with a newer token if the agent refuses the token, and so did not accept it.
    async fn send(
        &self,
        call: &HttpCall,
        accept: &'static str,
        shown: &str,
    ) -> Result<Response, TalkError> {
        let token = self.token(None).await?;
        let response = self.send_with(call, accept, shown, token.as_deref());
        let response = response.await?;
        let may_renew = token.is_some() && response.status() == StatusCode::UNAUTHORIZED;
        if !may_renew || self.renewed.swap(true, Ordering::Relaxed) {
            return Ok(response);
        }
        match self.token(token.as_deref()).await? {
            Some(newer) => self.send_with(call, accept, shown, Some(&newer)).await,
            None => Ok(response),
        }
    }

    async fn token(&self, refused: Option<&str>) -> Result<Option<String>, TalkError> {
        let Some(tokens) = &self.tokens else {
            return Ok(None);
        };
        let token = tokens.token(refused).await;
        token.map_err(|reason| TalkError::NoToken { reason })
    }

    async fn send_with(
        &self,
        call: &HttpCall,
        accept: &'static str,
        shown: &str,
        token: Option<&str>,
    ) -> Result<Response, TalkError> {
        let mut url = call.url.clone();
        if !self.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&self.query);
        }
        let mut request = self
            .client
            .request(call.method.clone(), url)
            .header(ACCEPT, accept);
        if let Some(version) = call.version {
            request = request.header("A2A-Version", version);
        }
        if let Some(body) = &call.body {
            request = request
                .header(CONTENT_TYPE, "application/json")
                .body(body.to_string());
        }
        let request = self.authorized(request, token)?;
        request.send().await.map_err(|error| failed(&error, shown))
    }

    /// Credentials come last, so that the user's own headers replace others.
    fn authorized(
        &self,
        mut request: RequestBuilder,
        token: Option<&str>,
    ) -> Result<RequestBuilder, TalkError> {
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, bearer(token)?);
        }
        Ok(request.headers(self.headers.clone()))
    }

    /// The result of some work, unless the deadline comes first.
    pub async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, TalkError>>,
        shown: &str,
    ) -> Result<T, TalkError> {
        tokio::time::timeout_at(self.deadline, work)
            .await
            .map_err(|_| TalkError::TimedOut {
                url: shown.to_owned(),
                seconds: self.timeout.as_secs(),
            })?
    }

    async fn receive(&self, mut response: Response, shown: &str) -> Result<HttpReply, TalkError> {
        let status = response.status();
        let header = |name| {
            response
                .headers()
                .get(name)
                .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let content_type =
            header(CONTENT_TYPE).map_or_else(|| "nothing named".to_owned(), |text| shorten(&text));
        let challenge = header(WWW_AUTHENTICATE);
        let retry_after = header(RETRY_AFTER);
        if status.is_redirection()
            && let Some(location) = header(LOCATION)
        {
            return Err(TalkError::Redirected {
                url: shown.to_owned(),
                to: shorten(&location),
            });
        }
        let mut body = Vec::new();
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| failed(&error, shown))?
        {
            if body.len() + chunk.len() > BODY_LIMIT {
                return Err(TalkError::TooLarge {
                    url: shown.to_owned(),
                    limit: BODY_LIMIT,
                });
            }
            body.extend_from_slice(&chunk);
        }
        let reply = HttpReply {
            status,
            url: shown.to_owned(),
            content_type,
            retry_after,
            body,
        };
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            let said = reply.said();
            return Err(refused(
                &format!("HTTP {}", status.as_u16()),
                self.with_credentials,
                challenge.as_deref(),
                &said,
            ));
        }
        Ok(reply)
    }
}

/// A client for the agent at this address, which keeps its connections and presents the certificate of the credentials.
/// With credentials, it follows redirects within the origin only.
pub(super) fn client_for(route: &Route, credentials: &Credentials) -> Result<Client, TalkError> {
    prepare_tls();
    let mut builder = Client::builder()
        .user_agent(concat!("a2a-registry/", env!("CARGO_PKG_VERSION")))
        // A stream that a server refuses would be sent again, because it promises not to have looked at it.
        .retry(reqwest::retry::never())
        .redirect(redirect::Policy::custom(match credentials.any {
            true => follow_within_origin,
            false => follow,
        }));
    if let Some(certificate) = &credentials.certificate {
        let pem = [&*certificate.key, b"\n", &*certificate.chain].concat();
        let identity = Identity::from_pem(&pem);
        let identity = identity.map_err(|error| TalkError::BadCertificate {
            reason: innermost(&error),
        })?;
        builder = builder.identity(identity);
    }
    if route.dialect.is_grpc() {
        builder = builder.http2_prior_knowledge();
    }
    if is_loopback(&route.url) {
        // A proxy cannot reach an agent on this machine.
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| {
        let reason = innermost(&error);
        match credentials.certificate {
            // Only here is it found that it does not belong to its key.
            Some(_) => TalkError::BadCertificate { reason },
            None => TalkError::NoClient { reason },
        }
    })
}

/// Keeps the program's own implementation of TLS, or chooses one; without any no client could be built.
pub(super) fn prepare_tls() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

fn is_event_stream(response: &Response) -> bool {
    essence(response).as_deref() == Some("text/event-stream")
}

/// The media type of a response in lower case, without parameters.
fn essence(response: &Response) -> Option<String> {
    let named = response.headers().get(CONTENT_TYPE)?.to_str().ok()?;
    let essence = named.split(';').next()?;
    Some(essence.trim().to_ascii_lowercase())
}

/// Like [`follow`], without a change of the scheme: credentials are for one origin.
fn follow_within_origin(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let from = attempt.previous().last().map(Url::origin);
    match from == Some(attempt.url().origin()) {
        true => follow(attempt),
        false => attempt.stop(),
    }
}

/// Follows redirects that keep method and body (307, 308) within the host and port, or from http to https.
fn follow(attempt: redirect::Attempt<'_>) -> redirect::Action {
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
pub(super) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    shorten(url.as_str())
}

fn failed(error: &reqwest::Error, shown: &str) -> TalkError {
    let (url, reason) = (shown.to_owned(), innermost(error));
    if error.is_connect() {
        TalkError::Unreachable { url, reason }
    } else {
        TalkError::Broken { url, reason }
    }
}

/// The innermost cause of an error, which is the specific one and contains no address.
pub(super) fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error.source();
    let mut said = None;
    while let Some(inner) = cause {
        said = Some(inner.to_string());
        cause = inner.source();
    }
    shorten(&said.unwrap_or_else(|| "the request could not be made".to_owned()))
}
